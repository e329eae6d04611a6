// The fixed values and defaults of a class are a row of src/families/encoder.
#include "formats/config/encoder.hpp"

#include "base/text.hpp"
#include "families/encoder_family.hpp"
#include "formats/config/config.hpp"
#include "formats/config/fields.hpp"
#include "io/json/json.hpp"

namespace loom::core {
namespace {

constexpr int64_t kMaxExtent = 1 << 24;

// The class that "architectures" names.
EncoderClass class_of(const JsonValue& config) {
  const JsonValue* list = config.find("architectures");
  if (list == nullptr || list->elements().size() != 1) return {};
  return find_encoder_class(list->elements()[0].text());
}

Status read_extent(const ConfigFields& fields, std::string_view key, int64_t& out) {
  LOOM_TRY(fields.require(key));
  return fields.read(key, out, 1, kMaxExtent);
}

Status read_act(const ConfigFields& fields, std::string_view key, std::string& out) {
  LOOM_TRY(fields.read(key, out));
  for (const char* known : {"gelu", "gelu_new", "gelu_pytorch_tanh", "relu", "silu", "tanh"})
    if (out == known) return {};
  return fields.refuse(key, cat("'", printable(out), "' is not supported"));
}

Status read_encoder_heads(const ConfigFields& fields, std::string_view key, EncoderConfig& c) {
  LOOM_TRY(read_extent(fields, key, c.num_heads));
  if (c.hidden_size % c.num_heads != 0)
    return fields.bad(key, cat(c.num_heads, " does not divide the width ", c.hidden_size));
  c.head_dim = c.hidden_size / c.num_heads;
  return {};
}

// One label, or those of id2label; the default is 2, as in `transformers`.
Status read_labels(const ConfigFields& fields, EncoderConfig& c) {
  c.labels = 2;
  LOOM_TRY(fields.read("num_labels", c.labels, 1, kMaxExtent));
  if (const JsonValue* names = fields.find("id2label"))
    c.labels = static_cast<int64_t>(names->members().size());
  return c.labels > 0 ? Status() : fields.bad("id2label", "has no label");
}

// Sizes, the norm and the activation.
Status read_structure(const ConfigFields& fields, const EncoderRules& rules, EncoderConfig& c) {
  const EncoderKeys& keys = rules.keys;
  LOOM_TRY(read_extent(fields, keys.hidden, c.hidden_size));
  LOOM_TRY(read_extent(fields, keys.inner, c.intermediate_size));
  LOOM_TRY(read_extent(fields, keys.layers, c.num_layers));
  LOOM_TRY(read_encoder_heads(fields, keys.heads, c));
  if (rules.types) {
    c.types = 2;
    LOOM_TRY(fields.read("type_vocab_size", c.types, 1, kMaxExtent));
  }
  c.norm_eps = rules.norm_eps;
  if (!keys.eps.empty()) LOOM_TRY(fields.read(keys.eps, c.norm_eps, 0, 1));
  c.head_act = rules.head_act;
  return read_act(fields, keys.act, c.hidden_act);
}

// Positions of models with a table of them.
Status read_table(const ConfigFields& fields, const EncoderRules& rules, EncoderConfig& c) {
  if (rules.absolute_positions) {
    std::string kind = "absolute";
    LOOM_TRY(fields.read("position_embedding_type", kind));
    if (kind != "absolute") return fields.refuse("position_embedding_type", "only absolute is run");
    bool decoder = false;
    LOOM_TRY(fields.read("is_decoder", decoder));
    if (decoder) return fields.refuse("is_decoder", "true is not supported");
  }
  c.position_rows = rules.max_positions;
  LOOM_TRY(fields.read("max_position_embeddings", c.position_rows, 1, kMaxExtent));
  if (rules.padded_positions) {
    int64_t padding = 1;
    LOOM_TRY(fields.read("pad_token_id", padding, 0, kMaxExtent));
    c.position_offset = padding + 1;
    if (c.position_rows <= c.position_offset)
      return fields.bad("max_position_embeddings", "leaves no position after the padding's");
  }
  c.max_positions = c.position_rows - c.position_offset;
  c.layers.resize(static_cast<size_t>(c.num_layers));
  return {};
}

// rope_parameters {"full_attention": {"rope_theta": ...}, "sliding_attention": ...} of
// transformers 5, or global_rope_theta and local_rope_theta.
Status read_thetas(const ConfigFields& fields, const std::string& where, double& global,
                   double& local) {
  LOOM_TRY(fields.read("global_rope_theta", global, 1, 1e12));
  LOOM_TRY(fields.read("local_rope_theta", local, 1, 1e12));
  const JsonValue* all = fields.find("rope_parameters");
  if (all == nullptr) return {};
  if (!all->is_object()) return fields.bad("rope_parameters", "expected an object");
  for (const auto& [kind, theta] :
       {std::pair("full_attention", &global), std::pair("sliding_attention", &local)}) {
    const JsonValue* one = all->find(kind);
    if (one == nullptr || one->is_null()) continue;
    const ConfigFields own(*one, where, cat("rope_parameters.", kind, "."));
    std::string type = "default";
    LOOM_TRY(own.read("rope_type", type));
    if (type != "default") return own.refuse("rope_type", "only default is supported");
    LOOM_TRY(own.read("rope_theta", *theta, 1, 1e12));
  }
  return {};
}

Status read_modern_layers(const ConfigFields& fields, const std::string& where, EncoderConfig& c) {
  int64_t every = 3, local = 128;
  double global_theta = 160000, local_theta = 10000;
  LOOM_TRY(fields.read("global_attn_every_n_layers", every, 1, kMaxExtent));
  LOOM_TRY(fields.read("local_attention", local, 1, kMaxExtent));
  LOOM_TRY(read_thetas(fields, where, global_theta, local_theta));
  const JsonValue* types = fields.find("layer_types");
  if (types != nullptr && static_cast<int64_t>(types->elements().size()) != c.num_layers)
    return fields.bad("layer_types", "expected one for each layer");
  for (int64_t i = 0; i < c.num_layers; ++i) {
    bool global = i % every == 0;
    if (types != nullptr)
      global = types->elements()[static_cast<size_t>(i)].text() == "full_attention";
    // local_attention counts both sides: positions up to half of it away are visible.
    c.layers.push_back({global ? 0 : local / 2 + 1, global ? global_theta : local_theta});
  }
  return {};
}

// Models with norms before attention, gated units and rotary positions.
Status read_modern(const ConfigFields& fields, const std::string& where, const EncoderRules& rules,
                   EncoderConfig& c) {
  if (c.head_dim % 2 != 0)
    return fields.bad("hidden_size", "rotary positions need an even number of values per head");
  c.pre_norm = true;
  c.attention_bias = c.mlp_bias = c.head_bias = false;
  LOOM_TRY(fields.read("attention_bias", c.attention_bias));
  LOOM_TRY(fields.read("mlp_bias", c.mlp_bias));
  LOOM_TRY(fields.read("classifier_bias", c.head_bias));
  for (const std::string_view key : {"attention_bias", "mlp_bias"}) {
    bool on = false;
    LOOM_TRY(fields.read(key, on));
    if (on) return fields.refuse(key, "true is not supported");
  }
  LOOM_TRY(read_act(fields, "classifier_activation", c.head_act));
  c.head_norm = true;
  std::string pooling = "cls";
  LOOM_TRY(fields.read("classifier_pooling", pooling));
  if (pooling != "cls" && pooling != "mean")
    return fields.refuse("classifier_pooling", cat("'", printable(pooling), "' is not supported"));
  c.head_pooling = pooling == "cls" ? EncoderPooling::cls : EncoderPooling::mean;
  c.max_positions = rules.max_positions;
  LOOM_TRY(fields.read("max_position_embeddings", c.max_positions, 1, kMaxExtent));
  return read_modern_layers(fields, where, c);
}

// Sizes that descriptions of models need for any model.
DecoderConfig common_config(const EncoderConfig& e) {
  DecoderConfig c;
  c.architecture = e.architecture;
  c.model_type = e.model_type;
  c.hidden_size = e.hidden_size;
  c.intermediate_size = e.intermediate_size;
  c.num_layers = e.num_layers;
  c.num_heads = c.num_kv_heads = e.num_heads;
  c.head_dim = e.head_dim;
  c.vocab_size = e.vocab_size;
  c.max_positions = e.max_positions;
  return c;
}

}  // namespace

bool is_encoder_config(std::string_view config_json) {
  const Result<JsonValue> json = parse_json(config_json, "config.json");
  return json.ok() && class_of(*json).family != nullptr;
}

Result<EncoderConfig> parse_encoder_config(std::string_view config_json, const std::string& where) {
  LOOM_ASSIGN(const JsonValue json, parse_json(config_json, where));
  const EncoderClass found = class_of(json);
  if (found.family == nullptr) return unsupported("names no encoder that is read here", where);
  const ConfigFields fields(json, where);
  EncoderConfig c;
  const EncoderRules& rules = found.family->config;
  c.architecture = json.find("architectures")->elements()[0].text();
  c.model_type = found.family->model_type;
  LOOM_TRY(read_extent(fields, "vocab_size", c.vocab_size));
  LOOM_TRY(read_structure(fields, rules, c));
  LOOM_TRY(rules.modern ? read_modern(fields, where, rules, c) : read_table(fields, rules, c));
  if (c.num_layers > 4096) return fields.bad("num_hidden_layers", "more than 4096 layers");
  if (found.scores) LOOM_TRY(read_labels(fields, c));
  return c;
}

Result<DecoderConfig> read_model_config(std::string_view config_json,
                                        std::string_view generation_json,
                                        const std::string& where) {
  if (!is_encoder_config(config_json)) return parse_hf_config(config_json, generation_json, where);
  LOOM_ASSIGN(const EncoderConfig encoder, parse_encoder_config(config_json, where));
  return common_config(encoder);
}

Status read_model_config(const std::string& where, ModelSource& out) {
  if (!is_encoder_config(out.config_json)) {
    LOOM_ASSIGN(out.config, parse_hf_config(out.config_json, out.generation_json, where));
    return {};
  }
  LOOM_ASSIGN(out.encoder, parse_encoder_config(out.config_json, where));
  out.config = common_config(*out.encoder);
  return {};
}

}  // namespace loom::core
