// The tensors of a step that the host fills or reads, and the views of them that recordings take.
#include "learn/step/step_tensors.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace loom::core {

Tensor cell(const Tensor& row, int64_t i) {
  return slice_cols(row, i, 1);
}

Tensor hyper_of(const Tensor& hyper, int64_t group) {
  Tensor row = hyper.slice_rows(group, 1);
  row.shape = Shape{4};
  return row;
}

Result<Tensor> persistent(const Shape& shape, std::vector<Buffer>& memory) {
  LOOM_ASSIGN(Buffer buffer, Buffer::allocate(plain_bytes(DType::f32, shape)));
  Tensor t;
  t.shape = shape;
  t.row_stride = shape.last();
  t.data = buffer.data();
  memory.push_back(std::move(buffer));
  return t;
}

Tensor bytes_of(const Buffer& memory) {
  Tensor t;
  t.dtype = DType::u8;
  t.shape = Shape{memory.size()};
  t.row_stride = memory.size();
  t.data = const_cast<std::byte*>(memory.data());
  return t;
}

TraceOptions traced_as_in_steps(const TrainStepOptions& options) {
  TraceOptions o;
  o.training = true;
  o.partial = true;
  o.seed = options.seed;
  o.masked = options.masked;
  o.documents = options.documents;
  o.given = options.given;
  o.before_stage = options.before_stage && !options.custom_loss;
  return o;
}

const std::vector<Tensor>* tensors_of(const FeedbackMemory& feedback) {
  return feedback.empty() ? nullptr : &feedback.tensors();
}

std::vector<Tensor*> StepTensors::pins() {
  std::vector<Tensor*> all;
  for (Tensor* t : {&network.x, &network.y, &network.step, &weight, &loss}) all.push_back(t);
  if (!network.mask.empty())
    all.insert(all.end(), {&network.mask, &network.ends.last, &network.ends.reversed});
  if (!network.row_positions.empty()) all.push_back(&network.row_positions);
  if (!network.present.empty()) all.push_back(&network.present);
  for (Tensor& t : network.more) all.push_back(&t);
  if (!row_losses.empty()) all.push_back(&row_losses);
  if (!custom_loss.empty()) all.insert(all.end(), {&custom_gradient, &custom_loss});
  for (Tensor& target : targets) all.push_back(&target);
  return all;
}

Status set_whole_documents(const TracedNetwork& network) {
  if (network.row_positions.empty()) return {};
  const int64_t samples = network.x.shape[0];
  const std::vector<int64_t> whole = {network.row_positions.rows() / samples};
  return mark_documents(network.row_positions,
                        std::vector<std::vector<int64_t>>(static_cast<size_t>(samples), whole));
}

void mark_present(const TracedNetwork& network, int64_t samples) {
  for (int64_t i = 0; !network.present.empty() && i < network.present.shape.count(); ++i) {
    network.present.f32()[i] = i < samples ? 1.0f : 0.0f;
  }
}

Status enough_present(const TracedNetwork& network) {
  if (network.present.empty()) return {};
  const float* first = network.present.f32();
  const auto samples =
      static_cast<int64_t>(std::count(first, first + network.present.shape.count(), 1.0f));
  if (samples >= network.least) return {};
  return invalid(cat("a batch of ", samples, samples == 1 ? " sample" : " samples",
                     " is too small for BatchNorm, which takes statistics of at least ",
                     network.least, " samples; choose a batch size that leaves no such rest"));
}

}  // namespace loom::core
