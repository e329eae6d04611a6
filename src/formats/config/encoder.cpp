// Source of every default: configuration_*.py and modeling_*.py of transformers 5.
#include "formats/config/encoder.hpp"

#include <array>

#include "base/text.hpp"
#include "formats/config/config.hpp"
#include "formats/config/fields.hpp"
#include "io/json/json.hpp"

namespace loom::core {
namespace {

constexpr int64_t kMaxExtent = 1 << 24;

struct EncoderClass {
  std::string_view name, model_type;
  EncoderFamily family;
  bool scores = false;  // has a classifier head
};
constexpr std::array kEncoderClasses = {
    EncoderClass{"BertModel", "bert", EncoderFamily::bert},
    EncoderClass{"BertForMaskedLM", "bert", EncoderFamily::bert},
    EncoderClass{"BertForSequenceClassification", "bert", EncoderFamily::bert, true},
    EncoderClass{"RobertaModel", "roberta", EncoderFamily::roberta},
    EncoderClass{"RobertaForMaskedLM", "roberta", EncoderFamily::roberta},
    EncoderClass{"RobertaForSequenceClassification", "roberta", EncoderFamily::roberta, true},
    EncoderClass{"XLMRobertaModel", "xlm-roberta", EncoderFamily::roberta},
    EncoderClass{"XLMRobertaForMaskedLM", "xlm-roberta", EncoderFamily::roberta},
    EncoderClass{"XLMRobertaForSequenceClassification", "xlm-roberta", EncoderFamily::roberta,
                 true},
    EncoderClass{"DistilBertModel", "distilbert", EncoderFamily::distilbert},
    EncoderClass{"DistilBertForMaskedLM", "distilbert", EncoderFamily::distilbert},
    EncoderClass{"DistilBertForSequenceClassification", "distilbert", EncoderFamily::distilbert,
                 true},
    EncoderClass{"ModernBertModel", "modernbert", EncoderFamily::modernbert},
    EncoderClass{"ModernBertForMaskedLM", "modernbert", EncoderFamily::modernbert},
    EncoderClass{"ModernBertForSequenceClassification", "modernbert", EncoderFamily::modernbert,
                 true}};

const EncoderClass* class_of(const JsonValue& config) {
  const JsonValue* list = config.find("architectures");
  if (list == nullptr || list->elements().size() != 1) return nullptr;
  for (const EncoderClass& row : kEncoderClasses)
    if (row.name == list->elements()[0].text()) return &row;
  return nullptr;
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

Status read_bert(const ConfigFields& fields, EncoderConfig& c) {
  LOOM_TRY(read_extent(fields, "hidden_size", c.hidden_size));
  LOOM_TRY(read_extent(fields, "intermediate_size", c.intermediate_size));
  LOOM_TRY(read_extent(fields, "num_hidden_layers", c.num_layers));
  LOOM_TRY(read_encoder_heads(fields, "num_attention_heads", c));
  c.types = 2;
  LOOM_TRY(fields.read("type_vocab_size", c.types, 1, kMaxExtent));
  LOOM_TRY(fields.read("layer_norm_eps", c.norm_eps, 0, 1));
  LOOM_TRY(read_act(fields, "hidden_act", c.hidden_act));
  std::string kind = "absolute";
  LOOM_TRY(fields.read("position_embedding_type", kind));
  if (kind != "absolute") return fields.refuse("position_embedding_type", "only absolute is run");
  c.position_rows = 512;
  LOOM_TRY(fields.read("max_position_embeddings", c.position_rows, 1, kMaxExtent));
  if (c.family == EncoderFamily::roberta) {
    int64_t padding = 1;
    LOOM_TRY(fields.read("pad_token_id", padding, 0, kMaxExtent));
    c.position_offset = padding + 1;
    if (c.position_rows <= c.position_offset)
      return fields.bad("max_position_embeddings", "leaves no position after the padding's");
  }
  bool decoder = false;
  LOOM_TRY(fields.read("is_decoder", decoder));
  if (decoder) return fields.refuse("is_decoder", "true is not supported");
  c.max_positions = c.position_rows - c.position_offset;
  c.layers.resize(static_cast<size_t>(c.num_layers));
  return {};
}

Status read_distilbert(const ConfigFields& fields, EncoderConfig& c) {
  LOOM_TRY(read_extent(fields, "dim", c.hidden_size));
  LOOM_TRY(read_extent(fields, "hidden_dim", c.intermediate_size));
  LOOM_TRY(read_extent(fields, "n_layers", c.num_layers));
  LOOM_TRY(read_encoder_heads(fields, "n_heads", c));
  LOOM_TRY(read_act(fields, "activation", c.hidden_act));
  c.position_rows = 512;
  LOOM_TRY(fields.read("max_position_embeddings", c.position_rows, 1, kMaxExtent));
  c.max_positions = c.position_rows;
  c.head_act = "relu";
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

Status read_modernbert(const ConfigFields& fields, const std::string& where, EncoderConfig& c) {
  LOOM_TRY(read_extent(fields, "hidden_size", c.hidden_size));
  LOOM_TRY(read_extent(fields, "intermediate_size", c.intermediate_size));
  LOOM_TRY(read_extent(fields, "num_hidden_layers", c.num_layers));
  LOOM_TRY(read_encoder_heads(fields, "num_attention_heads", c));
  if (c.head_dim % 2 != 0)
    return fields.bad("hidden_size", "rotary positions need an even number of values per head");
  LOOM_TRY(read_act(fields, "hidden_activation", c.hidden_act));
  c.norm_eps = 1e-5;
  LOOM_TRY(fields.read("norm_eps", c.norm_eps, 0, 1));
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
  c.head_act = "gelu";
  LOOM_TRY(read_act(fields, "classifier_activation", c.head_act));
  c.head_norm = true;
  std::string pooling = "cls";
  LOOM_TRY(fields.read("classifier_pooling", pooling));
  if (pooling != "cls" && pooling != "mean")
    return fields.refuse("classifier_pooling", cat("'", printable(pooling), "' is not supported"));
  c.head_pooling = pooling == "cls" ? EncoderPooling::cls : EncoderPooling::mean;
  c.max_positions = 8192;
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
  return json.ok() && class_of(*json) != nullptr;
}

Result<EncoderConfig> parse_encoder_config(std::string_view config_json, const std::string& where) {
  LOOM_ASSIGN(const JsonValue json, parse_json(config_json, where));
  const EncoderClass* row = class_of(json);
  if (row == nullptr) return unsupported("names no encoder that is read here", where);
  const ConfigFields fields(json, where);
  EncoderConfig c;
  c.family = row->family;
  c.architecture = row->name;
  c.model_type = row->model_type;
  LOOM_TRY(read_extent(fields, "vocab_size", c.vocab_size));
  switch (c.family) {
    case EncoderFamily::distilbert: LOOM_TRY(read_distilbert(fields, c)); break;
    case EncoderFamily::modernbert: LOOM_TRY(read_modernbert(fields, where, c)); break;
    default: LOOM_TRY(read_bert(fields, c)); break;
  }
  if (c.num_layers > 4096) return fields.bad("num_hidden_layers", "more than 4096 layers");
  if (row->scores) LOOM_TRY(read_labels(fields, c));
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
