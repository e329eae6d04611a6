#include "evolve/merging/merge.hpp"

#include <algorithm>
#include <unordered_map>

#include "base/text.hpp"
#include "bridge/finite_weight.hpp"
#include "convert/description_diff.hpp"
#include "evolve/merging/class_order.hpp"

namespace loom::core {
namespace {

// Checks that `other` has exactly the parameters of `like`, with equal shapes and divisions.
Status same_parameters(const NamedModel& like, const Network& a, const NamedModel& other) {
  if ((like.model->decoder == nullptr) != (other.model->decoder == nullptr))
    return invalid(cat("a language model and a network are not merged; the first is ", like.path),
                   other.path);
  LOOM_ASSIGN(const Network b, bare_network(*other.model));
  const auto divisions = other_divisions(a, b);
  if (!divisions.empty())
    return invalid(
        cat("is another network than ", like.path, ": its layer ", divisions.begin()->first,
            " has ", divisions.begin()->second, "; merge models that divide their weights alike"),
        other.path);
  std::unordered_map<std::string_view, const Param*> there;
  for (const Param& param : b.params()) there.emplace(param.path, &param);
  for (const Param& param : a.params()) {
    const auto found = there.find(param.path);
    if (found == there.end())
      return invalid(cat("is another network than ", like.path, ": it has no ", param.path),
                     other.path);
    const Shape& shape = found->second->spec.shape;
    if (!(shape == param.spec.shape))
      return invalid(cat("is another network than ", like.path, ": its ", param.path, " is ",
                         shape.str(), ", not ", param.spec.shape.str()),
                     other.path);
  }
  if (b.params().size() == a.params().size()) return {};
  for (const Param& param : b.params()) {
    if (a.find_param(param.path) < 0)
      return invalid(cat("is another network than ", like.path, ", which has no ", param.path),
                     other.path);
  }
  return {};
}

// Notes other differences of two models with equal parameters; those of the first model are kept.
Status note_differences(const NamedModel& like, const NamedModel& other,
                        std::vector<std::string>& notes) {
  const auto differs = [&](std::string_view what) {
    notes.push_back(cat(other.path, ": ", what, "; that of ", like.path, " is kept"));
  };
  LOOM_ASSIGN(const auto described, compare_descriptions(*like.model, *other.model));
  const auto layer = [](const TensorDifference& d) { return d.name.ends_with(" layer"); };
  if (std::ranges::any_of(described, layer)) differs("has other settings of its layers");
  if (like.model->decoder != nullptr) {
    const ModelSource &a = *like.model->decoder, &b = *other.model->decoder;
    if (tokenizer_text(a) != tokenizer_text(b)) differs("has another tokenizer");
    if (a.config.rope_theta != b.config.rope_theta) differs("has another rope_theta");
    return {};
  }
  const NetworkSource &a = *like.model->network, &b = *other.model->network;
  LOOM_ASSIGN(const Normalization na, normalization_of(a));
  LOOM_ASSIGN(const Normalization nb, normalization_of(b));
  if (na.shift != nb.shift || na.scale != nb.scale) differs("normalizes its inputs otherwise");
  return {};
}

// Computes the values of one parameter after the other.
class Merger {
 public:
  Merger(std::vector<NamedModel> models, NamedModel base, MergeRecipe recipe)
      : models_(std::move(models)), base_(std::move(base)), recipe_(std::move(recipe)) {}

  std::unordered_map<std::string, int64_t> index_of;  // parameter indices, by path
  std::vector<RowOrders> orders;                      // of the models
  std::function<bool(uint64_t done, uint64_t total)> progress;
  uint64_t total = 0;

  Status make(const Param& param, std::vector<float>& out) {
    std::vector<std::vector<float>> values(models_.size());
    std::vector<std::span<const float>> views;
    for (size_t m = 0; m < models_.size(); ++m) {
      LOOM_TRY(read(models_[m], param, values[m]));
      reorder_rows(orders[m], param, values[m]);
      views.emplace_back(values[m]);
    }
    std::vector<float> base;
    if (base_.model != nullptr) LOOM_TRY(read(base_, param, base));
    out.resize(static_cast<size_t>(param.spec.shape.count()));
    const auto input_index = index_of.find(param.path);
    if (input_index == index_of.end()) return invalid(cat("has no parameter ", param.path));
    merge_values(recipe_, views, base, static_cast<uint64_t>(input_index->second), out);
    return check_finite(param, out);
  }

 private:
  Status read(const NamedModel& model, const Param& param, std::vector<float>& out) const {
    LOOM_ASSIGN(const SourceWeight weight, finite_weight(source_of(*model.model), param));
    return all_values(weight, param.spec, out);
  }
  Status check_finite(const Param& param, const std::vector<float>& values) {
    const auto bad =
        std::find_if(values.begin(), values.end(), [](float v) { return !(v - v == 0); });
    if (bad != values.end())
      return invalid(cat("merging ", param.path, " gives a value that is not finite, at ",
                         bad - values.begin(), "; are all models whole?"));
    done_ = std::min(total, done_ + values.size());
    if (progress && !progress(done_, total)) return make_error(Code::cancelled, "stopped");
    return {};
  }

  std::vector<NamedModel> models_;
  NamedModel base_;
  MergeRecipe recipe_;
  uint64_t done_ = 0;
};

}  // namespace

Result<OpenedModel> merged_model(const std::vector<NamedModel>& models, const NamedModel& base,
                                 const MergeRecipe& recipe,
                                 std::function<bool(uint64_t done, uint64_t total)> progress,
                                 std::vector<std::string>& notes) {
  const NamedModel& like = base.model != nullptr ? base : models[0];
  LOOM_TRY(check_weights(*like.model, like.path));
  LOOM_ASSIGN(const Network network, bare_network(*like.model));
  std::vector<RowOrders> orders(models.size());
  for (size_t m = 0; m < models.size(); ++m) {
    const NamedModel& model = models[m];
    if (model.model == like.model) continue;
    LOOM_TRY(check_weights(*model.model, model.path));
    LOOM_TRY(same_parameters(like, network, model));
    LOOM_TRY(note_differences(like, model, notes));
    LOOM_TRY(same_columns(like, model));
    LOOM_ASSIGN(orders[m], match_by_name(like, model, network, notes));
  }
  auto merger = std::make_shared<Merger>(models, base, recipe);
  for (const Param& param : network.params())
    merger->index_of.emplace(param.path, static_cast<int64_t>(merger->index_of.size()));
  merger->orders = std::move(orders);
  merger->total = static_cast<uint64_t>(network.param_count());
  merger->progress = std::move(progress);
  return made_model(like.model, [merger](const Param& param, std::vector<float>& out) {
    return merger->make(param, out);
  });
}

}  // namespace loom::core
