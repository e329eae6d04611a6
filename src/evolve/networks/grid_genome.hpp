// Whole networks as genomes: layers, widths, activations, number types and connections, with their
// weights. Mutations keep the function of the parent if they can (Chen, Goodfellow and Shlens,
// "Net2Net", 2016), so that training is not lost. A genome is a chain of cells, whatever their
// coordinates in the grid. It uses no data and no training.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "evolve/draws.hpp"
#include "grid/builders.hpp"
#include "grid/network.hpp"
#include "ops/families/fwd.hpp"

namespace loom::core {

// A layer and its parameters as float32, by their path inside the cell: "weight", "1/bias". Missing
// ones are initialized as in a new network.
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
  // Checked as a whole, for batches of that many samples; loads no weights.
  Result<Network> finalized(int64_t batch) const;
  // The same with weights; matrices of cells without their own type are in `dtype`.
  Result<Network> network(int64_t batch, DType dtype, uint64_t seed, ThreadPool& pool) const;
  std::string text() const;  // "784-64 relu-32 relu-10": the widths of the chain, for people
};

// The location of a parameter's values: the index of the cell, and the path in it.
struct GenePosition {
  size_t cell = 0;
  std::string name;
};
GenePosition gene_position(const Param& param);

enum class GridChange : uint8_t {
  widen,       // more units in a Dense layer; the function stays
  narrow,      // fewer: drops those with the least effect on the next layer
  deepen,      // an identity as a new layer after a rectifier; the function stays
  block,       // x + W2 f(W1 x) with W2 = 0; the function stays
  remove,      // removes a layer with equal input and output shapes
  activation,  // another one
  toggle,      // such a layer is disabled, or enabled again
  connect,     // a second path around a Dense layer, with weights 0; the function stays
  disconnect,  // removes that path
  retype,      // matrices of a cell in another number type
  perturb,     // moves all weights of a cell a little
  kCount
};
constexpr int kGridChanges = static_cast<int>(GridChange::kCount);
const char* change_name(GridChange change);
bool keeps_function(GridChange change);

struct GridRates {
  std::vector<GridChange> changes;  // to choose from; empty means all except retype
  int64_t most_parameters = 0;      // 0 means limited by memory only
  int64_t max_cells = 64, max_width = 4096;
  double perturb = 0.05;  // of the deviation of a cell's weights
};

struct ChangeReport {
  std::optional<GridChange> change;  // unset: none was possible in 8 tries
  std::string what;                  // "widen cell 1: 64 to 96 units"
  int64_t rejected = 0;              // changes that did not apply, or with an invalid network
};
// Applies one random change; `genome` is unchanged if none was possible.
ChangeReport change_genome(GridGenome& genome, const GridRates& rates, Draws& draws);

struct CrossReport {
  int64_t from_a = 0, from_b = 0, blended = 0;  // cells
};
// The head of a with the tail of b, if their shapes fit; or a, with equal cells at equal indices
// blended. The share of b is `share` for equal weights. For weights without similarity it is
// `share` rounded, so the fitter one remains.
GridGenome cross_genomes(const GridGenome& a, const GridGenome& b, double share, Draws& draws,
                         CrossReport& report);

}  // namespace loom::core
