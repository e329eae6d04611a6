// The entity half of the writer in loom1_testing.hpp.
#pragma once

#include "formats/loom1_testing.hpp"

namespace loom::core::test {

struct Blob {
  std::string path, bytes, dtype = "float32";
  float scale = 0;
  bool native = false;
};

inline std::string entity_with_header(const std::string& header, const std::string& payload) {
  return std::string("ENTITY\0\0", 8) + le(1, 2) + le(0, 2) + le(header.size(), 8) + header +
         payload;
}

inline std::string blob_json(const Blob& b, size_t offset) {
  std::string out = cat(R"({"path":")", b.path, R"(","offset":)", offset, R"(,"length":)",
                        b.bytes.size(), R"(,"dtype":")", b.dtype, '"');
  if (b.scale != 0) out += cat(R"(,"scale":)", static_cast<double>(b.scale));
  return out + (b.native ? R"(,"native":true})" : R"(,"native":false})");
}

// `network`: as from network_json. `transformer`: its object, or "".
inline std::string entity(const std::string& network, const std::vector<Blob>& blobs,
                          const std::string& transformer = {}) {
  std::string payload;
  std::vector<std::string> records;
  for (const Blob& b : blobs) {
    records.push_back(blob_json(b, payload.size()));
    payload += b.bytes;
  }
  const auto compact = parse_json(network, "test");
  EXPECT_TRUE(compact.ok()) << compact.error().str();
  return entity_with_header(cat(R"({"format_version":1,"network":)", dump_json(*compact),
                                transformer.empty() ? "" : R"(,"transformer":)" + transformer,
                                R"(,"blobs":[)", join(records, ","), "]}"),
                            payload);
}

inline Result<Loom1Network> read_entity(const std::string& file) {
  return parse_loom1_entity(std::as_bytes(std::span(file)), "net.entity");
}

// A Q4_0 body: blocks of 32 along the flat matrix, low nibbles first, words padded to 64 and at
// least 512. `kept`: the decoded values.
inline std::string q4_0(const std::vector<float>& w, std::vector<float>& kept) {
  std::string scales, words;
  for (size_t i = 0; i < w.size(); i += 32) {
    const size_t n = std::min<size_t>(32, w.size() - i);
    float max = 0;
    for (size_t j = 0; j < n; ++j) max = std::max(max, std::fabs(w[i + j]));
    const float d = max / 7;
    scales += f32_bytes({d});
    for (size_t j = 0; j < 32; j += 2) {
      unsigned byte = 0;
      for (size_t k = 0; k < 2 && j + k < n; ++k) {
        const int q = static_cast<int>(std::round(w[i + j + k] / d));
        byte |= static_cast<unsigned>(q & 15) << (4 * k);
        kept.push_back(static_cast<float>(q) * d);
      }
      words += static_cast<char>(byte);
    }
  }
  const size_t count = std::max<size_t>(512, (words.size() / 4 + 63) / 64 * 64);
  words.resize(count * 4, '\0');
  return le(scales.size() / 4, 4) + le(count, 4) + scales + words;
}

// A BitNet body; codes are -1, 0, 1.
inline std::string bitnet(const std::vector<int>& codes, size_t rows, size_t cols, size_t offset,
                          float scale) {
  const size_t row_words = (cols + 15) / 16;
  std::string words;
  for (size_t r = 0; r < rows; ++r) {
    std::vector<uint32_t> row(row_words);
    for (size_t c = 0; c < cols; ++c)
      row[c / 16] |= static_cast<uint32_t>(codes[r * cols + c] + 1) << (2 * (c % 16));
    for (const uint32_t w : row) words += le(w, 4);
  }
  return le(rows, 4) + le(cols, 4) + le(offset, 4) + f32_bytes({scale}) + le(row_words, 4) +
         le(words.size() / 4, 4) + words;
}

// A decoder of one block, width 4 and 5 tokens.
inline constexpr size_t kD = 4, kInner = 6, kVocab = 5;

inline std::string block_json(size_t b) {
  const auto at = [&](size_t slot, const char* type, const std::string& fields) {
    Record r{type, fields, {}, "Linear"};
    r.x = static_cast<int>(4 * b + slot);
    return record_json(r);
  };
  const std::string norm = R"(,"input_height":4,"output_height":4)";
  return cat(at(0, "RMSNorm", norm), ",",
             at(1, "MultiHeadAttention",
                R"(,"num_heads":2,"num_kv_heads":1,"head_dim":2,"query_dim":4,"d_model":4)"
                R"(,"seq_length":3,"rope_freq_base":500)"),
             ",", at(2, "RMSNorm", norm), ",",
             at(3, "SwiGLU", R"(,"input_height":4,"output_height":6)"));
}

inline constexpr size_t kAttention = 2 * kD * kD + 2 * 2 * kD + kD + 2 * 2 + kD;

inline std::string transformer_json(bool tied) {
  return cat(R"({"architecture":"llama_style_decoder","hidden_size":4,"vocab_size":5,)"
             R"("lm_head_tied":)",
             tied ? "true" : "false",
             R"(,"has_final_norm":true,"weight_dtype":"FLOAT32","dims":{"num_layers":1,)"
             R"("num_heads":2,"num_kv_heads":1,"head_dim":2,"query_dim":4,"kv_dim":2,)"
             R"("intermediate_size":6,"rms_norm_eps":0.001,"rope_freq_base":500,)"
             R"("activation":"silu"}})");
}

inline std::vector<Blob> transformer_blobs(bool tied) {
  std::vector<Blob> blobs = {{"layers.0", f32_bytes(noise(kD, 20))},
                             {"layers.1", f32_bytes(noise(kAttention, 21))},
                             {"layers.2", f32_bytes(noise(kD, 22))},
                             {"layers.3", f32_bytes(noise(3 * kD * kInner + 2 * kInner + kD, 23))},
                             {"layers.1.q_norm", f32_bytes({1, 2})},
                             {"layers.1.k_norm", f32_bytes({0.5f, 1})},
                             {"transformer.embeddings", f32_bytes(noise(kVocab * kD, 24))},
                             {"transformer.final_norm", f32_bytes(noise(kD, 25))}};
  if (!tied) blobs.push_back({"transformer.lm_head", f32_bytes(noise(kVocab * kD, 26))});
  return blobs;
}

}  // namespace loom::core::test
