// Keys under the architecture's name are read or refused: a key that nobody reads could change
// every output without a trace.
#include "llm/gguf_config.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.hpp"
#include "io/json.hpp"
#include "llm/gguf_rope.hpp"

namespace loom {
namespace {

constexpr std::string_view kRopeFreqs = "rope_freqs.weight";

// Keys under the architecture beside its sizes. Those that are only known by name change nothing in
// a file that llama.cpp runs as a plain decoder.
constexpr std::array<std::string_view, 11> kKnown = {"attention.layer_norm_rms_epsilon",
                                                     "attention.value_length",
                                                     "rope.freq_base",
                                                     "rope.dimension_count",
                                                     "rope.scaling.type",
                                                     "rope.scaling.factor",
                                                     "rope.scaling.original_context_length",
                                                     "rope.scaling.finetuned",
                                                     "rope.scale_linear",
                                                     "vocab_size",
                                                     "tensor_data_layout"};

// The decimal number that was rounded to this f32, as f64: 1e-5f gives 1e-5.
double decimal(float value) {
  char digits[40];
  const char* end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
  double out = 0;
  std::from_chars(digits, end, out);
  return out;
}

class ConfigReader {
 public:
  ConfigReader(const Gguf& gguf, const GgufArchitecture& architecture)
      : gguf_(gguf), architecture_(architecture), json_(JsonValue::object()) {}

  Result<HfConfig> read() {
    LOOM_TRY(check_keys());
    json_.add("architectures",
              JsonValue::array({JsonValue::string(std::string(architecture_.hf_class))}));
    json_.add("model_type", JsonValue::string(std::string(architecture_.model_type)));
    LOOM_TRY(read_sizes());
    LOOM_TRY(read_tensors());
    LOOM_TRY(read_rope());
    LOOM_TRY(read_ids());
    LOOM_ASSIGN(HfConfig config, parse_hf_config(dump_json(json_), "", gguf_.where()));
    LOOM_TRY(check_heads(config));
    return read_factors(std::move(config));
  }

 private:
  std::string key(std::string_view name) const { return cat(architecture_.name, ".", name); }

  Error refuse(std::string_view full_key, std::string_view what) const {
    Error error = gguf_.key_error(full_key, what);
    error.code = Code::unsupported;
    return error;
  }

  Status check_keys() const {
    const std::string prefix = cat(architecture_.name, ".");
    for (const GgufValue& value : gguf_.metadata()) {
      if (value.key.substr(0, prefix.size()) != prefix) continue;
      const std::string_view name = value.key.substr(prefix.size());
      const bool size = std::any_of(gguf_sizes().begin(), gguf_sizes().end(),
                                    [&](const GgufSize& s) { return s.key == name; });
      if (size || std::find(kKnown.begin(), kKnown.end(), name) != kKnown.end()) continue;
      // Counts of what a plain decoder has none of.
      if (value.count() == 1 && value.number(0) == 0 && value.type != GgufType::string) continue;
      return refuse(value.key, "is not supported");
    }
    return {};
  }

  Status read_sizes() {
    for (const GgufSize& size : gguf_sizes()) {
      const std::string full = key(size.key);
      if (!size.required && !gguf_.has(full)) continue;
      LOOM_ASSIGN(const uint32_t value, gguf_.u32(full));
      json_.add(std::string(size.hf_key), JsonValue::integer(value));
    }
    // Qwen3's class has a head_dim of its own when config.json says none; a GGUF file means this.
    const JsonValue* heads = json_.find("num_attention_heads");
    const int64_t count = *heads->as_int("");
    if (json_.find("num_key_value_heads") == nullptr)
      json_.add("num_key_value_heads", JsonValue::integer(count));
    if (json_.find("head_dim") == nullptr && count > 0) {
      const int64_t width = *json_.find("hidden_size")->as_int("");
      if (width % count != 0)
        return gguf_.key_error(key("embedding_length"), "is no multiple of attention.head_count");
      json_.add("head_dim", JsonValue::integer(width / count));
    }
    LOOM_ASSIGN(const float eps, gguf_.f32(key("attention.layer_norm_rms_epsilon")));
    json_.add("rms_norm_eps", JsonValue::real(decimal(eps)));
    return {};
  }

  bool has_tensor(std::string_view name) const { return gguf_.find_tensor(name) >= 0; }

  // What the file says by the tensors it has.
  Status read_tensors() {
    const int64_t embedding = gguf_.find_tensor("token_embd.weight");
    if (embedding < 0) return bad_file("tensor token_embd.weight is missing", gguf_.where());
    const TensorEntry& entry = gguf_.entries()[static_cast<size_t>(embedding)];
    if (entry.shape.size() != 2) {
      return bad_file("tensor token_embd.weight must have two dimensions", gguf_.where(),
                      static_cast<int64_t>(entry.offset));
    }
    json_.add("vocab_size", JsonValue::integer(entry.shape[0]));
    json_.add("tie_word_embeddings", JsonValue::boolean(!has_tensor("output.weight")));
    const bool q = has_tensor("blk.0.attn_q.bias"), out = has_tensor("blk.0.attn_output.bias");
    if (architecture_.qkv_bias) {
      if (!q) return bad_file("tensor blk.0.attn_q.bias is missing", gguf_.where());
    } else {
      if (q != out) {
        return unsupported("biases of q without one of attn_output, or the other way round",
                           gguf_.where());
      }
      json_.add("attention_bias", JsonValue::boolean(q));
    }
    json_.add("mlp_bias", JsonValue::boolean(has_tensor("blk.0.ffn_up.bias")));
    return {};
  }

  Result<double> number_or(std::string_view name, double otherwise) const {
    const std::string full = key(name);
    if (!gguf_.has(full)) return otherwise;
    LOOM_ASSIGN(const float value, gguf_.f32(full));
    return decimal(value);
  }

  Status read_rope() {
    JsonValue rope = JsonValue::object();
    LOOM_ASSIGN(const double theta, number_or("rope.freq_base", 10000.0));
    rope.add("rope_theta", JsonValue::real(theta));
    std::string_view type = "none";
    const std::string type_key = key("rope.scaling.type");
    if (gguf_.has(type_key)) {
      LOOM_ASSIGN(type, gguf_.string(type_key));
    }
    LOOM_ASSIGN(double factor, number_or("rope.scale_linear", 1.0));
    if (type == "linear") {
      LOOM_ASSIGN(factor, number_or("rope.scaling.factor", factor));
    } else if (type != "none") {
      return refuse(type_key, cat("is '", printable(type),
                                  "', which is not supported; none and "
                                  "linear are"));
    }
    if (factor != 1.0) {
      rope.add("rope_type", JsonValue::string("linear"));
      rope.add("factor", JsonValue::real(factor));
    }
    json_.add("rope_parameters", std::move(rope));
    return {};
  }

  Status read_ids() {
    const struct {
      const char *gguf, *hf;
    } single[] = {{"tokenizer.ggml.bos_token_id", "bos_token_id"}};
    for (const auto& row : single) {
      if (!gguf_.has(row.gguf)) continue;
      LOOM_ASSIGN(const uint32_t id, gguf_.u32(row.gguf));
      json_.add(row.hf, JsonValue::integer(id));
    }
    JsonValue ends = JsonValue::array();
    std::vector<uint32_t> seen;
    for (const char* name : {"eos", "eot", "eom"}) {
      const std::string full = cat("tokenizer.ggml.", name, "_token_id");
      if (!gguf_.has(full)) continue;
      LOOM_ASSIGN(const uint32_t id, gguf_.u32(full));
      if (std::find(seen.begin(), seen.end(), id) != seen.end()) continue;
      seen.push_back(id);
      ends.push(JsonValue::integer(id));
    }
    if (!seen.empty()) json_.add("eos_token_id", std::move(ends));
    return {};
  }

  Status check_heads(const HfConfig& config) const {
    for (const char* name : {"attention.value_length", "rope.dimension_count"}) {
      const std::string full = key(name);
      if (!gguf_.has(full)) continue;
      LOOM_ASSIGN(const uint32_t value, gguf_.u32(full));
      if (value != config.head_dim) {
        return refuse(full, cat("is ", value, "; only the size of a head, ", config.head_dim,
                                ", is supported"));
      }
    }
    return {};
  }

  Result<HfConfig> read_factors(HfConfig config) const {
    const int64_t index = gguf_.find_tensor(kRopeFreqs);
    if (index < 0) return config;
    const TensorEntry& entry = gguf_.entries()[static_cast<size_t>(index)];
    if (entry.shape.size() != 1 || entry.shape[0] != config.head_dim / 2) {
      return bad_file(cat("tensor rope_freqs.weight must have ", config.head_dim / 2, " values"),
                      gguf_.where(), static_cast<int64_t>(entry.offset));
    }
    std::vector<float> factors(static_cast<size_t>(entry.shape[0]));
    LOOM_TRY(gguf_.to_f32(static_cast<size_t>(index), 0, entry.shape[0], factors.data()));
    const std::optional<HfConfig> known = recognise_llama3(config, factors);
    if (known && config.rope == RopeKind::standard) return *known;
    return unsupported("the factors in tensor rope_freqs.weight are not those of Llama 3",
                       gguf_.where());
  }

  const Gguf& gguf_;
  const GgufArchitecture& architecture_;
  JsonValue json_;
};

}  // namespace

Result<HfConfig> read_gguf_config(const Gguf& gguf, const GgufArchitecture& architecture) {
  return ConfigReader(gguf, architecture).read();
}

void write_gguf_config(const HfConfig& config, const GgufArchitecture& architecture,
                       GgufMetadata& metadata) {
  const auto key = [&](std::string_view name) { return cat(architecture.name, ".", name); };
  metadata.string("general.architecture", architecture.name);
  for (const GgufSize& size : gguf_sizes())
    metadata.u32(key(size.key), static_cast<uint32_t>(config.*size.field));
  metadata.u32(key("attention.value_length"), static_cast<uint32_t>(config.head_dim));
  metadata.f32(key("attention.layer_norm_rms_epsilon"), static_cast<float>(config.rms_norm_eps));
  metadata.u32(key("vocab_size"), static_cast<uint32_t>(config.vocab_size));
  metadata.u32(key("rope.dimension_count"), static_cast<uint32_t>(config.head_dim));
  metadata.f32(key("rope.freq_base"), static_cast<float>(config.rope_theta));
  if (config.rope != RopeKind::linear) return;
  metadata.string(key("rope.scaling.type"), "linear");
  metadata.f32(key("rope.scaling.factor"), static_cast<float>(config.rope_factor));
}

}  // namespace loom
