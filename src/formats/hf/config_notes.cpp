// See config_notes.hpp. A field is unused if the reader accepts any value of it. So the reader
// itself determines the used fields, and no second list is needed.
#include "formats/hf/config_notes.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "families/family.hpp"
#include "formats/config/encoder.hpp"
#include "io/json/json.hpp"

namespace loom::core {
namespace {

// Fields that change no logits: training, labels of other heads, bookkeeping.
constexpr std::array<std::string_view, 69> kWithoutEffect = {"_attn_implementation",
                                                             "_commit_hash",
                                                             "_name_or_path",
                                                             "attn_implementation",
                                                             "activation_dropout",
                                                             "attention_dropout",
                                                             "attention_probs_dropout_prob",
                                                             "attn_pdrop",
                                                             "bos_token_id",
                                                             "cache_implementation",
                                                             "chunk_size_feed_forward",
                                                             "classifier_dropout",
                                                             "cls_token_id",
                                                             "decoder_bias",
                                                             "decoder_start_token_id",
                                                             "deterministic_flash_attn",
                                                             "dropout",
                                                             "dtype",
                                                             "embd_pdrop",
                                                             "embedding_dropout",
                                                             "eos_token_id",
                                                             "finetuning_task",
                                                             "gradient_checkpointing",
                                                             "hidden_dropout",
                                                             "hidden_dropout_prob",
                                                             "id2label",
                                                             "init_std",
                                                             "initializer_cutoff_factor",
                                                             "initializer_range",
                                                             "input_jitter_noise",
                                                             "label2id",
                                                             "layerdrop",
                                                             "mask_token_id",
                                                             "mlp_dropout",
                                                             "model_type",
                                                             "n_ctx",
                                                             "no_rope_layer_interval",
                                                             "num_labels",
                                                             "original_max_position_embeddings",
                                                             "output_attentions",
                                                             "output_hidden_states",
                                                             "output_router_logits",
                                                             "pad_token_id",
                                                             "prefix",
                                                             "pretraining_tp",
                                                             "problem_type",
                                                             "qa_dropout",
                                                             "reference_compile",
                                                             "reorder_and_upcast_attn",
                                                             "repad_logits_with_grad",
                                                             "resid_pdrop",
                                                             "residual_dropout",
                                                             "return_dict",
                                                             "router_aux_loss_coef",
                                                             "router_jitter_noise",
                                                             "sep_token_id",
                                                             "seq_classif_dropout",
                                                             "sinusoidal_pos_embds",
                                                             "sparse_pred_ignore_index",
                                                             "sparse_prediction",
                                                             "task_specific_params",
                                                             "tokenizer_class",
                                                             "torch_dtype",
                                                             "torchscript",
                                                             "transformers_version",
                                                             "unk_token_id",
                                                             "use_bfloat16",
                                                             "use_cache",
                                                             "_sliding_window_pattern"};

bool without_effect(std::string_view key) {
  return key.starts_with("summary_") ||
         std::ranges::find(kWithoutEffect, key) != kWithoutEffect.end();
}

// Does the reader accept config.json if `key` has a value that no field may have?
bool accepts_any(const JsonValue& config, std::string_view key) {
  JsonValue changed = JsonValue::object();
  for (const auto& [name, value] : config.members())
    changed.add(name, name == key ? JsonValue::array({JsonValue::array()}) : value);
  return read_model_config(dump_json(changed), "", "config.json").ok();
}

// A disabled switch has no effect. Files with a disabled window still state its length.
bool switched_off(const ModelSource& source, std::string_view key, const JsonValue& value) {
  if (value.is_bool() && !*value.as_bool(key)) return true;
  if (source.encoder && key == "tie_word_embeddings") return true;  // it has no head of words
  const DecoderFamily* family = find_family_of_class(source.config.architecture);
  return family != nullptr && family->config.window_switch &&
         (key == "sliding_window" || key == "max_window_layers");
}

std::vector<int64_t> ids_of(const JsonValue& file, std::string_view key) {
  std::vector<int64_t> ids;
  const JsonValue* value = file.find(key);
  if (value == nullptr) return ids;
  const auto add = [&](const JsonValue& id) {
    if (const auto number = id.as_int(key); number.ok()) ids.push_back(*number);
  };
  if (!value->is_array()) add(*value);
  for (const JsonValue& id : value->elements()) add(id);
  std::ranges::sort(ids);
  return ids;
}

// Ids that end a text: neither list holds the other. Both files count here.
void compare_ends(const JsonValue& config, const JsonValue& generation,
                  std::vector<std::string>& notes) {
  const std::vector<int64_t> a = ids_of(config, "eos_token_id"),
                             b = ids_of(generation, "eos_token_id");
  if (a.empty() || b.empty() || std::ranges::includes(b, a) || std::ranges::includes(a, b)) return;
  notes.push_back(cat("eos_token_id is ", a[0], " in config.json and ", b[0],
                      " in generation_config.json; both end a text"));
}

}  // namespace

std::vector<std::string> hf_config_notes(const ModelSource& source) {
  std::vector<std::string> notes, unused;
  const Result<JsonValue> config = parse_json(source.config_json, "config.json");
  if (!config.ok()) return notes;
  for (const auto& [key, value] : config->members()) {
    const bool asks = !value.is_null() && !without_effect(key) && !switched_off(source, key, value);
    if (asks && accepts_any(*config, key)) unused.push_back(printable(key));
  }
  if (!unused.empty())
    notes.push_back(cat("config.json has fields that ", source.config.architecture,
                        " does not use: ", join(unused, ", ")));
  if (source.generation_json.empty()) return notes;
  const Result<JsonValue> generation = parse_json(source.generation_json, "generation_config.json");
  if (generation.ok()) compare_ends(*config, *generation, notes);
  return notes;
}

}  // namespace loom::core
