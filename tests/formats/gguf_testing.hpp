// Helpers of the tests of GGUF files: a model without a file, and its tokenizer after a round trip.
#pragma once

#include <gtest/gtest.h>

#include "formats/config/config.hpp"
#include "formats/gguf/tokenizer/tokenizer.hpp"
#include "formats/gguf/write.hpp"
#include "io/io_testing.hpp"
#include "llm/decoder.hpp"
#include "llm/model_source.hpp"

namespace loom::core {

// Weights that are all different, for any configuration.
class MadeSource : public ModelSource {
 public:
  explicit MadeSource(DecoderConfig c) {
    config = std::move(c);
    path = "made";
  }
  Result<SourceWeight> weight(const Param& param) const override {
    SourceWeight weight;
    const int64_t cols = param.spec.matrix() ? param.spec.shape[1] : 1;
    const auto salt = static_cast<int64_t>(std::hash<std::string>()(param.path) % 1000);
    weight.rows = [cols, salt](int64_t first, int64_t count, float* out) -> Status {
      for (int64_t i = 0; i < count * cols; ++i)
        out[i] = static_cast<float>((first * cols + i) * 31 % 977 + salt) / 1024.0f;
      return {};
    };
    return weight;
  }
};

inline DecoderConfig tiny(std::string architecture, std::string type) {
  DecoderConfig c = *shape_config("tiny");
  c.architecture = std::move(architecture);
  c.model_type = std::move(type);
  return c;
}

// The configuration of a config.json with these members and small sizes.
inline DecoderConfig parsed(const std::string& members) {
  const auto config = parse_hf_config(
      "{" + members + R"(,"hidden_size":64,"intermediate_size":160,"num_hidden_layers":8,
      "num_attention_heads":4,"num_key_value_heads":2,"head_dim":16,"vocab_size":256,
      "max_position_embeddings":512,"bos_token_id":1,"eos_token_id":2})",
      "", "c");
  EXPECT_TRUE(config.ok()) << config.error().str();
  return *config;
}

// The metadata of a tokenizer as an open file.
inline Result<TokenizerSpec> round_trip(const GgufMetadata& metadata) {
  std::string bytes;
  LOOM_TRY(write_gguf_to(
      [&](std::span<const std::byte> piece) -> Status {
        bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
        return {};
      },
      metadata, {}));
  LOOM_ASSIGN(const Gguf gguf, Gguf::parse(test::bytes_of(bytes), "f"));
  LOOM_ASSIGN(std::optional<TokenizerSpec> spec, read_gguf_tokenizer(gguf));
  return spec ? std::move(*spec) : TokenizerSpec();
}

}  // namespace loom::core
