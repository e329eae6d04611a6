// A model with a fixed reply: it emits a given reply token by token. Its weights are a table of
// successors, so nothing depends on chance or training.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "loom/loom.hpp"
#include "serve/dialects/fields.hpp"

namespace loom::core::test {

// A Hugging Face folder whose model answers every prompt of its chat template with `reply`, in the
// given pieces, and ends. Each piece is a token, so all must differ, and none may be a single byte.
class StandIn {
 public:
  StandIn(const std::string& chat_template, const std::vector<std::string>& reply)
      : folder_(std::filesystem::temp_directory_path() /
                cat("loom_stand_in_", ::getpid(), "_", reinterpret_cast<uintptr_t>(this))) {
    std::filesystem::create_directories(folder_);
    // Ids: 256 bytes, the start mark of the assistant, the reply, the end.
    pieces_ = {kBegin};
    pieces_.insert(pieces_.end(), reply.begin(), reply.end());
    pieces_.push_back("<end>");
    write("config.json", config());
    write("tokenizer.json", tokenizer());
    write("tokenizer_config.json", R"({"eos_token": "<end>"})");
    write("chat_template.jinja", chat_template);
    weights();
  }
  ~StandIn() { std::filesystem::remove_all(folder_); }
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;

  // The template has to end its prompt with it.
  static constexpr const char* kBegin = "<begin>";

  Model load() const {
    const Result<Engine> engine = Engine::create({.threads = 1});
    EXPECT_TRUE(engine.ok());
    Result<Model> model = Model::load(*engine, folder_.string());
    EXPECT_TRUE(model.ok()) << model.error().str();
    return *model;
  }

 private:
  static constexpr int kWidth = 64;

  void write(const char* name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  int vocab() const { return 256 + static_cast<int>(pieces_.size()); }

  std::string config() const {
    return dump_json(object("architectures", list("LlamaForCausalLM"), "model_type", "llama",
                            "hidden_size", kWidth, "intermediate_size", 32, "num_hidden_layers", 1,
                            "num_attention_heads", 2, "num_key_value_heads", 2, "vocab_size",
                            vocab(), "max_position_embeddings", 2048, "rms_norm_eps", 1e-5,
                            "rope_theta", 10000.0, "hidden_act", "silu", "eos_token_id",
                            vocab() - 1, "tie_word_embeddings", false));
  }

  // Bytes as GPT-2 writes them, and the pieces as added tokens.
  std::string tokenizer() const {
    JsonValue words = JsonValue::object(), added = JsonValue::array();
    for (int byte = 0, moved = 0; byte < 256; ++byte) {
      const bool plain = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
      const int c = plain ? byte : 256 + moved++;
      std::string text(1, static_cast<char>(c));
      if (c >= 128) {
        text = {static_cast<char>(0xC0 | (c >> 6)), static_cast<char>(0x80 | (c & 0x3F))};
      }
      words.add(text, JsonValue::integer(byte));
    }
    for (size_t i = 0; i < pieces_.size(); ++i) {
      added.push(object("id", 256 + i, "content", std::string_view(pieces_[i]), "single_word",
                        false, "lstrip", false, "rstrip", false, "normalized", false, "special",
                        true));
    }
    const JsonValue bytes = object("type", "ByteLevel", "add_prefix_space", false, "trim_offsets",
                                   true, "use_regex", true);
    return dump_json(object("version", "1.0", "truncation", JsonValue(), "padding", JsonValue(),
                            "added_tokens", std::move(added), "normalizer", JsonValue(),
                            "pre_tokenizer", bytes, "post_processor", JsonValue(), "decoder", bytes,
                            "model",
                            object("type", "BPE", "dropout", JsonValue(), "unk_token", JsonValue(),
                                   "continuing_subword_prefix", JsonValue(), "end_of_word_suffix",
                                   JsonValue(), "fuse_unk", false, "byte_fallback", false, "vocab",
                                   std::move(words), "merges", JsonValue::array())));
  }

  // Embedding of a piece: a unique code. Head of the next piece: the same code.
  void weights() const {
    const auto rows = static_cast<size_t>(vocab());
    std::vector<float> embedding(rows * kWidth), head(rows * kWidth);
    for (size_t i = 0; i + 1 < pieces_.size(); ++i) {
      embedding[(256 + i) * kWidth + i % kWidth] = 1;
      head[(257 + i) * kWidth + i % kWidth] = 1;
    }
    ASSERT_LT(pieces_.size(), static_cast<size_t>(kWidth));
    JsonValue header;
    std::string data;
    const auto add = [&](const std::string& name, std::vector<int64_t> shape,
                         const std::vector<float>& values) {
      JsonValue dims = JsonValue::array();
      size_t count = 1;
      for (const int64_t d : shape) {
        dims.push(json(d));
        count *= static_cast<size_t>(d);
      }
      const size_t begin = data.size();
      data.resize(begin + 4 * count);
      if (!values.empty()) std::memcpy(data.data() + begin, values.data(), 4 * count);
      header.add(name,
                 object("dtype", "F32", "shape", std::move(dims), "data_offsets",
                        list(static_cast<int64_t>(begin), static_cast<int64_t>(data.size()))));
    };
    const int64_t wide = kWidth, count = vocab();
    const std::vector<float> ones(kWidth, 1.0f);
    const std::string layer = "model.layers.0.";
    add("model.embed_tokens.weight", {count, wide}, embedding);
    add("lm_head.weight", {count, wide}, head);
    add("model.norm.weight", {wide}, ones);
    add(layer + "input_layernorm.weight", {wide}, ones);
    add(layer + "post_attention_layernorm.weight", {wide}, ones);
    for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
      add(cat(layer, "self_attn.", name, ".weight"), {wide, wide}, {});
    add(layer + "mlp.gate_proj.weight", {32, wide}, {});
    add(layer + "mlp.up_proj.weight", {32, wide}, {});
    add(layer + "mlp.down_proj.weight", {wide, 32}, {});
    std::string text = dump_json(header);
    while (text.size() % 8 != 0) text += ' ';
    std::string bytes;
    for (int i = 0; i < 8; ++i) bytes += static_cast<char>((text.size() >> (8 * i)) & 0xFF);
    write("model.safetensors", bytes + text + data);
  }

  std::filesystem::path folder_;
  std::vector<std::string> pieces_;
};

}  // namespace loom::core::test
