// WeightSource: where the parameters of a network come from, whatever the file. And the one way
// from there into a network or a file: packed one parameter at a time, so that nothing is ever
// unpacked as a whole.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "grid/network.hpp"
#include "io/entity.hpp"
#include "ops/fwd.hpp"

namespace loom::core {

// One parameter of a network as a file has it.
struct SourceWeight {
  DType stored = DType::f32;  // what it is packed in when nobody asks for another type
  // Of what the scale of types that take one from mean magnitudes is the mean.
  ScaleScope mean_scope = ScaleScope::per_row;
  // Values as f32, rows ascending, maybe twice.
  Network::RowSource rows;
  // Packs row `row` of the parameter with the very codes and scales of the file into a matrix of
  // type `stored`. Null where rows() and packing lose nothing, or where the file has no such type.
  std::function<Status(int64_t row, const R16& matrix, std::byte* to)> place;
  // Ranges that scales of type `held_dtype` were taken from (dtype/r16.hpp); empty: none are held.
  std::vector<float> held;
  DType held_dtype = DType::f32;
  std::string tensor;  // its name in the file, for messages; "": the path of the parameter
  // Checks what packing made of it: set by finite_weight(), called by load_weight().
  std::function<Status(const Tensor& packed)> packed;
  // Hands the pages of the file back; the parameter is not read again.
  std::function<void()> release;
};

class WeightSource {
 public:
  virtual ~WeightSource() = default;
  // Of `param`, a parameter of the network that the file describes. Errors: bad_file (absent,
  // another shape).
  virtual Result<SourceWeight> weight(const Param& param) const = 0;
  // The file, for messages.
  virtual std::string where() const { return {}; }
  // Values of a network in memory: finite_weight() takes them as they are, and checks packing.
  virtual bool in_memory() const { return false; }
  bool allow_nonfinite = false;  // finite_weight() checks nothing
};

// Packs parameter `index` in `dtype`: exactly what the file holds where the types are the same.
Status load_weight(Network& network, int index, DType dtype, const SourceWeight& weight,
                   ThreadPool& pool, ScaleScope scope = ScaleScope::per_row);

// What packing did to a parameter.
struct PackReport {
  std::string path;
  Shape shape;
  DType from = DType::f32, to = DType::f32;
  int64_t bytes_from = 0, bytes_to = 0;  // from: in type `from`, packed as r16
  double rms = 0;                        // root of the mean square of the values
  double error = 0;                      // and of what packing changed
  double max_error = 0;
  double cosine = 1;
};

// How each parameter is packed.
struct PackPolicy {
  // The type of a matrix, given the one it is stored in; vectors are always f32.
  std::function<DType(const Param& param, DType stored)> dtype;
  std::function<ScaleScope(const Param& param)> scope;  // null: per row
  // Changes values before they are packed: `rows` rows of param, [rows][cols]. Null: nothing does.
  std::function<Status(const Param& param, DType dtype, int64_t rows, float* values)> adjust;
  // Called after each parameter; asking for it costs another decoding. Null: nobody asks.
  std::function<void(const PackReport&)> report;
};

// The blobs of a network that is packed while it is written: each parameter lives only while its
// blob is. `network` (finalized, empty), `source` and `policy` must outlive the writing.
Result<std::vector<EntityOutput>> packed_outputs(Network& network, const WeightSource& source,
                                                 const PackPolicy& policy, ThreadPool& pool);

}  // namespace loom::core
