// DNA: the similarity of two models, cell by cell. A cell's signature is the vector of its
// effective weights, scaled to length 1. (Weights are effective after packing: int8 weights are the
// values of their codes.) Two signatures are compared by their cosine, -1 to 1.
//
//   DnaComparison dna = compare_dna("parent.entity", "child.entity").or_exit();
//   print(dna.overall_overlap);                          // 0.93: mean over cells of both
//   for (const LogicShift& s : dna.shifts) print(s.source, "moved to", s.target);
//   write_file("dna.json", dna.json()).or_exit();
//
// Any two models that open can be compared: networks and language models, in any format. Results
// depend on the weights only: never on threads, files or machines.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loom/engine.hpp"
#include "loom/export.hpp"
#include "loom/network.hpp"
#include "loom/result.hpp"

#ifndef LOOM_MINIMAL  // a build for inference alone leaves this out
namespace loom {

// Which cells are comparable. Layers of different kinds (children of containers included) always
// give 0.
enum class DnaMode : uint8_t {
  // Number types and counts of weights must be equal.
  strict,
  // Counts must be equal; number types may differ, for example after quantization.
  functional,
  // Shapes and counts may differ. The common leading block of every matrix and vector is compared.
  // Its cosine is scaled by 2 * common / (count of a + count of b).
  aligned,
  // Like functional, but hidden units of consecutive Dense cells may be permuted in the second
  // model. Units are paired to maximize the sum of their cosines (Kuhn, 1955), and the next cell's
  // inputs follow the pairing. Beyond 1024 units the pairing is greedy, the best pair first; beyond
  // 8192 units are not paired.
  permutation
};
LOOM_API std::string_view dna_mode_name(DnaMode mode);  // "functional"
LOOM_API Result<DnaMode> parse_dna_mode(std::string_view name);

struct DnaOptions {
  DnaMode mode = DnaMode::functional;
  // A cell of the first model has moved if the similarity to another location of the second exceeds
  // the threshold. It must exceed the similarity to its own location by the margin.
  double shift_threshold = 0.8;
  double shift_margin = 0.05;
  // Weights compared, and the total; false stops with Code::cancelled.
  std::function<bool(uint64_t done, uint64_t total)> progress{};
  std::optional<Engine> engine{};  // unset: Engine::shared()
};

// A cell and its signature.
struct DnaCell {
  std::string at;       // coordinate "0,0,1,0": z, y, x, l
  std::string type;     // "Dense"; containers with their children: "Residual(RmsNorm, SwiGLU)"
  std::string dtype;    // of most of its weights
  int64_t weights = 0;  // length of the signature; 0 compares the kind only
};

// A coordinate that is in use in both models.
struct DnaOverlap {
  std::string at;
  int64_t weights = 0;  // of the first model's cell
  double overlap = 0;   // -1 to 1
};

// A cell of the first model (source) that is elsewhere in the second (target).
struct LogicShift {
  std::string source, target;
  double overlap = 0;
};

struct DnaComparison {
  DnaMode mode = DnaMode::functional;
  double overall_overlap = 0;   // mean over the common coordinates; 0 if there are none
  double weighted_overlap = 0;  // the same, weighted by weights per cell
  double coverage = 0;          // common coordinates / cells of the larger model
  std::vector<DnaCell> a, b;    // in grid order
  std::vector<DnaOverlap> layers;
  // Each cell of the second model is the target of at most one shift. Cells with fewer than four
  // weights are excluded. Best first.
  std::vector<LogicShift> shifts;
  // Similarity of every cell of a with every cell of b, row-major [a.size()][b.size()]. NaN marks
  // pairs of another kind or count. Empty (and so is `shifts`) above 2^24 pairs.
  std::vector<double> matrix;

  // One object: overall_overlap, weighted_overlap, coverage, layer_overlaps {"z,y,x,l": overlap},
  // logic_shifts [{source_pos, target_pos, overlap}], and the other members by their names.
  std::string json() const;
};

// Compares two files or folders. Both are in memory at the same time, packed as stored. Errors:
// those of opening; out_of_memory (the engine's limit); cancelled.
LOOM_API Result<DnaComparison> compare_dna(const std::string& a, const std::string& b,
                                           const DnaOptions& options = {});
// Compares two networks in memory.
LOOM_API Result<DnaComparison> compare_dna(const Network& a, const Network& b,
                                           const DnaOptions& options = {});

// The signature of a cell as a float64 vector. `at` is in the form of DnaCell::at. Each part of a
// container is scaled to length 1 before the whole is. A cell of zeros stays zero; one without
// weights is [1]. Errors: not_found (no such cell).
LOOM_API Result<Tensor> dna_signature(const Network& network, std::string_view at);

// Cosine of two vectors of equal length, float32 or float64. Two zero vectors give 1, a single one
// gives 0. Errors: invalid_argument (lengths that differ, other types).
LOOM_API Result<double> dna_similarity(const Tensor& a, const Tensor& b);

}  // namespace loom
#endif
