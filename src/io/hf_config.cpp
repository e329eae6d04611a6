// config.json of the Llama family. Each architecture is a row of kArchitectures; what its class in
// `transformers` fixes or defaults is in the row, the rest is read from the file. Positions
// (rope_scaling, rope_parameters) are in hf_rope.cpp.
// Invariant of an accepted config: every size is in 1..2^24, the heads divide, and the weights of
// the model number at most 2^48, so no size made from them by one product overflows.
#include "io/hf_config.hpp"

#include <algorithm>
#include <array>

#include "base/checked.hpp"
#include "base/text.hpp"
#include "io/config_fields.hpp"
#include "io/hf_rope.hpp"
#include "io/json.hpp"

namespace loom {
namespace {

constexpr int64_t kMaxSize = int64_t{1} << 24;
constexpr uint64_t kMaxWeights = uint64_t{1} << 48;
constexpr size_t kMaxEosTokens = 256;

enum class Bias { read, never, qkv };
enum class Window { by_size, by_switch };

struct Architecture {
  std::string_view name;
  std::string_view model_type;
  Bias bias;  // of attention; `read`: attention_bias says it for q, k, v and o
  bool reads_mlp_bias;
  bool qk_norm;
  bool kv_heads_default;   // num_key_value_heads may be absent
  int64_t head_dim;        // when absent (not null): 0 = hidden_size / num_heads
  int64_t max_positions;   // when absent
  Window window;           // by_switch: only use_sliding_window makes it count
  int64_t sliding_window;  // when absent (not null): 0 = none
};

constexpr std::array kArchitectures = {
    Architecture{"LlamaForCausalLM", "llama", Bias::read, true, false, true, 0, 2048,
                 Window::by_size, 0},
    Architecture{"MistralForCausalLM", "mistral", Bias::never, false, false, false, 0, 131072,
                 Window::by_size, 4096},
    Architecture{"Qwen2ForCausalLM", "qwen2", Bias::qkv, false, false, false, 0, 32768,
                 Window::by_switch, 4096},
    Architecture{"Qwen3ForCausalLM", "qwen3", Bias::read, false, true, false, 128, 32768,
                 Window::by_switch, 4096},
};

Result<const Architecture*> read_architecture(const ConfigFields& fields) {
  LOOM_TRY(fields.require("architectures"));
  const JsonValue& list = *fields.find("architectures");
  if (list.elements().size() != 1 || !list.elements()[0].is_string()) {
    return fields.bad("architectures", "expected a list of one name");
  }
  const std::string& name = list.elements()[0].text();
  std::vector<std::string> known;
  for (const Architecture& row : kArchitectures) {
    if (row.name == name) return &row;
    known.emplace_back(row.name);
  }
  return fields.refuse("architectures", cat(list.elements()[0].describe(),
                                            " is not supported; these are: ", join(known, ", ")));
}

Status read_names(const ConfigFields& fields, const Architecture& architecture, HfConfig& config) {
  config.architecture = architecture.name;
  config.model_type = architecture.model_type;
  LOOM_TRY(fields.read("model_type", config.model_type));
  if (config.model_type != architecture.model_type) {
    return fields.bad("model_type",
                      cat("expected \"", architecture.model_type, "\" for ", architecture.name,
                          ", found ", fields.find("model_type")->describe()));
  }
  LOOM_TRY(fields.read("hidden_act", config.hidden_act));
  constexpr std::array<std::string_view, 6> kKnown = {
      "silu", "gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "relu2"};
  if (std::find(kKnown.begin(), kKnown.end(), config.hidden_act) == kKnown.end()) {
    return fields.refuse("hidden_act", cat(fields.find("hidden_act")->describe(),
                                           " is not supported; these are: silu, gelu, gelu_new, "
                                           "gelu_pytorch_tanh, relu, relu2"));
  }
  return {};
}

Status read_size(const ConfigFields& fields, std::string_view key, int64_t& out) {
  LOOM_TRY(fields.require(key));
  return fields.read(key, out, 1, kMaxSize);
}

Status read_sizes(const ConfigFields& fields, const Architecture& architecture, HfConfig& config) {
  LOOM_TRY(read_size(fields, "hidden_size", config.hidden_size));
  LOOM_TRY(read_size(fields, "intermediate_size", config.intermediate_size));
  LOOM_TRY(read_size(fields, "num_hidden_layers", config.num_layers));
  LOOM_TRY(read_size(fields, "num_attention_heads", config.num_heads));
  LOOM_TRY(read_size(fields, "vocab_size", config.vocab_size));
  config.max_positions = architecture.max_positions;
  LOOM_TRY(fields.read("max_position_embeddings", config.max_positions, 1, kMaxSize));
  LOOM_TRY(fields.read("rms_norm_eps", config.rms_norm_eps, 1e-30, 1.0));
  return {};
}

Status read_heads(const ConfigFields& fields, const Architecture& architecture, HfConfig& config) {
  if (!architecture.kv_heads_default && !fields.has_key("num_key_value_heads")) {
    return fields.require("num_key_value_heads");
  }
  config.num_kv_heads = config.num_heads;
  LOOM_TRY(fields.read("num_key_value_heads", config.num_kv_heads, 1, kMaxSize));
  if (config.num_heads % config.num_kv_heads != 0) {
    return fields.bad(
        "num_key_value_heads",
        cat(config.num_kv_heads, " does not divide num_attention_heads ", config.num_heads));
  }
  config.head_dim = fields.has_key("head_dim") ? 0 : architecture.head_dim;
  LOOM_TRY(fields.read("head_dim", config.head_dim, 2, kMaxSize));
  if (config.head_dim == 0) {
    if (config.hidden_size % config.num_heads != 0) {
      return fields.bad("hidden_size",
                        cat(config.hidden_size, " is no multiple of ", "num_attention_heads ",
                            config.num_heads, ", and there is no head_dim"));
    }
    config.head_dim = config.hidden_size / config.num_heads;
  }
  if (config.head_dim % 2 != 0) {
    return fields.bad("head_dim", cat(config.head_dim, " is odd; rotary positions need pairs"));
  }
  if (config.num_heads * config.head_dim > kMaxSize) {
    return fields.bad("head_dim", cat(config.num_heads, " heads of ", config.head_dim,
                                      " are more than ", kMaxSize, " columns"));
  }
  return {};
}

// Biases the class of the architecture hard-codes may not be contradicted by the file.
Status read_biases(const ConfigFields& fields, const Architecture& architecture, HfConfig& config) {
  const bool fixed = architecture.bias != Bias::read;
  config.attention_bias = architecture.bias == Bias::qkv;
  const bool expected = config.attention_bias;
  LOOM_TRY(fields.read("attention_bias", config.attention_bias));
  if (fixed && config.attention_bias != expected) {
    return fields.refuse("attention_bias",
                         cat(architecture.name, " always has ", expected ? "true" : "false"));
  }
  config.attention_out_bias = !fixed && config.attention_bias;
  LOOM_TRY(fields.read("mlp_bias", config.mlp_bias));
  if (config.mlp_bias && !architecture.reads_mlp_bias) {
    return fields.refuse("mlp_bias", cat(architecture.name, " always has false"));
  }
  config.qk_norm = architecture.qk_norm;
  return fields.read("tie_word_embeddings", config.tie_word_embeddings);
}

// A window at least as long as the context is no window; a shorter one we do not compute.
Status check_window(const ConfigFields& fields, const Architecture& architecture,
                    const HfConfig& config) {
  bool counts = architecture.window == Window::by_size;
  if (!counts) LOOM_TRY(fields.read("use_sliding_window", counts));
  int64_t window = fields.has_key("sliding_window") ? 0 : architecture.sliding_window;
  if (counts) LOOM_TRY(fields.read("sliding_window", window, 1, int64_t{1} << 40));
  if (counts && window != 0 && window < config.max_positions) {
    return fields.refuse("sliding_window",
                         cat(window, fields.has_key("sliding_window") ? "" : " (the default)",
                             " is shorter than max_position_embeddings ", config.max_positions,
                             "; sliding attention is not supported"));
  }
  const JsonValue* layers = fields.find("layer_types");
  if (layers == nullptr) return {};
  if (!layers->is_array() || layers->elements().size() != static_cast<size_t>(config.num_layers)) {
    return fields.bad("layer_types", cat("expected a list of ", config.num_layers, " names"));
  }
  for (const JsonValue& layer : layers->elements()) {
    if (layer.text() != "full_attention") {
      return fields.refuse("layer_types", cat(layer.describe(), " is not supported"));
    }
  }
  return {};
}

// Settings that are harmless at one value and change the computation at every other.
Status check_switches(const ConfigFields& fields) {
  for (const char* key : {"quantization_config", "compression_config"}) {
    if (fields.find(key) != nullptr) {
      return fields.refuse(key, "quantised checkpoints are not supported; load the original one");
    }
  }
  for (const char* key : {"is_encoder_decoder", "add_cross_attention"}) {
    bool on = false;
    LOOM_TRY(fields.read(key, on));
    if (on) return fields.refuse(key, "true is not supported");
  }
  for (const char* key : {"pretraining_tp", "partial_rotary_factor"}) {
    double factor = 1.0;
    LOOM_TRY(fields.read(key, factor, 0.0, 1e6));
    if (factor != 1.0) {
      return fields.refuse(key, cat(fields.find(key)->describe(), " is not supported; only 1 is"));
    }
  }
  return {};
}

Status check_weight_count(const ConfigFields& fields, const HfConfig& config) {
  const auto u = [](int64_t v) { return static_cast<uint64_t>(v); };
  const uint64_t heads = u(2 * (config.num_heads + config.num_kv_heads)) * u(config.head_dim);
  const uint64_t columns = heads + 3 * u(config.intermediate_size);
  uint64_t layers = 0;
  uint64_t total = 0;
  if (checked_mul(u(config.hidden_size) * columns, u(config.num_layers), layers) &&
      checked_add(layers, 2 * u(config.hidden_size) * u(config.vocab_size), total) &&
      total <= kMaxWeights) {
    return {};
  }
  return fields.bad("num_hidden_layers", "these sizes make more than 2^48 weights");
}

Status add_eos(const ConfigFields& fields, const JsonValue& id, HfConfig& config) {
  const auto number = id.as_int("eos_token_id");
  if (!number.ok() || *number < 0 || *number >= config.vocab_size) {
    return fields.bad("eos_token_id", cat("expected an id from 0 to ", config.vocab_size - 1,
                                          ", found ", id.describe()));
  }
  std::vector<int64_t>& ids = config.eos_token_ids;
  if (std::find(ids.begin(), ids.end(), *number) == ids.end()) ids.push_back(*number);
  return {};
}

Status read_special_tokens(const ConfigFields& fields, HfConfig& config) {
  LOOM_TRY(fields.read("bos_token_id", config.bos_token_id, 0, config.vocab_size - 1));
  const JsonValue* eos = fields.find("eos_token_id");
  if (eos == nullptr) return {};
  if (!eos->is_array()) return add_eos(fields, *eos, config);
  if (eos->elements().size() > kMaxEosTokens) {
    return fields.bad("eos_token_id", cat("more than ", kMaxEosTokens, " ids"));
  }
  for (const JsonValue& id : eos->elements()) LOOM_TRY(add_eos(fields, id, config));
  return {};
}

Result<JsonValue> parse_object(std::string_view text, const std::string& where) {
  auto json = parse_json(text, where);
  if (!json.ok() || json->is_object()) return json;
  return bad_file(cat("expected an object, found ", json->describe()), where, json->offset());
}

// generation_config.json lies beside config.json.
std::string generation_name(const std::string& where) {
  const size_t slash = where.rfind('/');
  return (slash == std::string::npos ? "" : where.substr(0, slash + 1)) + "generation_config.json";
}

}  // namespace

Result<HfConfig> parse_hf_config(std::string_view text, std::string_view generation_text,
                                 const std::string& where) {
  LOOM_ASSIGN(const JsonValue json, parse_object(text, where));
  const ConfigFields fields(json, where);
  HfConfig config;
  LOOM_ASSIGN(const Architecture* architecture, read_architecture(fields));
  LOOM_TRY(read_names(fields, *architecture, config));
  LOOM_TRY(check_switches(fields));
  LOOM_TRY(read_sizes(fields, *architecture, config));
  LOOM_TRY(read_heads(fields, *architecture, config));
  LOOM_TRY(read_biases(fields, *architecture, config));
  LOOM_TRY(check_weight_count(fields, config));
  LOOM_TRY(check_window(fields, *architecture, config));
  LOOM_TRY(read_hf_rope(json, where, config));
  LOOM_TRY(read_special_tokens(fields, config));
  if (generation_text.empty()) return config;
  const std::string beside = generation_name(where);
  LOOM_ASSIGN(const JsonValue generation, parse_object(generation_text, beside));
  LOOM_TRY(read_special_tokens(ConfigFields(generation, beside), config));
  return config;
}

}  // namespace loom
