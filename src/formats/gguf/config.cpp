// Keys under the architecture's name are read or refused: an ignored key could silently change
// every output.
#include "formats/gguf/config.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.hpp"
#include "families/family.hpp"
#include "formats/gguf/experts.hpp"
#include "formats/gguf/graph_limits.hpp"
#include "formats/gguf/rope.hpp"
#include "formats/gguf/tokenizer/tokenizer.hpp"
#include "io/json/json.hpp"

namespace loom::core {
namespace {

constexpr std::string_view kRopeFreqs = "rope_freqs.weight";
constexpr std::string_view kWindow = "attention.sliding_window";
constexpr std::string_view kScoreCap = "attn_logit_softcapping";
constexpr std::string_view kLogitCap = "final_logit_softcapping";

std::string_view eps_key(const GgufRules& rules) {
  return rules.layer_norms ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon";
}

// The class's name in config.json for a setting that most classes call `key`.
std::string_view key_of_class(std::string_view key, const ConfigKeys& keys) {
  const ConfigKeys most;
  for (const auto name : {&ConfigKeys::hidden, &ConfigKeys::inner, &ConfigKeys::layers,
                          &ConfigKeys::heads, &ConfigKeys::positions, &ConfigKeys::eps})
    if (most.*name == key) return keys.*name;
  return key;
}

// Other keys under the architecture. Keys that are only listed by name change nothing in a file
// that llama.cpp runs as a plain decoder.
constexpr std::array<std::string_view, 10> kKnown = {
    "attention.value_length", "rope.freq_base",      "rope.dimension_count",
    "rope.scaling.type",      "rope.scaling.factor", "rope.scaling.original_context_length",
    "rope.scaling.finetuned", "rope.scale_linear",   "vocab_size",
    "tensor_data_layout"};

// The decimal number nearest to this f32, as f64: 1e-5f gives 1e-5.
double decimal(float value) {
  char digits[40];
  const char* end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
  double out = 0;
  std::from_chars(digits, end, out);
  return out;
}

class ConfigReader {
 public:
  ConfigReader(const Gguf& gguf, const DecoderFamily& family)
      : gguf_(gguf), family_(family), rules_(family.gguf), json_(JsonValue::object()) {}

  Result<DecoderConfig> read() {
    LOOM_TRY(check_keys());
    json_.add("architectures",
              JsonValue::array({JsonValue::string(std::string(family_.hf_class))}));
    json_.add("model_type", JsonValue::string(std::string(family_.model_type)));
    if (!rules_.act.empty()) json_.add("hidden_act", JsonValue::string(std::string(rules_.act)));
    LOOM_TRY(read_sizes());
    LOOM_TRY(read_gguf_experts(gguf_, family_, json_));
    LOOM_TRY(read_tensors());
    LOOM_TRY(read_attention());
    LOOM_TRY(read_rope());
    LOOM_TRY(read_ids());
    Result<DecoderConfig> parsed = read_hf_config(named_as_class(), nullptr, gguf_.where());
    if (!parsed.ok()) {
      Error error = parsed.error();
      error.offset = -1;  // offset in a generated text
      return error;
    }
    DecoderConfig config = std::move(*parsed);
    LOOM_TRY(check_heads(config));
    if (config.num_layers > static_cast<int64_t>(gguf_.entries().size())) {
      return gguf_.key_error(key("block_count"),
                             cat("asks for ", config.num_layers, " blocks, the file has ",
                                 gguf_.entries().size(), " tensors"));
    }
    return read_factors(std::move(config));
  }

 private:
  std::string key(std::string_view name) const { return cat(rules_.name, ".", name); }

  Error refuse(std::string_view full_key, std::string_view what) const {
    Error error = gguf_.key_error(full_key, what);
    error.code = Code::unsupported;
    return error;
  }

  JsonValue named_as_class() const {
    JsonValue out = JsonValue::object();
    for (const auto& [name, value] : json_.members())
      out.add(std::string(key_of_class(name, *family_.config.keys)), value);
    return out;
  }

  Status check_keys() const {
    const std::string prefix = cat(rules_.name, ".");
    for (const GgufValue& value : gguf_.metadata()) {
      if (value.key.substr(0, prefix.size()) != prefix) continue;
      const std::string_view name = value.key.substr(prefix.size());
      const bool size = std::any_of(gguf_sizes().begin(), gguf_sizes().end(),
                                    [&](const GgufSize& s) { return s.key == name; });
      if (size || name == eps_key(rules_) ||
          std::find(kKnown.begin(), kKnown.end(), name) != kKnown.end())
        continue;
      if (rules_.window && name == kWindow) continue;
      if (family_.experts != nullptr && is_gguf_expert_key(name)) continue;
      if (rules_.caps && (name == kScoreCap || name == kLogitCap)) continue;
      // Counts of features that a plain decoder lacks.
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
    // Qwen3's class has a default head_dim for config.json; a GGUF file means this.
    const JsonValue* heads = json_.find("num_attention_heads");
    const int64_t count = *heads->as_int("");
    if (json_.find("num_key_value_heads") == nullptr)
      json_.add("num_key_value_heads", JsonValue::integer(count));
    if (json_.find("head_dim") == nullptr && count > 0) {
      const int64_t width = *json_.find("hidden_size")->as_int("");
      if (width % count != 0)
        return gguf_.key_error(key("embedding_length"),
                               "is not a multiple of attention.head_count");
      json_.add("head_dim", JsonValue::integer(width / count));
    }
    LOOM_ASSIGN(const float eps, gguf_.f32(key(eps_key(rules_))));
    json_.add("rms_norm_eps", JsonValue::real(decimal(eps)));
    return {};
  }

  bool has_tensor(std::string_view name) const { return gguf_.find_tensor(name) >= 0; }

  // Settings that follow from the tensors in the file.
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
    if (!rules_.bias) return {};
    if (rules_.qkv_bias) {
      if (!q) return bad_file("tensor blk.0.attn_q.bias is missing", gguf_.where());
    } else {
      if (q != out) {
        return unsupported("biases of q without one of attn_output, or the other way round",
                           gguf_.where());
      }
      json_.add("attention_bias", JsonValue::boolean(q));
    }
    const bool mlp = has_tensor("blk.0.ffn_up.bias");
    if (mlp) json_.add("mlp_bias", JsonValue::boolean(true));
    return {};
  }

  // Windows, caps and the score scale, for the architectures that have them.
  Status read_attention() {
    if (rules_.window && gguf_.has(key(kWindow))) {
      LOOM_ASSIGN(const uint32_t window, gguf_.u32(key(kWindow)));
      json_.add("sliding_window", window > 0 ? JsonValue::integer(window) : JsonValue());
    }
    for (const std::string_view name : {kScoreCap, kLogitCap}) {
      if (!rules_.caps || !gguf_.has(key(name))) continue;
      LOOM_ASSIGN(const float cap, gguf_.f32(key(name)));
      json_.add(std::string(name), cap > 0 ? JsonValue::real(decimal(cap)) : JsonValue());
    }
    if (rules_.wide_blocks == 0) return {};
    const auto size = [&](const char* hf_key) { return *json_.find(hf_key)->as_int(""); };
    const int64_t heads = size("num_attention_heads");
    const bool wide = size("num_hidden_layers") == rules_.wide_blocks && heads > 0;
    json_.add("query_pre_attn_scalar",
              JsonValue::integer(wide ? size("hidden_size") / heads : size("head_dim")));
    return {};
  }

  Result<double> number_or(std::string_view name, double otherwise) const {
    const std::string full = key(name);
    if (!gguf_.has(full)) return otherwise;
    LOOM_ASSIGN(const float value, gguf_.f32(full));
    return decimal(value);
  }

  Status read_rope() {
    LOOM_ASSIGN(const double theta, number_or("rope.freq_base", 10000.0));
    json_.add("rope_theta", JsonValue::real(theta));
    std::string_view type = "none";
    const std::string type_key = key("rope.scaling.type");
    if (gguf_.has(type_key)) {
      LOOM_ASSIGN(type, gguf_.string(type_key));
    }
    LOOM_ASSIGN(double factor, number_or("rope.scale_linear", 1.0));
    if (type == "linear") {
      LOOM_ASSIGN(factor, number_or("rope.scaling.factor", factor));
    } else if (type != "none") {
      return refuse(type_key,
                    cat("is '", printable(type), "', which is not supported; none and linear are"));
    }
    if (factor != 1.0) {
      json_.add("rope_scaling", JsonValue::object({{"rope_type", JsonValue::string("linear")},
                                                   {"factor", JsonValue::real(factor)}}));
    }
    const std::string width_key = key("rope.dimension_count");
    if (!rules_.fused || !gguf_.has(width_key)) return {};
    LOOM_ASSIGN(const uint32_t width, gguf_.u32(width_key));
    const int64_t head = *json_.find("head_dim")->as_int("");
    if (head > 0 && width != head) {
      json_.add("partial_rotary_factor",
                JsonValue::real(static_cast<double>(width) / static_cast<double>(head)));
    }
    return {};
  }

  Status read_ids() {
    // null: prevents the default of the class.
    JsonValue bos;
    constexpr std::string_view kBos = "tokenizer.ggml.bos_token_id";
    if (gguf_.has(kBos)) {
      LOOM_ASSIGN(const uint32_t id, gguf_.u32(kBos));
      bos = JsonValue::integer(id);
    }
    json_.add("bos_token_id", std::move(bos));
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
    if (gguf_.has(kGgufEnds)) {
      LOOM_ASSIGN(const GgufValue* all, gguf_.array(kGgufEnds, GgufType::i32));
      ends = JsonValue::array();
      for (uint64_t i = 0; i < all->count(); ++i)
        ends.push(JsonValue::integer(static_cast<int64_t>(all->number(i))));
    }
    json_.add("eos_token_id", seen.empty() ? JsonValue() : std::move(ends));
    return {};
  }

  Status check_heads(const DecoderConfig& config) const {
    for (const char* name : {"attention.value_length", "rope.dimension_count"}) {
      const std::string full = key(name);
      if (!gguf_.has(full)) continue;
      LOOM_ASSIGN(const uint32_t value, gguf_.u32(full));
      const bool part = rules_.fused && full == key("rope.dimension_count");
      const int64_t width = config.rope_width > 0 ? config.rope_width : config.head_dim;
      if (value != (part ? width : config.head_dim)) {
        return refuse(full, cat("is ", value, "; only the size of a head, ", config.head_dim,
                                ", is supported"));
      }
    }
    return {};
  }

  Result<DecoderConfig> read_factors(DecoderConfig config) const {
    const int64_t index = gguf_.find_tensor(kRopeFreqs);
    if (index < 0) return config;
    const TensorEntry& entry = gguf_.entries()[static_cast<size_t>(index)];
    if (entry.shape.size() != 1 || entry.shape[0] != config.head_dim / 2) {
      return bad_file(cat("tensor rope_freqs.weight must have ", config.head_dim / 2, " values"),
                      gguf_.where(), static_cast<int64_t>(entry.offset));
    }
    std::vector<float> factors(static_cast<size_t>(entry.shape[0]));
    LOOM_TRY(gguf_.to_f32(static_cast<size_t>(index), 0, entry.shape[0], factors.data()));
    const std::optional<DecoderConfig> known = recognize_llama3(config, factors);
    if (known && config.rope == RopeKind::standard) return *known;
    return unsupported("the factors in tensor rope_freqs.weight are not those of Llama 3",
                       gguf_.where());
  }

  const Gguf& gguf_;
  const DecoderFamily& family_;
  const GgufRules& rules_;
  JsonValue json_;
};

}  // namespace

Result<DecoderConfig> read_gguf_config(const Gguf& gguf, const DecoderFamily& family) {
  return ConfigReader(gguf, family).read();
}

namespace {

// The tensors of a file without data, so that the metadata can be read back.
Result<std::string> skeleton(const DecoderConfig& config, const GgufMetadata& metadata) {
  const auto empty = [](std::string name, std::vector<int64_t> shape) {
    return GgufOutput{std::move(name), "F32", std::move(shape),
                      [](const GgufSink&) { return Status(); }};
  };
  std::vector<GgufOutput> tensors = {empty("token_embd.weight", {config.vocab_size, 0})};
  if (!config.tie_word_embeddings) tensors.push_back(empty("output.weight", {0}));
  if (config.attention_bias) tensors.push_back(empty("blk.0.attn_q.bias", {0}));
  if (config.attention_out_bias) tensors.push_back(empty("blk.0.attn_output.bias", {0}));
  if (config.mlp_bias) tensors.push_back(empty("blk.0.ffn_up.bias", {0}));
  for (int64_t i = 0; i < config.num_layers; ++i)
    tensors.push_back(empty(cat("blk.", i, ".attn_q.weight"), {0}));
  if (config.rope == RopeKind::llama3) {
    const std::vector<float> factors = llama3_factors(config);
    tensors.push_back(
        {std::string(kRopeFreqs),
         "F32",
         {static_cast<int64_t>(factors.size())},
         [factors](const GgufSink& sink) { return sink(std::as_bytes(std::span(factors))); }});
  }
  std::string bytes;
  LOOM_TRY(write_gguf_to(
      [&](std::span<const std::byte> piece) -> Status {
        bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
        return {};
      },
      metadata, tensors));
  return bytes;
}

bool same_number(double a, double b) {
  return static_cast<float>(a) == static_cast<float>(b);
}

// The first difference of two configurations that affects the network; empty if there is none.
std::string_view difference(const DecoderConfig& a, const DecoderConfig& b) {
  if (a.hidden_act != b.hidden_act) return "hidden_act";
  if (a.attention_bias != b.attention_bias || a.attention_out_bias != b.attention_out_bias ||
      a.mlp_bias != b.mlp_bias)
    return "its biases";
  if (a.qk_norm != b.qk_norm || a.sub_norms != b.sub_norms || a.post_norms != b.post_norms)
    return "its norms";
  if (!same_number(a.embedding_scale, b.embedding_scale)) return "the scale of its embedding";
  const auto scale = [](const DecoderConfig& c) {
    const bool own = c.attention_scale > 0;
    return own ? c.attention_scale : 1.0 / __builtin_sqrt(static_cast<double>(c.head_dim));
  };
  if (!same_number(scale(a), scale(b))) return "the scale of its attention scores";
  if (!same_number(a.attention_soft_cap, b.attention_soft_cap) ||
      !same_number(a.final_soft_cap, b.final_soft_cap))
    return "its soft caps";
  if (a.experts != b.experts) return "its experts";
  for (int64_t i = 0; i < a.num_layers; ++i) {
    if (a.has_experts(i) != b.has_experts(i)) return "the layers without experts";
    const DecoderLayer x = a.layer(i), y = b.layer(i);
    if (x.window != y.window) return "the windows of its layers";
    if (x.rope != y.rope || !same_number(x.rope_theta, y.rope_theta))
      return "the rotary positions of its layers";
  }
  const auto width = [](const DecoderConfig& c) {
    return c.rope_width > 0 ? c.rope_width : c.head_dim;
  };
  if (width(a) != width(b) || a.rope != b.rope || !same_number(a.rope_theta, b.rope_theta) ||
      !same_number(a.rope_factor, b.rope_factor))
    return "its rotary positions";
  if (a.rope == RopeKind::llama3 && llama3_factors(a) != llama3_factors(b))
    return "its rotary positions";
  return {};
}

}  // namespace

Status write_gguf_config(const DecoderConfig& config, const DecoderFamily& family,
                         GgufMetadata& metadata) {
  const GgufRules& rules = family.gguf;
  const auto key = [&](std::string_view name) { return cat(rules.name, ".", name); };
  metadata.string("general.architecture", rules.name);
  for (const GgufSize& size : gguf_sizes())
    metadata.u32(key(size.key), static_cast<uint32_t>(config.*size.field));
  write_gguf_experts(config, family, metadata);
  metadata.u32(key("attention.value_length"), static_cast<uint32_t>(config.head_dim));
  metadata.f32(key(eps_key(rules)), static_cast<float>(config.rms_norm_eps));
  metadata.u32(key("vocab_size"), static_cast<uint32_t>(config.vocab_size));
  const int64_t width = config.rope_width > 0 ? config.rope_width : config.head_dim;
  if (config.rope != RopeKind::none) {
    metadata.u32(key("rope.dimension_count"), static_cast<uint32_t>(width));
    metadata.f32(key("rope.freq_base"), static_cast<float>(config.rope_theta));
  }
  if (config.rope == RopeKind::linear) {
    metadata.string(key("rope.scaling.type"), "linear");
    metadata.f32(key("rope.scaling.factor"), static_cast<float>(config.rope_factor));
  }
  if (rules.window) {
    int64_t window = 0;
    for (const DecoderLayer& layer : config.layers) window = std::max(window, layer.window);
    // A window as long as the context has no effect.
    if (window == 0 || window > config.max_positions) window = config.max_positions;
    metadata.u32(key(kWindow), static_cast<uint32_t>(window));
  }
  if (rules.caps) {
    metadata.f32(key(kScoreCap), static_cast<float>(config.attention_soft_cap));
    metadata.f32(key(kLogitCap), static_cast<float>(config.final_soft_cap));
  }
  if (config.rope == RopeKind::llama3 && !recognize_llama3(config, llama3_factors(config))) {
    return unsupported(cat("GGUF files of '", rules.name, "' hold the factors of rotary ",
                           "positions, of which rope_low_freq, rope_high_freq and rope_original ",
                           "of this ", config.architecture, " cannot be read again"));
  }
  LOOM_ASSIGN(const std::string bytes, skeleton(config, metadata));
  LOOM_ASSIGN(const Gguf gguf,
              Gguf::parse(std::as_bytes(std::span(bytes)), "the metadata of this model"));
  LOOM_ASSIGN(const DecoderConfig back, read_gguf_config(gguf, family));
  const std::string_view what = difference(config, back);
  if (what.empty()) return check_gguf_graph(config, family);
  return unsupported(
      cat("GGUF files of '", rules.name, "' cannot say ", what, " of this ", config.architecture));
}

}  // namespace loom::core
