// Merging one parameter of several models. Arithmetic is in double, models in the order given, and
// each result is rounded to f32 once; nothing depends on threads. What the methods are:
// loom/merge.hpp.
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

// The recipe of options, or why there is none. `where` of errors names the model.
Result<MergeRecipe> merge_recipe(const std::vector<MergeInput>& models,
                                 const MergeOptions& options);
bool takes_base(MergeMethod method);

// values[m]: of model m; base: empty where the method takes none; out may be values[0]. `stream`:
// of the parameter, for what is drawn: value i of model m is drawn as number i of stream
// (stream << 16) + m.
void merge_values(const MergeRecipe& recipe, const std::vector<std::span<const float>>& values,
                  std::span<const float> base, uint64_t stream, std::span<float> out);

// ---- parts, for tests ---------------------------------------------------------------------------

// Zeros all but the max(1, floor(density n)) largest magnitudes; of equal ones the first stay.
void trim_smallest(std::span<double> values, double density);
// Zeros each value with probability 1 - density, and divides the others by density.
void drop_at_random(std::span<double> values, double density, uint64_t seed, uint64_t stream);
// The angle in [0, pi] whose cosine this is, to about 1e-15.
double angle_of_cosine(double cosine);

}  // namespace loom::core
