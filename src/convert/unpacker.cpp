#include "convert/unpacker.hpp"
#include "bridge/finite_weight.hpp"

#include <algorithm>

namespace loom::core {

Result<Unpacker> Unpacker::create(const NetworkSource& source, const WriteOptions& options) {
  LOOM_ASSIGN(Network network, Network::finalize(source.spec.grid, source.spec.input.after(1)));
  return Unpacker(source, options, std::move(network));
}

Result<std::span<const std::byte>> Unpacker::values(size_t index) {
  const Param& param = params()[index];
  LOOM_ASSIGN(const SourceWeight weight, finite_weight(*source_, param));
  values_.resize(static_cast<size_t>(param.spec.shape.count()));
  const int64_t rows = param.spec.matrix() ? param.spec.shape[0] : param.spec.shape.count();
  LOOM_TRY(weight.rows(0, rows, values_.data()));
  if (weight.release) weight.release();
  done_ += values_.size() * sizeof(float);
  const uint64_t total = static_cast<uint64_t>(network_.param_count()) * sizeof(float);
  if (options_->progress && !options_->progress(std::min(done_, total), total))
    return make_error(Code::cancelled, "writing was stopped");
  return std::as_bytes(std::span(values_));
}

std::vector<int64_t> extents_of(const Shape& shape) {
  std::vector<int64_t> extents;
  for (int axis = 0; axis < shape.rank(); ++axis) extents.push_back(shape[axis]);
  return extents;
}

}  // namespace loom::core
