#include "api/train/own_loss.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "learn/loss/predictions.hpp"
#include "learn/step/train_step.hpp"

namespace loom::core {

// Passes the outputs of the valid samples to the caller's loss, and copies its gradients back into
// the step.
Result<double> ask_own_loss(const loom::Trainer::OwnLoss& loss, const loom::Shape& shape,
                            const Tensor& y, const Tensor& dy) {
  const int64_t count = element_count(shape), cols = y.cols();
  LOOM_ASSIGN(loom::Tensor outputs, loom::Tensor::zeros(shape));
  LOOM_ASSIGN(loom::Tensor gradients, loom::Tensor::zeros(shape));
  LOOM_ASSIGN(const std::span<float> seen, outputs.mutable_values<float>());
  for (int64_t r = 0; r < count / cols; ++r)
    std::copy_n(y.f32_row(r), cols, seen.data() + r * cols);
  LOOM_ASSIGN(const double value, loss(outputs, gradients));
  if (gradients.dtype() != loom::DType::float32 || gradients.shape() != shape) {
    return invalid(cat("the gradients are ", dtype_name(gradients.dtype()), " ",
                       shape_text(gradients.shape()), ", must be float32 ", shape_text(shape)));
  }
  LOOM_ASSIGN(const std::span<const float> given, gradients.values<float>());
  for (int64_t r = 0; r < count / cols; ++r)
    std::copy_n(given.data() + r * cols, cols, dy.f32_row(r));
  return value;
}

// Adds placeholder targets for a trainer whose caller's loss needs none.
Status add_placeholders(const Network& network, bool labels, Dataset& samples) {
  const Shape output = predictions_of(network);
  const int64_t rows = output.rows() / output[0] * samples.samples;
  const int64_t values = rows * (labels ? 1 : output.last());
  if (labels) {
    samples.labels.assign(static_cast<size_t>(values), 0);
    samples.classes = 1;
  } else {
    samples.targets.assign(static_cast<size_t>(values), 0.0f);
    samples.outputs = values / samples.samples;
  }
  return samples.check();
}

// The same for ctc: one label that is not the blank.
Status add_sequences(const LossSpec& loss, Dataset& samples) {
  samples.labels.assign(static_cast<size_t>(samples.samples), loss.blank == 0 ? 1 : 0);
  samples.classes = 2;
  return samples.check();
}

}  // namespace loom::core
