// See folder_check.hpp. For comparison, transformers 5.24 initializes a missing tensor randomly,
// and ignores a tensor that its class does not have; both with a warning.
#include "formats/hf/folder_check.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/text.hpp"
#include "families/family.hpp"
#include "formats/hf/encoder_names.hpp"
#include "formats/hf/names.hpp"
#include "io/json/json.hpp"

namespace loom::core {
namespace {

using Role = DecoderRole;

// "config.json says mlp_bias: false"
std::string says(const ModelSource& source, std::string_view key, bool value) {
  const std::string_view word = value ? "true" : "false";
  const Result<JsonValue> json = parse_json(source.config_json, "config.json");
  const JsonValue* field = json.ok() ? json->find(key) : nullptr;
  if (field != nullptr && !field->is_null()) return cat("config.json says ", key, ": ", word);
  return cat("config.json has no ", key, ", which ", source.config.architecture, " takes as ",
             word);
}

// The field that controls biases of this kind; empty if the class does.
std::string_view bias_field(const ModelSource& source, Role owner) {
  const DecoderFamily* family = find_family_of_class(source.config.architecture);
  if (family == nullptr) return {};
  const ConfigRules& rules = family->config;
  switch (owner) {
    case Role::q:
    case Role::k:
    case Role::v:
    case Role::o: return rules.bias == ConfigRules::Bias::read ? "attention_bias" : "";
    case Role::gate:
    case Role::up:
    case Role::down: return rules.reads_mlp_bias ? "mlp_bias" : "";
    default: return {};
  }
}

// Tensors of old files that hold constants: masks and rotary frequencies.
bool is_constant(std::string_view in_block) {
  return in_block.ends_with("rotary_emb.inv_freq") || in_block == "attn.bias" ||
         in_block == "attn.masked_bias" || in_block == "attention.bias" ||
         in_block == "attention.masked_bias";
}

// A tensor name in a block: "model.layers.3.mlp.up_proj.weight" is 3 and "mlp.up_proj.weight".
struct InBlock {
  int64_t block = -1;
  std::string_view rest;
};
std::optional<InBlock> in_block(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) {
    // The same without the prefix of models with a head.
    prefix = prefix.substr(prefix.find('.') + 1);
    if (prefix.empty() || !name.starts_with(prefix)) return {};
  }
  InBlock found;
  const std::string_view from = name.substr(prefix.size());
  const auto [end, error] = std::from_chars(from.data(), from.data() + from.size(), found.block);
  if (error != std::errc() || end == from.data() + from.size() || *end != '.') return {};
  found.rest = from.substr(static_cast<size_t>(end - from.data()) + 1);
  return found;
}

class FolderCheck {
 public:
  FolderCheck(const ModelSource& source, const SafeTensors& tensors, const TensorUses& uses)
      : source_(source), tensors_(tensors), uses_(uses) {}

  Result<std::vector<std::string>> run() {
    for (const SafeTensor& tensor : tensors_.tensors())
      if (!uses_.contains(tensor.name)) LOOM_TRY(check_unused(tensor));
    constexpr size_t kShown = 8;
    if (!unused_.empty()) {
      const size_t count = unused_.size(), more = count > kShown ? count - kShown : 0;
      unused_.resize(count - more);
      notes_.push_back(cat(count, count == 1 ? " tensor is" : " tensors are", " not used: ",
                           join(unused_, ", "), more > 0 ? cat(" and ", more, " more") : ""));
    }
    compare_types();
    return std::move(notes_);
  }

 private:
  const std::string& file_of(const SafeTensor& tensor) const {
    return tensors_.files()[tensor.file].path();
  }
  Error fault(const SafeTensor& tensor, std::string_view why) const {
    return bad_file(cat("tensor ", printable(tensor.name, 120), " ", why), file_of(tensor));
  }

  Status check_unused(const SafeTensor& tensor) {
    if (!source_.encoder && source_.config.tie_word_embeddings &&
        tensor.name == hf_head_name(source_.config))
      return check_tied(tensor);
    LOOM_TRY(check_bias(tensor));
    const std::string prefix = source_.encoder ? cat(hf_encoder_prefix(*source_.encoder),
                                                     hf_encoder_blocks(*source_.encoder))
                                               : std::string(hf_blocks(source_.config));
    const std::optional<InBlock> position = in_block(tensor.name, prefix);
    if (position && !is_constant(position->rest)) {
      if (position->block >= source_.config.num_layers)
        return fault(tensor, cat("is beyond the last layer: config.json says that there are ",
                                 source_.config.num_layers));
      return fault(tensor, cat("is not one that ", source_.config.architecture,
                               " has; correct config.json or remove the tensor"));
    }
    unused_.push_back(printable(tensor.name, 120));
    return {};
  }

  // A bias next to a weight that is used.
  Status check_bias(const SafeTensor& tensor) const {
    const std::string_view name = tensor.name;
    if (!name.ends_with(".bias")) return {};
    const auto owner = uses_.find(cat(name.substr(0, name.size() - 4), "weight"));
    if (owner == uses_.end()) return {};
    const std::string_view field = owner->second ? bias_field(source_, *owner->second) : "";
    if (field.empty())
      return fault(tensor, cat("is not used: ", source_.config.architecture, " has no bias there"));
    return fault(tensor, cat("is there, but ", says(source_, field, false)));
  }

  // A stored head of a tied model: the values must equal the embedding's.
  Status check_tied(const SafeTensor& head) const {
    const auto table = std::ranges::find_if(
        uses_, [](const auto& use) { return use.second == Role::token_embedding; });
    if (table == uses_.end()) return {};
    const SafeTensor& embedding = *tensors_.find(table->first);
    bool same = head.shape == embedding.shape;
    if (same && head.dtype == embedding.dtype) {
      same = std::memcmp(head.data.data(), embedding.data.data(), head.data.size()) == 0;
    } else if (same) {
      LOOM_ASSIGN(same, equal_values(head, embedding));
    }
    if (same) return {};
    return fault(head, cat("differs from ", embedding.name, ", but ",
                           says(source_, "tie_word_embeddings", true)));
  }

  static Result<bool> equal_values(const SafeTensor& a, const SafeTensor& b) {
    constexpr int64_t kStep = 4096;
    std::vector<float> x(kStep), y(kStep);
    for (int64_t at = 0; at < a.count(); at += kStep) {
      const int64_t count = std::min(kStep, a.count() - at);
      LOOM_TRY(SafeTensors::to_f32(a, at, count, x.data()));
      LOOM_TRY(SafeTensors::to_f32(b, at, count, y.data()));
      if (std::memcmp(x.data(), y.data(), static_cast<size_t>(count) * 4) != 0) return false;
    }
    return true;
  }

  // transformers converts weights to the type in config.json; Loom keeps them.
  void compare_types() {
    const Result<JsonValue> json = parse_json(source_.config_json, "config.json");
    if (!json.ok() || uses_.empty()) return;
    const SafeTensor* first = tensors_.find(uses_.begin()->first);
    for (const char* key : {"dtype", "torch_dtype"}) {
      const JsonValue* field = json->find(key);
      if (field == nullptr || first == nullptr) continue;
      for (const auto& [word, stored] : {std::pair("float32", "F32"), std::pair("float16", "F16"),
                                         std::pair("bfloat16", "BF16")}) {
        const std::string_view name = safe_dtype_name(first->dtype);
        const bool known = name == "F32" || name == "F16" || name == "BF16";
        if (known && field->text() == word && name != stored)
          notes_.push_back(cat("config.json says ", key, ": ", word, ", and the weights are ", name,
                               "; they stay ", name));
      }
    }
  }

  const ModelSource& source_;
  const SafeTensors& tensors_;
  const TensorUses& uses_;
  std::vector<std::string> unused_, notes_;
};

}  // namespace

std::string presence_claim(const ModelSource& source, DecoderRole role) {
  if (role == Role::head) return cat(" (", says(source, "tie_word_embeddings", false), ")");
  std::string_view field;
  switch (role) {
    case Role::q_bias: field = bias_field(source, Role::q); break;
    case Role::k_bias: field = bias_field(source, Role::k); break;
    case Role::v_bias: field = bias_field(source, Role::v); break;
    case Role::o_bias: field = bias_field(source, Role::o); break;
    case Role::gate_bias: field = bias_field(source, Role::gate); break;
    case Role::up_bias: field = bias_field(source, Role::up); break;
    case Role::down_bias: field = bias_field(source, Role::down); break;
    default: break;
  }
  return field.empty() ? std::string() : cat(" (", says(source, field, true), ")");
}

std::string shape_claim(const ModelSource& source, DecoderRole role) {
  const DecoderFamily* family = find_family_of_class(source.config.architecture);
  if (family == nullptr) return {};
  const ConfigRules& rules = family->config;
  const ConfigKeys& keys = *rules.keys;
  const std::string heads = std::string(keys.heads), width = std::string(keys.hidden);
  const std::string of_head = rules.plain_heads ? width : "head_dim";
  switch (role) {
    case Role::token_embedding:
    case Role::head: return cat(" (vocab_size, ", width, ")");
    case Role::head_bias: return " (vocab_size)";
    case Role::positions: return cat(" (", keys.positions, ", ", width, ")");
    case Role::q:
    case Role::q_bias:
    case Role::o: return cat(" (", heads, ", ", of_head, ", ", width, ")");
    case Role::k:
    case Role::v:
    case Role::k_bias:
    case Role::v_bias:
      return cat(" (", rules.plain_heads ? heads : "num_key_value_heads", ", ", of_head, ", ",
                 width, ")");
    case Role::q_norm:
    case Role::k_norm: return " (head_dim)";
    case Role::router:
    case Role::choice_bias:
    case Role::expert_gate:
    case Role::expert_up:
    case Role::expert_down: {
      if (family->experts == nullptr) return {};
      const std::string_view inner = family->experts->inner;
      return cat(" (", family->experts->count, ", ", inner.empty() ? keys.inner : inner, ", ",
                 width, ")");
    }
    case Role::gate:
    case Role::up:
    case Role::down:
    case Role::gate_bias:
    case Role::up_bias:
    case Role::mlp_sub_norm: return cat(" (", keys.inner, ", ", width, ")");
    default: return cat(" (", width, ")");
  }
}

Status check_hf_sizes(const ModelSource& source) {
  const DecoderFamily* family = find_family_of_class(source.config.architecture);
  const Result<JsonValue> json = parse_json(source.config_json, "config.json");
  if (family == nullptr || !json.ok()) return {};
  const DecoderConfig& c = source.config;
  const ConfigRules& rules = family->config;
  const ConfigKeys& keys = *rules.keys;
  const struct {
    std::string_view name, own;
    int64_t value;
  } sizes[] = {{"hidden_size", keys.hidden, c.hidden_size},
               {"num_hidden_layers", keys.layers, c.num_layers},
               {"num_attention_heads", keys.heads, c.num_heads},
               {"max_position_embeddings", keys.positions, c.max_positions},
               {"head_dim", rules.plain_heads ? "hidden_size / num_attention_heads" : "head_dim",
                c.head_dim}};
  for (const auto& size : sizes) {
    const JsonValue* field = size.name == size.own ? nullptr : json->find(size.name);
    if (field == nullptr || field->is_null()) continue;
    const auto value = field->as_int(size.name);
    if (value.ok() && *value == size.value) continue;
    return bad_file(cat("config.json says ", size.name, ": ", field->describe(), ", but ", size.own,
                        " is ", size.value),
                    source.path);
  }
  return {};
}

Result<std::vector<std::string>> check_hf_tensors(const ModelSource& source,
                                                  const SafeTensors& tensors,
                                                  const TensorUses& uses) {
  return FolderCheck(source, tensors, uses).run();
}

}  // namespace loom::core
