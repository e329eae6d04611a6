// DNA: how alike two models are, cell by cell. A cell's signature is the vector of the weights that
// it computes with (after packing: an int8 network has the values of its codes), of length 1. Two
// signatures meet in their cosine, from -1 to 1.
//
//   DnaComparison dna = compare_dna("parent.entity", "child.entity").or_exit();
//   print(dna.overall_overlap);                          // 0.93: mean over cells of both
//   for (const LogicShift& s : dna.shifts) print(s.source, "moved to", s.target);
//   write_file("dna.json", dna.json()).or_exit();
//
// Any two models that open can be compared: networks and language models, whatever their files. The
// figures depend on the weights alone: never on threads, files or machines.
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

// When two cells can be alike at all. Another kind of layer (children of containers included)
// always gives 0.
enum class DnaMode : uint8_t {
  // Number types and counts of weights must be equal.
  strict,
  // Counts must be equal; number types need not: what packing kept of a network.
  functional,
  // Cells of other shapes too, equal counts or not: the leading block that both have of every
  // matrix and vector, and the cosine of that times 2 * common / (count of a + count of b).
  aligned,
  // As functional, but hidden units of Dense cells one after the other may stand in another order
  // in the second model: units are paired so that the sum of their cosines is largest (Kuhn, 1955;
  // beyond 1024 units greedily, the best pair first; beyond 8192 they stay as they are), and the
  // next cell's inputs follow them.
  permutation
};
LOOM_API std::string_view dna_mode_name(DnaMode mode);  // "functional"
LOOM_API Result<DnaMode> parse_dna_mode(std::string_view name);

struct DnaOptions {
  DnaMode mode = DnaMode::functional;
  // A cell of the first model has moved where another place of the second is more alike than this,
  // and by that much more than its own place.
  double shift_threshold = 0.8;
  double shift_margin = 0.05;
  // Weights that were compared, and all of them; false stops with Code::cancelled.
  std::function<bool(uint64_t done, uint64_t total)> progress{};
  std::optional<Engine> engine{};  // unset: Engine::shared()
};

// A cell with its signature's measures.
struct DnaCell {
  std::string at;       // "0,0,1,0": z, y, x, l
  std::string type;     // "Dense"; of containers with what they hold: "Residual(RmsNorm, SwiGLU)"
  std::string dtype;    // that most of its weights are packed in
  int64_t weights = 0;  // length of the signature; 0: nothing to compare but the kind
};

// A coordinate that both models use.
struct DnaOverlap {
  std::string at;
  int64_t weights = 0;  // of the first model's cell
  double overlap = 0;   // -1 to 1
};

// A cell of the first model (source) that stands elsewhere in the second (target).
struct LogicShift {
  std::string source, target;
  double overlap = 0;
};

struct DnaComparison {
  DnaMode mode = DnaMode::functional;
  double overall_overlap = 0;   // mean over the coordinates that both use; 0 where there are none
  double weighted_overlap = 0;  // the same, each cell as often as it has weights
  double coverage = 0;          // coordinates that both use, by the cells of the larger model
  std::vector<DnaCell> a, b;    // in the order of the grid
  std::vector<DnaOverlap> layers;
  // Every cell of the second is the target of one shift at most; cells with fewer than four weights
  // are never one. Best first.
  std::vector<LogicShift> shifts;
  // Of every cell of a with every cell of b, row by row: [a.size()][b.size()]; NaN where they can
  // not be alike (another kind or count). Empty, and no shifts, for more than 2^24 pairs.
  std::vector<double> matrix;

  // One object: overall_overlap, weighted_overlap, coverage, layer_overlaps {"z,y,x,l": overlap},
  // logic_shifts [{source_pos, target_pos, overlap}], and the rest by its name here.
  std::string json() const;
};

// Two files or folders. Both are in memory, packed as they are stored, while they are compared.
// Errors: those of opening; out_of_memory by the engine's limit; cancelled.
LOOM_API Result<DnaComparison> compare_dna(const std::string& a, const std::string& b,
                                           const DnaOptions& options = {});
// Two networks of this program.
LOOM_API Result<DnaComparison> compare_dna(const Network& a, const Network& b,
                                           const DnaOptions& options = {});

// The signature of a cell, named as in DnaCell::at: the vector itself, float64. Parts of containers
// have length 1 each before the whole is scaled to length 1. A cell of zeros keeps them; one
// without weights is [1]. Errors: not_found (no such cell).
LOOM_API Result<Tensor> dna_signature(const Network& network, std::string_view at);

// Cosine of two vectors of equal length as signatures are compared: both zero: 1; one: 0. float32
// or float64. Errors: invalid_argument (lengths that differ, other types).
LOOM_API Result<double> dna_similarity(const Tensor& a, const Tensor& b);

}  // namespace loom
#endif
