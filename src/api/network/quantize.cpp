#include "api/network/quantize.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "convert/packing.hpp"
#include "convert/quantize/target_bits.hpp"
#include "llm/decoder.hpp"

namespace loom::core {
namespace {

bool asked(const loom::ConvertOptions& o) {
  return !o.recipe.empty() || !o.calibration.empty() || !o.importance.empty() || o.target_bits > 0;
}

Status check(const loom::ConvertOptions& o, const OpenedModel& model) {
  if (model.decoder == nullptr || model.decoder->encoder)
    return unsupported(
        "recipes, calibration and target sizes are for decoders; leave them out, choose a dtype");
  const int types = (o.recipe.empty() ? 0 : 1) + (o.dtype ? 1 : 0) + (o.target_bits > 0 ? 1 : 0);
  if (types > 1) return invalid("give one of dtype, recipe and target_bits");
  if (!o.calibration.empty() && !o.importance.empty())
    return invalid("give a calibration text or an importance matrix, not both");
  if (o.target_bits > 0 && o.calibration.empty())
    return invalid("target_bits needs a calibration text, on which losses are measured");
  if (!o.save_importance.empty() && o.calibration.empty())
    return invalid("save_importance needs a calibration text");
  if (o.per_tensor && (!o.calibration.empty() || !o.importance.empty()))
    return unsupported("one scale per matrix is not calibrated; leave per_tensor out");
  return {};
}

}  // namespace

DType Quantization::chosen_type(const Param& param, DType stored) const {
  if (const std::optional<DType> rule = ruled(param, types_)) return *rule;
  if (const auto found = chosen_.find(param.path); found != chosen_.end()) return found->second;
  if (recipe_ != nullptr) return recipe_dtype(*recipe_, param, source_->config, stored);
  return types_.dtype ? model_dtype(param, *source_, *types_.dtype) : stored;
}

DType Quantization::type_of(const Param& param, DType stored) const {
  const DType dtype = chosen_type(param, stored);
  return gguf_ ? narrower_blocks(dtype, param.spec.shape[1]) : dtype;
}

Status Quantization::read_text(const loom::ConvertOptions& options, Engine::Impl& engine) {
  if (options.calibration.empty()) return {};
  TextOptions reading;
  reading.windows = options.calibration_windows;
  if (options.progress) {
    reading.progress = [&options](int64_t done, int64_t total) {
      return options.progress("calibrating", static_cast<uint64_t>(done),
                              static_cast<uint64_t>(total));
    };
  }
  LOOM_ASSIGN(
      text_, TextMoments::create(*source_, options.calibration, reading, *engine.ops, engine.pool));
  if (options.save_importance.empty()) return {};
  LOOM_ASSIGN(const Importance importance, text_->importance());
  return write_importance(options.save_importance, importance, *source_);
}

Status Quantization::apply(const loom::ConvertOptions& options, const std::string& output,
                           Engine::Impl& engine, OpenedModel& model, WriteOptions& how) {
  gguf_ = to_lower_ascii(output).ends_with(".gguf");
  const bool rules = gguf_ && model.decoder != nullptr && !how.rules.empty();
  if (!asked(options) && !rules) return {};
  LOOM_TRY(check(options, model));
  source_ = std::move(model.decoder);
  types_ = how;
  if (!options.recipe.empty()) {
    LOOM_ASSIGN(recipe_, parse_recipe(options.recipe));
  }
  if (!options.importance.empty()) {
    LOOM_ASSIGN(importance_, read_importance(options.importance, *source_));
  }
  LOOM_TRY(read_text(options, engine));
  QuantizePlan plan;
  plan.dtype = [this](const Param& param, DType stored) { return type_of(param, stored); };
  plan.text = text_ ? &*text_ : nullptr;
  plan.importance = importance_ ? &*importance_ : nullptr;
  plan.feedback = options.calibration_method == loom::CalibrationMethod::gptq;
  plan.damping = options.damping;
  plan.pool = &engine.pool;
  LOOM_TRY(choose_types(options));
  if (options.note) LOOM_TRY(note_fallbacks(options));
  model.decoder = quantized_source(*source_, std::move(plan));
  how.dtype = {};
  how.rules.clear();
  return {};
}

Status Quantization::choose_types(const loom::ConvertOptions& options) {
  if (options.target_bits <= 0) return {};
  TargetOptions target;
  target.bits = options.target_bits;
  target.written = [this](DType dtype, int64_t cols) {
    return gguf_ ? narrower_blocks(dtype, cols) : dtype;
  };
  if (options.progress) {
    target.progress = [&options](int64_t done, int64_t total) {
      return options.progress("measuring", static_cast<uint64_t>(done),
                              static_cast<uint64_t>(total));
    };
  }
  LOOM_ASSIGN(chosen_, types_for_bits(*source_, *text_, target));
  return {};
}

// One line about the matrices whose rows are not a multiple of the blocks of their type.
Status Quantization::note_fallbacks(const loom::ConvertOptions& options) {
  if (!gguf_) return {};
  LOOM_ASSIGN(const GridSpec grid, decoder_grid(source_->config));
  LOOM_ASSIGN(const Network network, Network::finalize(grid, Shape{1, 1}));
  int64_t count = 0;
  std::string first;
  for (const Param& param : network.params()) {
    if (!param.spec.matrix()) continue;
    LOOM_ASSIGN(const SourceWeight weight, source_->weight(param));
    const DType chosen = chosen_type(param, weight.stored);
    const DType written = type_of(param, weight.stored);
    if (chosen == written) continue;
    if (count++ == 0)
      first = cat(param.path, " has rows of ", param.spec.shape[1], " values, so it is ",
                  dtype_name(written), ", not ", dtype_name(chosen));
  }
  if (count > 1) first += cat("; and ", count - 1, " more");
  if (count > 0) options.note(first);
  return {};
}

}  // namespace loom::core
