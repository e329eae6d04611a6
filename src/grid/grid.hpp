// GridSpec: the volumetric network as a description. Any layer may be at any cell (z, y, x, l) of a
// 3D grid. Traversal is z, then y, then x, then l ascending, and is part of the semantics. Empty
// cells are skipped. finalize() in network.hpp turns a description into a Network and checks it as
// far as possible.
//
// Used by JSON descriptions and builders (they fill cells), grafting, and evolution (it edits cells
// and finalizes again).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "grid/adapters/adapter.hpp"
#include "layers/core/layer.hpp"

namespace loom::core {

struct Coord {
  int64_t z = 0, y = 0, x = 0, l = 0;
  bool operator==(const Coord&) const = default;
  std::string str() const;  // "(z, y, x, l)"
};

// A remote link: the cell that provides the input of this cell, in place of the cell before it. For
// a layer that adds a second input (a bare Residual) it provides that one.
struct Link {
  Coord from;
  // false: the output of an earlier cell in the same pass (a skip connection). true: the output of
  // any cell in the previous pass, zeros in the first; no gradient flows through it. docs/state.md
  // defines the first pass.
  bool feedback = false;
};

struct Cell {
  LayerConfig layer;
  // Shares the parameters of an earlier cell: every parameter of this layer and its children is the
  // one with the same name, shape and location there. This cell owns none. Gradients are summed
  // over all users. finalize() refuses a cell that could share only some of them.
  std::optional<Coord> shared_with = {};
  std::optional<Link> link = {};
  // The packed type of this cell's matrices (mixed precision); empty means that of the whole
  // network.
  std::optional<DType> dtype = {};
  // Parameters that training does not change: names below the cell, "weight" or "2/bias", with *
  // and ? as in matches_pattern(). finalize() refuses a pattern without a match.
  std::vector<std::string> frozen = {};
  // finalize() refuses one that selects nothing, or a weight twice by one name. Weights with an
  // adapter are frozen.
  std::vector<AdapterSpec> adapters = {};
};

class GridSpec {
 public:
  GridSpec(int64_t depth, int64_t rows, int64_t cols, int64_t layers_per_cell);

  // Puts a layer at a cell. Each coordinate is checked against its own axis.
  Status put(const Coord& at, Cell cell);
  const Cell* find(const Coord& at) const;  // may be null: empty or outside

  int64_t size() const { return static_cast<int64_t>(cells_.size()); }
  const Cell* cell(int64_t index) const { return cells_[static_cast<size_t>(index)].get(); }
  // The same, shared: cells never change, so copies of a grid and its networks share them.
  std::shared_ptr<const Cell> shared_cell(int64_t index) const {
    return cells_[static_cast<size_t>(index)];
  }
  Coord coord(int64_t index) const;
  // Flat index ((z * rows + y) * cols + x) * layers + l. Errors: an axis that is out of range.
  Result<int64_t> index(const Coord& at) const;
  std::string extents() const;  // "4 x 1 x 1 x 2"
  int64_t depth() const { return depth_; }
  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  int64_t layers() const { return layers_; }

 private:
  int64_t depth_, rows_, cols_, layers_;
  std::vector<std::shared_ptr<const Cell>> cells_;  // null means empty
};

}  // namespace loom::core
