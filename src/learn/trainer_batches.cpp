// Samples of a data set as the tensors of a batch, and what each row counts in the loss.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/text.hpp"
#include "learn/loss/predictions.hpp"
#include "learn/trainer_impl.hpp"

namespace loom::core {
namespace {

// Places in a batch tensor, and where values come from.
template <class T>
void copy_rows(const std::vector<T>& from, int64_t samples, const std::vector<int64_t>& order,
               int64_t first, int64_t count, T* to) {
  const int64_t each = static_cast<int64_t>(from.size()) / samples;
  for (int64_t i = 0; i < count; ++i) {
    const T* row = from.data() + order[static_cast<size_t>(first + i)] * each;
    std::copy_n(row, each, to + i * each);
  }
}

// Padding may hold anything, which weight 0 would not make a number.
void clear_target(const Tensor& target, int64_t row) {
  if (target.dtype != DType::i32) std::fill_n(target.f32_row(row), target.cols(), 0.0f);
}

// Rows beyond the data repeat the first one: real numbers, weight 0.
void repeat_first(const Tensor& x, int64_t count) {
  const int64_t each = x.shape.count() / x.shape[0];
  for (int64_t i = count; i < x.shape[0]; ++i)
    std::memcpy(x.data + i * each * 4, x.data, static_cast<size_t>(each) * 4);
}

}  // namespace

Status Trainer::Impl::fill_inputs(const Dataset& data, const std::vector<int64_t>& order,
                                  int64_t first, int64_t count, const Tensor& x,
                                  const std::vector<Tensor>& more) const {
  if (x.dtype == DType::i32) {
    copy_rows(data.ids, data.samples, order, first, count, x.i32());
  } else {
    LOOM_TRY(data.read_inputs(order, first, count, x.f32(), pool));
  }
  repeat_first(x, count);
  for (size_t i = 0; i < more.size(); ++i) {
    const ExtraInput& from = *data.extra_input(network->extra_inputs()[i].name);
    if (more[i].dtype == DType::i32) {
      copy_rows(from.ids, data.samples, order, first, count, more[i].i32());
    } else {
      copy_rows(from.values, data.samples, order, first, count, more[i].f32());
    }
    repeat_first(more[i], count);
  }
  return {};
}

// The weight of a row in the loss, from its sample, its class, and its number of labelled heads.
double Trainer::Impl::weight_of(const Dataset& data, int64_t sample, int64_t row) const {
  const double weight =
      data.weights.empty() ? 1.0 : static_cast<double>(data.weights[static_cast<size_t>(sample)]);
  if (!sequences() && data.pads(sample, row, rows_per_sample)) return 0.0;
  if (!data.has_labels() || sequences()) return weight;
  if (pairs()) {
    const int32_t label = pair_labels(data).of(sample, row);
    if (data.ignores(label)) return 0.0;
    if (class_weights.empty()) return weight;
    return weight * static_cast<double>(class_weights[static_cast<size_t>(label)]);
  }
  const auto heads = static_cast<int64_t>(std::max<size_t>(options.step.loss.heads.size(), 1));
  const int64_t at = (sample * rows_per_sample + row) * heads;
  int64_t named = 0;
  for (int64_t h = 0; h < heads; ++h)
    named += data.ignores(data.labels[static_cast<size_t>(at + h)]) ? 0 : 1;
  if (named == 0) return 0.0;
  if (!class_weights.empty()) {
    const auto label = static_cast<size_t>(data.labels[static_cast<size_t>(at)]);
    return weight * static_cast<double>(class_weights[label]);
  }
  return weight;
}

// The sum of that over these samples; where nothing has a weight, how many rows there are.
double Trainer::Impl::counted(const Dataset& data, const std::vector<int64_t>& order, int64_t first,
                              int64_t count) const {
  if (plain(data)) return static_cast<double>(count * parts());
  double sum = 0;
  if (pairs()) {
    const auto batch = std::span(order).subspan(static_cast<size_t>(first));
    for (const double w : anchor_weights(data, batch.first(static_cast<size_t>(count)), {}))
      sum += w;
    return sum;
  }
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t r = 0; r < parts(); ++r)
      sum += weight_of(data, order[static_cast<size_t>(first + i)], r);
  }
  return sum;
}

// The factor that turns a sum of losses into their mean; the same for gradients of `batches`.
float Trainer::Impl::share(const Dataset& data, int64_t count, double counted,
                           int64_t batches) const {
  if (plain(data)) return 1.0f / static_cast<float>(count * parts() * batches);
  return counted > 0 ? static_cast<float>(1.0 / (counted * static_cast<double>(batches))) : 0.0f;
}

Status Trainer::Impl::set_class_weights(const Dataset& data) {
  const bool has_weights = options.balanced_weights || !options.class_weights.empty();
  if (!has_weights && !options.balance) return {};
  if (sequences() || !data.has_labels() || data.labels_per_sample() != 1) {
    return invalid("weights and balance of classes need one class label per sample");
  }
  const int64_t width = pairs() ? data.classes : predictions_of(*network).last();
  class_weights = options.class_weights;
  if (options.balanced_weights) class_weights = loom::core::balanced_weights(data, width);
  if (!has_weights || static_cast<int64_t>(class_weights.size()) == width) return {};
  return invalid(
      cat(class_weights.size(), " class weights, must be ", width, ", one for each class"));
}

// The same for training: as the epoch shows the samples.
Status Trainer::Impl::fill_training(const Dataset& data, const std::vector<int64_t>& order,
                                    int64_t first, int64_t count) {
  const Tensor& x = step->x();
  step->set_lengths(data.lengths_of(order, first, count));
  if (!augmenter.any()) {
    LOOM_TRY(fill_inputs(data, order, first, count, x, step->more()));
    return step->set_present(count);
  }
  LOOM_TRY(augmenter.inputs(data, order, progress.epoch, first, count, x.f32(), *pool));
  repeat_first(x, count);
  return step->set_present(count);
}

// The anchor weights of the rows of a batch. Writes their relation unless `relation` is empty.
std::vector<double> Trainer::Impl::anchor_weights(const Dataset& data,
                                                  std::span<const int64_t> samples,
                                                  const Tensor& relation) const {
  const std::vector<bool> anchors = pair_labels(data).relate(samples, options.step.loss, relation);
  std::vector<double> weights(anchors.size());
  for (size_t r = 0; r < anchors.size(); ++r) {
    const auto row = static_cast<int64_t>(r);
    const int64_t sample = samples[static_cast<size_t>(row / rows_per_sample)];
    weights[r] = anchors[r] ? weight_of(data, sample, row % rows_per_sample) : 0.0;
  }
  return weights;
}

// The same for training: the target is the relation of the rows.
void Trainer::Impl::fill_relation(const Dataset& data, const std::vector<int64_t>& order,
                                  int64_t first, int64_t count, const Tensor& relation,
                                  const Tensor& weight, float each) const {
  const auto batch =
      std::span(order).subspan(static_cast<size_t>(first), static_cast<size_t>(count));
  const std::vector<double> weights = anchor_weights(data, batch, relation);
  std::fill_n(weight.f32(), weight.shape.count(), 0.0f);
  for (size_t r = 0; r < weights.size(); ++r)
    weight.f32()[r] = static_cast<float>(weights[r]) * each;
}

// Scores of the embeddings of a whole data set. The accuracy is over samples whose label occurs
// again: the share whose nearest neighbour has the same label.
Status Trainer::Impl::judge(const Dataset& data, std::span<const float> embeddings,
                            Evaluation& result) const {
  std::vector<double> weights;
  for (int64_t i = 0; i < data.samples; ++i) {
    for (int64_t r = 0; r < rows_per_sample; ++r) weights.push_back(weight_of(data, i, r));
  }
  LOOM_ASSIGN(const PairScore score,
              forward.judge->score(pair_labels(data), data.samples, embeddings, weights));
  result.loss = score.counted > 0 ? score.loss / score.counted : 0.0;
  if (score.asked > 0)
    result.accuracy = static_cast<double>(score.right) / static_cast<double>(score.asked);
  return {};
}

// `each`: the weight of a row that counts 1; rows beyond the samples weigh 0.
void Trainer::Impl::fill_targets(const Dataset& data, const std::vector<int64_t>& order,
                                 int64_t first, int64_t count, const std::vector<Tensor>& targets,
                                 const Tensor& weight, float each) const {
  if (pairs()) return fill_relation(data, order, first, count, targets[0], weight, each);
  for (size_t h = 0; h < targets.size(); ++h) {
    const Tensor& target = targets[h];
    std::fill_n(target.data, plain_bytes(target.dtype, target.shape), std::byte{});
    if (target.dtype != DType::i32 && data.has_labels()) {
      // A class as a distribution, which mixed samples are trained with.
      for (int64_t i = 0; i < count; ++i)
        target.f32_row(i)[data.labels[static_cast<size_t>(order[static_cast<size_t>(first + i)])]] =
            1.0f;
    } else if (target.dtype != DType::i32) {
      copy_rows(data.targets, data.samples, order, first, count, target.f32());
    } else {
      // Labels have the order [sample][row of the prediction][head].
      const auto heads = static_cast<int64_t>(targets.size());
      for (int64_t i = 0; i < count * rows_per_sample; ++i) {
        const int64_t sample = order[static_cast<size_t>(first + i / rows_per_sample)];
        const int64_t row = sample * rows_per_sample + i % rows_per_sample;
        const int32_t label = data.labels[static_cast<size_t>(row * heads) + h];
        const bool pads = data.pads(sample, i % rows_per_sample, rows_per_sample);
        target.i32()[i] = pads || data.ignores(label) ? -1 : label;
      }
    }
  }
  const int64_t rows = count * rows_per_sample;
  for (int64_t r = 0; r < weight.shape.count(); ++r) weight.f32()[r] = r < rows ? each : 0.0f;
  for (int64_t r = 0; r < rows && !plain(data); ++r) {
    const int64_t sample = order[static_cast<size_t>(first + r / rows_per_sample)];
    if (data.pads(sample, r % rows_per_sample, rows_per_sample)) clear_target(targets[0], r);
    weight.f32()[r] *= static_cast<float>(weight_of(data, sample, r % rows_per_sample));
  }
}

// Labels of samples [first, first + count) whose value is the first largest of its head.
int64_t Trainer::Impl::hits(const Dataset& data, int64_t first, int64_t count) const {
  const Tensor& y = forward.tensors.network.y;
  const std::vector<int64_t> one = {y.cols()};
  const std::vector<int64_t>& heads =
      options.step.loss.heads.empty() ? one : options.step.loss.heads;
  int64_t right = 0;
  for (int64_t r = 0; r < count * rows_per_sample; ++r) {
    if (data.pads(first + r / rows_per_sample, r % rows_per_sample, rows_per_sample)) continue;
    const float* row = y.f32() + r * y.cols();
    for (size_t h = 0; h < heads.size(); ++h) {
      const auto best = std::max_element(row, row + heads[h]) - row;
      const size_t at = static_cast<size_t>(first * rows_per_sample + r) * heads.size() + h;
      if (data.labels[at] == best && !data.ignores(data.labels[at])) ++right;
      row += heads[h];
    }
  }
  return right;
}

}  // namespace loom::core
