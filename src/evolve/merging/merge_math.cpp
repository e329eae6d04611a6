#include "evolve/merging/merge_math.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "base/numbers/dmath.hpp"
#include "base/numbers/rng.hpp"
#include "base/text.hpp"
#include "evolve/merging/sums.hpp"

namespace loom::core {
namespace {

constexpr double kMinDivisor = 1e-8;     // no division below it
constexpr double kNearlyEqual = 0.9995;  // cosine from which an arc counts as a line
constexpr double kPi = 3.14159265358979323846;

bool elects_signs(MergeMethod method) {
  return method == MergeMethod::ties || method == MergeMethod::dare_ties;
}
bool drops(MergeMethod method) {
  return method == MergeMethod::dare_linear || method == MergeMethod::dare_ties;
}

void average_models(const MergeRecipe& recipe, const std::vector<std::span<const float>>& values,
                    std::span<float> out) {
  double sum = 0;
  for (const double w : recipe.weights) sum += w;
  const bool divide = recipe.normalize && std::fabs(sum) >= kMinDivisor;
  for (size_t i = 0; i < out.size(); ++i) {
    double total = 0;
    for (size_t m = 0; m < values.size(); ++m)
      total += recipe.weights[m] * static_cast<double>(values[m][i]);
    out[i] = static_cast<float>(divide ? total / sum : total);
  }
}

// Shoemake, 1985, with the directions of the whole parameters: shares sin((1 - t) angle) and sin(t
// angle), by sin(angle). A line if the arc is very small, or if a model is all zeros.
void along_arc(double t, std::span<const float> a, std::span<const float> b, std::span<float> out) {
  const auto n = static_cast<int64_t>(a.size());
  LaneSum ab, aa, bb;
  ab.add_products(a.data(), b.data(), n);
  aa.add_products(a.data(), a.data(), n);
  bb.add_products(b.data(), b.data(), n);
  double first = 1 - t, second = t;
  if (aa.total() > 0 && bb.total() > 0) {
    const double cosine = cosine_of(ab.total(), aa.total(), bb.total());
    if (std::fabs(cosine) <= kNearlyEqual) {
      const double angle = angle_of_cosine(cosine), whole = dmath::sin(angle);
      first = dmath::sin((1 - t) * angle) / whole;
      second = dmath::sin(t * angle) / whole;
    }
  }
  for (size_t i = 0; i < out.size(); ++i)
    out[i] =
        static_cast<float>(first * static_cast<double>(a[i]) + second * static_cast<double>(b[i]));
}

// The weighted sum of task vectors at one index. With an election, only those whose weighted value
// has the sign of the sum. deltas[m][i].
double combine_tasks(const MergeRecipe& recipe, const std::vector<std::vector<double>>& deltas,
                     size_t i) {
  double sum = 0;
  for (size_t m = 0; m < deltas.size(); ++m) sum += recipe.weights[m] * deltas[m][i];
  const bool up = sum >= 0, elect = elects_signs(recipe.method);
  double total = 0, divisor = 0;
  for (size_t m = 0; m < deltas.size(); ++m) {
    const double value = recipe.weights[m] * deltas[m][i];
    if (elect && !(up ? value > 0 : value < 0)) continue;
    total += value;
    divisor += recipe.weights[m];
  }
  if (recipe.normalize && std::fabs(divisor) >= kMinDivisor) total /= divisor;
  return total;
}

void add_tasks(const MergeRecipe& recipe, const std::vector<std::span<const float>>& values,
               std::span<const float> base, uint64_t stream, std::span<float> out) {
  std::vector<std::vector<double>> deltas(values.size());
  for (size_t m = 0; m < values.size(); ++m) {
    deltas[m].resize(out.size());
    for (size_t i = 0; i < out.size(); ++i)
      deltas[m][i] = static_cast<double>(values[m][i]) - static_cast<double>(base[i]);
    if (recipe.method == MergeMethod::ties) trim_smallest(deltas[m], recipe.densities[m]);
    if (drops(recipe.method))
      drop_at_random(deltas[m], recipe.densities[m], recipe.seed, (stream << 16) + m);
  }
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<float>(static_cast<double>(base[i]) +
                                recipe.lambda * combine_tasks(recipe, deltas, i));
}

Status check_model(const MergeInput& model, bool task) {
  if (!std::isfinite(model.weight))
    return invalid(cat("weight ", model.weight, ": must be a finite number"), model.path);
  if (!(model.density > 0 && model.density <= 1))
    return invalid(cat("density ", model.density, ": must be above 0 and at most 1"), model.path);
  if (model.density != 1 && !task)
    return invalid("a density is for ties, dare_linear and dare_ties: the others keep everything",
                   model.path);
  return {};
}

}  // namespace

bool takes_base(MergeMethod method) {
  return method != MergeMethod::linear && method != MergeMethod::slerp;
}

Result<MergeRecipe> merge_recipe(const std::vector<MergeInput>& models,
                                 const MergeOptions& options) {
  LOOM_TRY(check_options(options));
  const MergeMethod method = options.method;
  const std::string name(merge_method_name(method));
  const bool task = takes_base(method);
  if (method == MergeMethod::slerp && models.size() != 2)
    return invalid(cat("slerp goes from one model to another: give two, not ", models.size()));
  if (models.size() < (task ? 1u : 2u))
    return invalid(cat(name, " needs ", task ? "a model beside the base" : "two models or more"));
  if (task && options.base.empty())
    return invalid(cat(name, " adds what models learned since their base: give the base"));
  if (!task && !options.base.empty())
    return invalid(cat(name, " takes no base: give it as one of the models"), options.base);
  if (!std::isfinite(options.lambda)) return invalid("lambda must be a finite number");
  MergeRecipe recipe;
  recipe.method = method;
  recipe.normalize =
      options.normalize.value_or(method == MergeMethod::linear || method == MergeMethod::ties);
  recipe.lambda = options.lambda;
  recipe.t = options.t;
  recipe.seed = options.seed;
  for (const MergeInput& model : models) {
    LOOM_TRY(check_model(model, elects_signs(method) || drops(method)));
    recipe.weights.push_back(model.weight);
    recipe.densities.push_back(model.density);
  }
  return recipe;
}

void merge_values(const MergeRecipe& recipe, const std::vector<std::span<const float>>& values,
                  std::span<const float> base, uint64_t stream, std::span<float> out) {
  if (recipe.method == MergeMethod::linear) return average_models(recipe, values, out);
  if (recipe.method == MergeMethod::slerp) return along_arc(recipe.t, values[0], values[1], out);
  add_tasks(recipe, values, base, stream, out);
}

void trim_smallest(std::span<double> values, double density) {
  if (density >= 1 || values.empty()) return;
  const auto floor = static_cast<size_t>(density * static_cast<double>(values.size()));
  const size_t keep = std::max<size_t>(1, floor);
  std::vector<double> sizes(values.size());
  std::transform(values.begin(), values.end(), sizes.begin(),
                 [](double v) { return std::fabs(v); });
  const auto last = sizes.begin() + static_cast<std::ptrdiff_t>(keep - 1);
  std::nth_element(sizes.begin(), last, sizes.end(), std::greater<>());
  const double least = *last;
  size_t ties = keep;  // slots left for values of exactly that size
  for (const double v : values) ties -= std::fabs(v) > least ? 1 : 0;
  for (double& v : values) {
    const double size = std::fabs(v);
    if (size > least) continue;
    if (size == least && ties > 0) {
      --ties;
    } else {
      v = 0;
    }
  }
}

void drop_at_random(std::span<double> values, double density, uint64_t seed, uint64_t stream) {
  if (density >= 1) return;
  const Rng rng(seed, stream);
  for (size_t i = 0; i < values.size(); ++i) {
    const bool kept = static_cast<double>(rng.uniform(i)) < density;
    values[i] = kept ? values[i] / density : 0.0;
  }
}

double angle_of_cosine(double cosine) {
  if (cosine < 0) return kPi - angle_of_cosine(-cosine);
  if (cosine >= 1) return 0;
  // Newton's steps from pi / 2 - x, which is never below the angle: cos is concave there, so they
  // come from above and stop where rounding does.
  double angle = kPi / 2 - cosine;
  for (int i = 0; i < 64; ++i) {
    const double next = angle + (dmath::cos(angle) - cosine) / dmath::sin(angle);
    if (!(next < angle)) break;
    angle = next;
  }
  return angle;
}

}  // namespace loom::core
