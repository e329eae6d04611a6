// The search space of architecture search by gradients: which cells of a network may become what,
// as Parallel layers that mix their branches, and what is left of them once a branch was chosen.
// It knows no data and no training.
#pragma once

#include "evolve/grid_genome.hpp"

namespace loom::core {

// A cell that is not decided yet.
struct MixedCell {
  size_t cell = 0;                    // its place in the row
  std::vector<std::string> branches;  // for people: "conv 5x5 + dense relu"
};
std::vector<MixedCell> mixed_cells(const GridGenome& genome);

// The genome with every cell for which alternatives are known as a mixture of them, the cell as it
// was being the first branch; as it is where it holds mixed cells already. All branches take and
// give the same shapes:
//   Dense, but the last cell: other activations; two Dense layers; where the input is a picture
//         (8 x 8 or more), a convolution of stride 2 and a largest value of 2 x 2, or two
//         convolutions, in front of a Dense, with at most the parameters of the cell
//   Dense, the last cell: two Dense layers
//   CNN2: kernels of 1, 3 and 5; dilation 2; depthwise and pointwise; pooling and pointwise
//   both: nothing at all, where the shapes allow it
// Errors: invalid_argument where no cell has an alternative.
Result<GridGenome> mixed_genome(const GridGenome& seed);

// For every mixed cell its branch.
struct BranchChoice {
  std::vector<size_t> branches;
  int64_t parameters = 0;  // of the network that is left
  double score = 0;        // sum of the logarithms of the weights of the branches
};
// The choice with the largest product of weights among those with at most so many parameters (0:
// any number). weights: per mixed cell and branch. Exact: partial choices that another one beats in
// both are dropped. Errors: invalid_argument where even the smallest network is larger.
Result<BranchChoice> choose_branches(const GridGenome& mixed,
                                     const std::vector<std::vector<double>>& weights,
                                     int64_t most_parameters);

// The chosen branches in the place of the mixtures, with their values.
GridGenome decided(const GridGenome& mixed, const BranchChoice& choice);

}  // namespace loom::core
