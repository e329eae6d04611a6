// Merging trained models into one: averages and task arithmetic as users of mergekit know them, and
// splicing, the crossover of two parents.
//
//   merge({{"a", 0.7}, {"b", 0.3}}, "merged", {.method = MergeMethod::linear}).or_exit();
//   merge({{"math"}, {"code"}}, "both", {.method = MergeMethod::ties, .base = "base"}).or_exit();
//   SpliceReport child = splice("a.entity", "b.entity", "child.entity",
//                               {.fitness_a = 0.97, .fitness_b = 0.95}).or_exit();
//
// Inputs are any files that open, of the same network: language models (folders, GGUF, .entity) or
// networks. The output has the form of its name, as with convert(). Sums are in double, over the
// models in the order given, and rounded to float32 once; one parameter of each model at a time is
// in memory. The first model gives what is no weight: description, tokenizer, names of classes.
// Classes are matched by name: rows of the last Dense layer move if a model numbers them otherwise.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loom/dtype.hpp"
#include "loom/engine.hpp"
#include "loom/export.hpp"
#include "loom/network.hpp"
#include "loom/result.hpp"

#ifndef LOOM_MINIMAL  // a build for inference alone leaves this out
namespace loom {

// w: weight of a model; d = x - base, its task vector.
enum class MergeMethod : uint8_t {
  linear,           // sum w x (/ sum w): model soups (Wortsman et al., 2022)
  slerp,            // of two: along the arc between them (Shoemake, 1985), at t
  task_arithmetic,  // base + lambda sum w d (Ilharco et al., 2023)
  // base + lambda sum w trim(d) (/ sum w) over the models that agree with the sign of the sum; trim
  // keeps the `density` largest magnitudes of a parameter (Yadav et al., 2023)
  ties,
  dare_linear,  // base + lambda sum w drop(d); drop keeps a value with probability `density` and
                // divides it by that (Yu et al., 2024)
  dare_ties     // drop, then the election of signs of ties
};
LOOM_API std::string_view merge_method_name(MergeMethod method);  // "dare_ties"
LOOM_API Result<MergeMethod> parse_merge_method(std::string_view name);

struct MergeInput {
  std::string path;
  double weight = 1;
  // Of task vectors: the share of values that ties and dare keep, above 0 and at most 1.
  double density = 1;
};

struct MergeOptions {
  MergeMethod method = MergeMethod::linear;
  std::string base{};  // of task vectors; linear and slerp take none
  // Divide by the sum of the weights; unset: as mergekit has it, for linear and ties alone. A sum
  // below 1e-8 divides nothing.
  std::optional<bool> normalize{};
  double lambda = 1;             // of the sum of task vectors
  double t = 0.5;                // slerp: 0 is the first model, 1 the second
  uint64_t seed = 1;             // of what dare drops
  std::optional<DType> dtype{};  // of the matrices of the output; unset: as the first model (the
                                 // base, where there is one) stores them
  // What was noticed: tokenizers that differ, classes that are matched by name, what the output's
  // format has no place for.
  std::function<void(const std::string&)> note{};
  // Weights that were merged, and all of them; false stops with Code::cancelled.
  std::function<bool(uint64_t done, uint64_t total)> progress{};
  std::optional<Engine> engine{};  // unset: Engine::shared()
};

struct MergeReport {
  MergeMethod method = MergeMethod::linear;
  int64_t models = 0;      // besides the base
  int64_t parameters = 0;  // tensors
  int64_t weights = 0;     // numbers in them
  int64_t bytes = 0;       // of the output
};

// Errors: those of opening and writing; invalid_argument (too few models, a base that is missing or
// not wanted, a density, weight, t or lambda that makes no sense, another network: naming the first
// parameter that one of them lacks or has in another shape, or the layer that divides its weights
// into other heads, groups or kernels; other classes; other columns of inputs); cancelled.
LOOM_API Result<MergeReport> merge(const std::vector<MergeInput>& models, const std::string& output,
                                   const MergeOptions& options = {});

// ---- splicing -----------------------------------------------------------------------------------

enum class SpliceMode : uint8_t {
  blend,   // a weight of the child is (1 - share) of a's + share of b's
  point,   // the first split of each layer's weights from a, the others from b
  uniform  // each weight from one of the two
};
LOOM_API std::string_view splice_mode_name(SpliceMode mode);
LOOM_API Result<SpliceMode> parse_splice_mode(std::string_view name);

// How much of b a blended layer has, by the fitness of both and the similarity s of their layers.
enum class BlendLaw : uint8_t {
  // share = w at s = 1, the fitter parent alone at s <= 0, linear between. w = F_b / (F_a + F_b);
  // where one fitness is negative, the fitter has two thirds (ranks). Equal fitness: a half.
  fitter,
  // As the original computes it: F_b / (F_a + F_b) * (0.5 + 0.5 s), where F_a + F_b > 0; else
  // alpha. A low similarity favours a, even where b is fitter. Kept within 0 and 1.
  original
};

struct SpliceOptions {
  SpliceMode mode = SpliceMode::blend;
  BlendLaw law = BlendLaw::fitter;
  double alpha = 0.5;  // blend without fitness: the share of b
  double split = 0.5;  // point: the share of a, cut to 0..1
  // Higher is better. Give both or none. Of uniform: a weight is a's with probability
  // 1 - w, w as above.
  std::optional<double> fitness_a{}, fitness_b{};
  uint64_t seed = 1;  // of uniform
  std::optional<DType> dtype{};
  std::function<void(const std::string&)> note{};
  std::function<bool(uint64_t done, uint64_t total)> progress{};
  std::optional<Engine> engine{};
};

// A layer with weights, of a cell or inside of a container.
struct SplicedLayer {
  std::string at;    // "(0, 0, 1, 0)", below it "(0, 0, 1, 0)/0"
  std::string type;  // "Dense"
  int64_t weights = 0;
  double similarity = 0;  // as DnaMode::functional
  double share = 0;       // of b in it: by count for point and uniform
  int64_t changed = 0;    // weights that are not a's
  std::string skipped;    // why it is a's as it was: "another shape"; "": it is crossed
};

struct SpliceReport {
  std::vector<SplicedLayer> layers;
  int64_t crossed = 0;               // layers that have weights of both, or of b
  int64_t bytes = 0;                 // of the output; 0 for networks in memory
  std::vector<std::string> notes{};  // what was matched or left, for a person
};

struct SplicedNetwork {
  Network network;
  SpliceReport report;
};

// The child of two models: a, with the layers that stand at the same place in b, of the same kind
// and shapes, crossed. Parents may be different networks; what b lacks stays a's. Errors: those of
// opening and writing; invalid_argument (one fitness alone, numbers that are not finite, a language
// model with a network, nothing in common).
LOOM_API Result<SpliceReport> splice(const std::string& a, const std::string& b,
                                     const std::string& output, const SpliceOptions& options = {});
// The same of networks in memory; their engine and classes are a's.
LOOM_API Result<SplicedNetwork> splice(const Network& a, const Network& b,
                                       const SpliceOptions& options = {});

}  // namespace loom
#endif
