// WeightSource: the parameters of a network in a file of any format. This is also the only path
// from there into a network or a file: parameters are packed one at a time, so none is ever
// unpacked as a whole.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "grid/network.hpp"
#include "io/weights/entity.hpp"
#include "ops/families/fwd.hpp"

namespace loom::core {

// One parameter of a network as stored in a file.
struct SourceWeight {
  DType stored = DType::f32;  // its packed type by default
  // Its type in the file, if a quantizer chose `stored`; rows() are the values of the file.
  std::optional<DType> original = {};
  // The scope over which scales from mean magnitudes average.
  ScaleScope mean_scope = ScaleScope::per_row;
  // Values as f32, rows ascending, possibly twice.
  Network::RowSource rows;
  // Packs row `row` of the parameter with the exact codes and scales of the file into a matrix of
  // type `stored`. May be null: rows() and packing are lossless, or the file has no such type.
  std::function<Status(int64_t row, const R16& matrix, std::byte* to)> copy_row;
  // Ranges that determined scales of type `held_dtype` (dtype/r16/r16.hpp); may be empty.
  std::vector<float> held;
  DType held_dtype = DType::f32;
  std::string tensor;  // its name in the file, for messages; "" means the parameter's path
  // Checks the packed result: set by finite_weight(), called by load_weight().
  std::function<Status(const Tensor& packed)> packed;
  // Releases the pages of the file; the parameter is not read again.
  std::function<void()> release;
};

class WeightSource {
 public:
  virtual ~WeightSource() = default;
  // The source of `param`, a parameter of the network that the file describes. Errors: bad_file
  // (absent, another shape).
  virtual Result<SourceWeight> weight(const Param& param) const = 0;
  // The file, for messages.
  virtual std::string where() const { return {}; }
  // Values of a network in memory: finite_weight() accepts them, and checks packing.
  virtual bool in_memory() const { return false; }
  bool allow_nonfinite = false;  // finite_weight() checks nothing
};

// Packs parameter `index` in `dtype`: exactly the file's codes if the types are equal.
Status load_weight(Network& network, int index, DType dtype, const SourceWeight& weight,
                   ThreadPool& pool, ScaleScope scope = ScaleScope::per_row);

// The effect of packing on a parameter.
struct PackReport {
  std::string path;
  Shape shape;
  DType from = DType::f32, to = DType::f32;
  int64_t bytes_from = 0, bytes_to = 0;  // from: in type `from`, packed as r16
  double rms = 0;                        // root of the mean square of the values
  double error = 0;                      // and that of the differences by packing
  double max_error = 0;
  double cosine = 1;
};

// The packing options of parameters.
struct PackPolicy {
  // The type of a matrix, given its stored type; vectors are always f32.
  std::function<DType(const Param& param, DType stored)> dtype;
  std::function<ScaleScope(const Param& param)> scope;  // null: per row
  // Called after each parameter; it costs another decoding. May be null.
  std::function<void(const PackReport&)> report;
};

// The blobs of a network that is packed during writing: each parameter exists only while its blob
// does. `network` (finalized, empty), `source` and `policy` must outlive the writing.
Result<std::vector<EntityOutput>> packed_outputs(Network& network, const WeightSource& source,
                                                 const PackPolicy& policy, ThreadPool& pool);

}  // namespace loom::core
