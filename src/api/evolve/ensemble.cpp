#include "loom/ensemble.hpp"

#include <algorithm>

#include "api/network/network_impl.hpp"
#include "base/text.hpp"
#include "evolve/groups/votes.hpp"
#include "evolve/merging/class_order.hpp"
#include "loom/trainer.hpp"

namespace loom::core {
namespace {

// Answers of one shape [n, classes], as float32 without gaps.
Result<std::vector<loom::Tensor>> answers_of(const std::vector<loom::Tensor>& shares) {
  if (shares.empty()) return invalid("there are no models to ask");
  std::vector<loom::Tensor> out;
  for (size_t m = 0; m < shares.size(); ++m) {
    if (shares[m].shape() != shares[0].shape() || shares[m].empty())
      return invalid(cat("model ", m, " answers ", loom::shape_text(shares[m].shape()),
                         ", the first ", loom::shape_text(shares[0].shape())));
    LOOM_ASSIGN(loom::Tensor floats, shares[m].to(loom::DType::float32));
    out.push_back(std::move(floats));
  }
  return out;
}

}  // namespace
}  // namespace loom::core

namespace loom {

Result<std::vector<ComplementaryPair>> complementary_pairs(const std::vector<Mask>& masks,
                                                           double least) {
  return core::find_pairs(masks, least);
}

Result<Cover> greedy_cover(const std::vector<Mask>& masks, int64_t most) {
  return core::cover_greedily(masks, most);
}

Result<double> mask_similarity(const Mask& a, const Mask& b) {
  return core::cosine_of_masks(a, b);
}

Result<std::vector<int64_t>> match_classes(const std::vector<std::string>& names,
                                           const std::vector<std::string>& other) {
  return core::class_order(names, other);
}

Result<std::vector<int64_t>> majority_vote(const std::vector<std::vector<int64_t>>& votes,
                                           const std::vector<double>& weights) {
  return core::vote(votes, weights);
}

Result<Tensor> soft_vote(const std::vector<Tensor>& shares, const std::vector<double>& weights) {
  LOOM_ASSIGN(const std::vector<Tensor> answers, core::answers_of(shares));
  std::vector<std::span<const float>> values;
  for (const Tensor& answer : answers) {
    LOOM_ASSIGN(const std::span<const float> some, answer.values<float>());
    values.push_back(some);
  }
  LOOM_ASSIGN(const std::vector<float> mean, core::weighted_mean(values, weights));
  return Tensor::copy(mean, shares[0].shape());
}

Result<std::vector<int64_t>> best_classes(const Tensor& scores) {
  if (scores.rank() != 2 || scores.empty())
    return core::invalid(core::cat("scores ", shape_text(scores.shape()), ": give [n, classes]"));
  LOOM_ASSIGN(const Tensor floats, scores.to(DType::float32));
  LOOM_ASSIGN(const std::span<const float> values, floats.values<float>());
  const auto width = static_cast<size_t>(scores.shape()[1]);
  std::vector<int64_t> out;
  for (size_t at = 0; at < values.size(); at += width) {
    const auto row = values.subspan(at, width);
    out.push_back(std::max_element(row.begin(), row.end()) - row.begin());
  }
  return out;
}

Result<Tensor> stack_inputs(const std::vector<Tensor>& shares) {
  LOOM_ASSIGN(const std::vector<Tensor> answers, core::answers_of(shares));
  if (answers[0].rank() != 2)
    return core::invalid(
        core::cat("answers ", shape_text(answers[0].shape()), ": give [n, classes]"));
  const int64_t n = answers[0].shape()[0], each = answers[0].shape()[1];
  const auto models = static_cast<int64_t>(answers.size());
  LOOM_ASSIGN(Tensor out, Tensor::zeros({n, models * each}));
  LOOM_ASSIGN(const std::span<float> to, out.mutable_values<float>());
  for (int64_t m = 0; m < models; ++m) {
    LOOM_ASSIGN(const std::span<const float> from, answers[static_cast<size_t>(m)].values<float>());
    for (int64_t i = 0; i < n; ++i)
      std::copy_n(from.begin() + i * each, each, to.begin() + (i * models + m) * each);
  }
  return out;
}

Result<Network> stack(const std::vector<Tensor>& shares, const std::vector<int64_t>& labels,
                      const StackOptions& options) {
  LOOM_ASSIGN(const Tensor inputs, stack_inputs(shares));
  const int64_t n = inputs.shape()[0], classes = shares[0].shape()[1];
  if (static_cast<int64_t>(labels.size()) != n)
    return core::invalid(core::cat(labels.size(), " labels for ", n, " samples"));
  if (classes < 2) return core::invalid("stacking needs two classes or more");
  std::vector<int32_t> small;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0 || labels[i] >= classes)
      return core::invalid(
          core::cat("label ", labels[i], " of sample ", i, " must be from 0 to ", classes - 1));
    small.push_back(static_cast<int32_t>(labels[i]));
  }
  LOOM_ASSIGN(const Tensor y, Tensor::copy(small, {n}));
  LOOM_ASSIGN(const Dataset data, Dataset::from_arrays(inputs, y));
  LOOM_ASSIGN(Network judge,
              Network::sequential(
                  {Dense{.in = inputs.shape()[1], .out = classes}},
                  {.input = {inputs.shape()[1]}, .seed = options.seed, .engine = options.engine}));
  TrainerOptions how;
  how.loss = Loss::cross_entropy;
  how.optimizer.kind = OptimizerKind::lbfgs;
  how.optimizer.weight_decay = options.weight_decay;
  how.rate = 1;
  how.seed = options.seed;
  LOOM_ASSIGN(Trainer trainer, Trainer::create(judge, how));
  FitOptions fit;
  fit.epochs = options.rounds;
  fit.keep_best = true;
  LOOM_TRY(trainer.fit(data, fit));
  return judge;
}

}  // namespace loom
