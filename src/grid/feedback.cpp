#include "grid/feedback.hpp"

#include <algorithm>

#include "base/numbers/checked.hpp"
#include "base/text.hpp"
#include "ops/ops.hpp"

namespace loom::core {

Result<FeedbackMemory> FeedbackMemory::create(const Network& network,
                                              const std::vector<Shape>& shapes, const Ops& ops) {
  FeedbackMemory made;
  const std::vector<bool> read = network.fed_back();
  int64_t total = 0;
  for (size_t i = 0; i < read.size(); ++i) {
    made.bytes_.push_back(read[i] ? plain_bytes(ops.compute, shapes[i]) : 0);
    total += round_up(made.bytes_[i], 64);
  }
  made.tensors_.resize(read.size());
  if (total == 0) return made;
  LOOM_ASSIGN(made.memory_, allocate_for(ops, total));
  std::byte* at = made.memory_.data();
  for (size_t i = 0; i < read.size(); ++i) {
    if (!read[i]) continue;
    Tensor& t = made.tensors_[i];
    t.dtype = ops.compute;
    t.shape = shapes[i];
    t.row_stride = t.shape.last();
    t.data = at;
    at += round_up(made.bytes_[i], 64);
  }
  return made;
}

Status FeedbackMemory::forget(const Ops& ops) const {
  for (const Tensor& t : tensors_) {
    if (t.empty()) continue;
    std::fill_n(t.data, plain_bytes(t.dtype, t.shape), std::byte{});
    LOOM_TRY(to_device(ops, t));
  }
  return {};
}

Status FeedbackMemory::reshape(size_t cell, const Shape& shape) {
  Tensor& t = tensors_[cell];
  if (plain_bytes(t.dtype, shape) > bytes_[cell]) {
    return invalid(cat("feedback ", shape.str(), " is larger than was planned for"));
  }
  t.shape = shape;
  t.row_stride = shape.last();
  return {};
}

}  // namespace loom::core
