// Merges one parameter of several models. Arithmetic is in double, over models in the given order,
// and each result is rounded to f32 once; nothing depends on threads. loom/merge.hpp defines the
// methods.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "loom/merge.hpp"

namespace loom::core {

struct MergeRecipe {
  MergeMethod method = MergeMethod::linear;
  std::vector<double> weights, densities;  // of the models
  bool normalize = true;
  double lambda = 1, t = 0.5;
  uint64_t seed = 1;
};

// The recipe of the options, or an error. `where` of errors names the model.
Result<MergeRecipe> merge_recipe(const std::vector<MergeInput>& models,
                                 const MergeOptions& options);
bool takes_base(MergeMethod method);

// values[m]: of model m; base: empty if the method takes none; out may be values[0]. `stream`: of
// the parameter. The random number for value i of model m is number i of stream (stream << 16) + m.
void merge_values(const MergeRecipe& recipe, const std::vector<std::span<const float>>& values,
                  std::span<const float> base, uint64_t stream, std::span<float> out);

// ---- parts, for tests ---------------------------------------------------------------------------

// Zeros all except the max(1, floor(density n)) largest magnitudes; of equal ones the first stay.
void trim_smallest(std::span<double> values, double density);
// Zeros each value with probability 1 - density, and divides the others by density.
void drop_at_random(std::span<double> values, double density, uint64_t seed, uint64_t stream);
// The angle in [0, pi] whose cosine this is, to about 1e-15.
double angle_of_cosine(double cosine);

}  // namespace loom::core
