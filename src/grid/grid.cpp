#include "grid/grid.hpp"

#include "base/text.hpp"

namespace loom::core {

std::string Coord::str() const {
  return cat("(", z, ", ", y, ", ", x, ", ", l, ")");
}

GridSpec::GridSpec(int64_t depth, int64_t rows, int64_t cols, int64_t layers_per_cell)
    : depth_(depth), rows_(rows), cols_(cols), layers_(layers_per_cell) {
  cells_.resize(static_cast<size_t>(depth * rows * cols * layers_per_cell));
}

Result<int64_t> GridSpec::index(const Coord& at) const {
  const struct {
    std::string_view axis;
    int64_t value, extent;
  } axes[] = {{"z", at.z, depth_}, {"y", at.y, rows_}, {"x", at.x, cols_}, {"l", at.l, layers_}};
  for (const auto& a : axes) {
    if (a.value < 0 || a.value >= a.extent) {
      return make_error(Code::out_of_range,
                        cat("cell ", at.str(), " is outside the grid ", extents(), ": ", a.axis,
                            " must be from 0 to ", a.extent - 1));
    }
  }
  return ((at.z * rows_ + at.y) * cols_ + at.x) * layers_ + at.l;
}

Coord GridSpec::coord(int64_t index) const {
  Coord at;
  at.l = index % layers_;
  at.x = index / layers_ % cols_;
  at.y = index / (layers_ * cols_) % rows_;
  at.z = index / (layers_ * cols_ * rows_);
  return at;
}

Status GridSpec::put(const Coord& at, Cell cell) {
  LOOM_ASSIGN(const int64_t i, index(at));
  cells_[static_cast<size_t>(i)] = std::make_shared<const Cell>(std::move(cell));
  return {};
}

const Cell* GridSpec::find(const Coord& at) const {
  const Result<int64_t> i = index(at);
  if (!i.ok()) return nullptr;
  return cell(*i);
}

std::string GridSpec::extents() const {
  return cat(depth_, " x ", rows_, " x ", cols_, " x ", layers_);
}

}  // namespace loom::core
