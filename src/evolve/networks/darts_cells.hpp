// The search space of architecture search by gradients: the alternatives of each cell of a network,
// as Parallel layers that mix their branches. It also builds the network of the chosen branches. It
// uses no data and no training.
#pragma once

#include "evolve/networks/grid_genome.hpp"

namespace loom::core {

// A cell that is not decided yet.
struct MixedCell {
  size_t cell = 0;                    // index in the chain
  std::vector<std::string> branches;  // for people: "conv 5x5 + dense relu"
};
std::vector<MixedCell> mixed_cells(const GridGenome& genome);

// The genome with a mixture in place of every cell that has known alternatives; the original cell
// is the first branch. It is unchanged if it has mixed cells already. All branches have the same
// input and output shapes:
//   Dense, but the last cell: other activations; two Dense layers; if the input is an image (8 x 8
//         or more), a convolution of stride 2 and a max pooling of 2 x 2, or two convolutions,
//         before a Dense, with at most the parameters of the cell
//   Dense, the last cell: two Dense layers
//   CNN2: kernels of 1, 3 and 5; dilation 2; depthwise and pointwise; pooling and pointwise
//   both: nothing at all, if the shapes allow it
// Errors: invalid_argument if no cell has an alternative.
Result<GridGenome> mixed_genome(const GridGenome& seed);

// The branch of every mixed cell.
struct BranchChoice {
  std::vector<size_t> branches;
  int64_t parameters = 0;  // of the remaining network
  double score = 0;        // sum of the logarithms of the weights of the branches
};
// The choice with the largest product of weights among those with at most that many parameters (0:
// any number). weights: per mixed cell and branch. It is exact: partial choices that another one
// beats in both are dropped. Errors: invalid_argument if even the smallest network is larger.
Result<BranchChoice> choose_branches(const GridGenome& mixed,
                                     const std::vector<std::vector<double>>& weights,
                                     int64_t most_parameters);

// Replaces the mixtures by the chosen branches, with their values.
GridGenome decided(const GridGenome& mixed, const BranchChoice& choice);

}  // namespace loom::core
