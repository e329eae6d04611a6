// Whole networks as genomes: layers, widths, activations, number types and connections, with their
// weights. Changes keep the function at birth where they can (Chen, Goodfellow and Shlens,
// "Net2Net", 2016), so that what was learned is not lost. A genome is a row of cells: a network
// whose cells follow each other, whatever grid they stand in. It knows no data and no training.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "evolve/draws.hpp"
#include "grid/builders.hpp"
#include "grid/network.hpp"
#include "ops/fwd.hpp"

namespace loom::core {

// A layer and its parameters as float32, by their path inside of the cell: "weight", "1/bias". What
// is not there starts as a new network's would.
struct GeneCell {
  LayerConfig layer;
  std::optional<DType> dtype;
  std::map<std::string, std::vector<float>> values;
};

struct GridGenome {
  Shape input;  // of one sample
  std::vector<GeneCell> cells;

  // Errors: unsupported (links, shared weights, several inputs).
  static Result<GridGenome> of(const NetworkSpec& spec);
  Result<NetworkSpec> spec() const;
  // Checked as a whole, for batches of so many samples; no weights are loaded.
  Result<Network> finalized(int64_t batch) const;
  // The same with weights, matrices of cells without a type of their own in `dtype`.
  Result<Network> network(int64_t batch, DType dtype, uint64_t seed, ThreadPool& pool) const;
  std::string text() const;  // "784-64 relu-32 relu-10": the widths of a row, for people
};

// Where the values of a parameter lie: the cell, by its place in the row, and the path in it.
struct GenePlace {
  size_t cell = 0;
  std::string name;
};
GenePlace gene_place(const Param& param);

enum class GridChange : uint8_t {
  widen,       // more units in a Dense layer; the function stays
  narrow,      // fewer: those that the next layer heeds least go
  deepen,      // an identity as a new layer behind a rectifier; the function stays
  block,       // x + W2 f(W1 x) with W2 = 0; the function stays
  remove,      // a layer that gives what it takes in shape
  activation,  // another one
  toggle,      // such a layer is disabled, or enabled again
  connect,     // a second way past a Dense layer, with weights 0; the function stays
  disconnect,  // that way goes
  retype,      // matrices of a cell in another number type
  perturb,     // all weights of a cell move a little
  kCount
};
constexpr int kGridChanges = static_cast<int>(GridChange::kCount);
const char* change_name(GridChange change);
bool keeps_function(GridChange change);

struct GridRates {
  std::vector<GridChange> changes;  // that are drawn from; empty: all but retype
  int64_t most_parameters = 0;      // 0: as many as the machine has room for
  int64_t most_cells = 64, most_width = 4096;
  double perturb = 0.05;  // of the deviation of a cell's weights
};

struct ChangeReport {
  std::optional<GridChange> change;  // empty: none could be made in 8 tries
  std::string what;                  // "widen cell 1: 64 to 96 units"
  int64_t rejected = 0;              // changes that did not apply, or whose network was refused
};
// One change, drawn; `genome` is as it was where none could be made.
ChangeReport change_genome(GridGenome& genome, const GridRates& rates, Draws& draws);

struct CrossReport {
  int64_t from_a = 0, from_b = 0, blended = 0;  // cells
};
// The head of a with the tail of b, where both give the same shape; or a, with cells of equal form
// at equal places blended: the share of b is `share` for equal weights, and its rounded value for
// those that have nothing in common, so that the fitter one is what remains.
GridGenome cross_genomes(const GridGenome& a, const GridGenome& b, double share, Draws& draws,
                         CrossReport& report);

}  // namespace loom::core
