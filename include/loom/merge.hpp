// Merges trained models into one: averages and task arithmetic as in mergekit, and splicing, the
// crossover of two parents.
//
//   merge({{"a", 0.7}, {"b", 0.3}}, "merged", {.method = MergeMethod::linear}).or_exit();
//   merge({{"math"}, {"code"}}, "both", {.method = MergeMethod::ties, .base = "base"}).or_exit();
//   SpliceReport child = splice("a.entity", "b.entity", "child.entity",
//                               {.fitness_a = 0.97, .fitness_b = 0.95}).or_exit();
//
// Inputs are files in any format, of the same network: language models (folders, GGUF, .entity) or
// networks. The output format follows from its name, as with convert(). Sums are in double, over
// the models in the given order, and rounded to float32 once. Only one parameter of each model is
// in memory at a time. The first model provides everything except weights: description, tokenizer,
// class names. Classes are matched by name: rows of the last Dense layer move if a model numbers
// them otherwise.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loom/convert_options.hpp"
#include "loom/dtype.hpp"
#include "loom/engine.hpp"
#include "loom/export.hpp"
#include "loom/network.hpp"
#include "loom/result.hpp"

#ifndef LOOM_MINIMAL  // a build for inference alone leaves this out
namespace loom {

struct MergeInput {
  std::string path;
  double weight = 1;
  // For task vectors: the share of values that ties and dare keep, above 0 and at most 1.
  double density = 1;
};

struct MergeReport {
  MergeMethod method = MergeMethod::linear;
  int64_t models = 0;      // without the base
  int64_t parameters = 0;  // tensors
  int64_t weights = 0;     // numbers in them
  int64_t bytes = 0;       // of the output
};

// Errors: those of opening and writing; cancelled; invalid_argument: too few models; a base that is
// missing or not allowed; an invalid density, weight, t or lambda; other classes; other columns of
// inputs; another network. The last names the first parameter that a model lacks or has in another
// shape, or the layer with other heads, groups or kernels.
LOOM_API Result<MergeReport> merge(const std::vector<MergeInput>& models, const std::string& output,
                                   const MergeOptions& options = {});

// ---- splicing -----------------------------------------------------------------------------------

// A layer with weights: a cell, or a child of a container.
struct SplicedLayer {
  std::string at;    // "(0, 0, 1, 0)"; a child: "(0, 0, 1, 0)/0"
  std::string type;  // "Dense"
  int64_t weights = 0;
  double similarity = 0;  // as DnaMode::functional
  double share = 0;       // share of b; by count for point and uniform
  int64_t changed = 0;    // weights that differ from a's
  std::string skipped;    // why it is unchanged: "another shape"; empty if it was crossed
};

struct SpliceReport {
  std::vector<SplicedLayer> layers;
  int64_t crossed = 0;               // layers that have weights of both, or of b
  int64_t bytes = 0;                 // of the output; 0 for networks in memory
  std::vector<std::string> notes{};  // what was matched or skipped, for people
};

struct SplicedNetwork {
  Network network;
  SpliceReport report;
};

// The child of two models: a, in which layers are crossed with the layers of b at the same
// location, of the same kind and shapes. Parents may be different networks; a's layers without a
// counterpart stay unchanged. Errors: those of opening and writing; invalid_argument (only one
// fitness, numbers that are not finite, a language model with a network, nothing in common).
LOOM_API Result<SpliceReport> splice(const std::string& a, const std::string& b,
                                     const std::string& output, const SpliceOptions& options = {});
// The same for networks in memory; engine and classes are a's.
LOOM_API Result<SplicedNetwork> splice(const Network& a, const Network& b,
                                       const SpliceOptions& options = {});

}  // namespace loom
#endif
