#include "convert/fresh_source.hpp"

#include "base/text.hpp"
#include "grid/init.hpp"

namespace loom::core {

Result<SourceWeight> FreshSource::weight(const Param& param) const {
  LOOM_TRY(make());
  const auto found = index_.find(param.path);
  const int index = found == index_.end() ? -1 : found->second;
  if (index < 0) return bad_file(cat("has no parameter ", param.path), path);
  SourceWeight weight;
  weight.stored = param.dtype.value_or(DType::f32);
  const int64_t cols = param.spec.matrix() ? param.spec.shape[1] : 1;
  weight.rows = [this, index, cols](int64_t first, int64_t count, float* out) -> Status {
    constexpr uint64_t kSeed = 1;  // that of loom train
    init_values(*network_, index, kSeed, first * cols, count * cols, out);
    return {};
  };
  return weight;
}

Status FreshSource::make() const {
  if (network_ != nullptr) return {};
  LOOM_ASSIGN(Network made, Network::finalize(spec.grid, spec.input.after(1)));
  network_ = std::make_unique<Network>(std::move(made));
  for (const Param& param : network_->params())
    index_.emplace(param.path, static_cast<int>(index_.size()));
  return {};
}

}  // namespace loom::core
