// LayerDef: what a layer kind is. One constant object per file of this room. A layer sees tensors
// and ops: no dtype, no device, no thread, no file. Passes are drivers in grid/ that call these
// functions; containers call back through PlanCall and ForwardCall.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "layers/config.hpp"
#include "ops/recorder.hpp"
#include "tensor/tensor.hpp"

namespace loom {

enum class Init : uint8_t { zeros, ones, glorot, normal002 };

// One trainable tensor. Matrices [rows, cols] are stored R16 in any dtype; vectors stay plain f32.
struct ParamSpec {
  std::string_view name;
  Shape shape;
  Init init = Init::zeros;
  bool matrix() const { return shape.rank() == 2; }
};

// Rotary embedding as a layer wants it; equal specs share one table.
struct RopeSpec {
  int64_t width = 0;  // rotated values per head
  double theta = 10000.0;
  std::string scaling;  // "", "linear", "llama3"
  double factor = 1.0, low_freq = 1.0, high_freq = 4.0;
  int64_t original_positions = 8192;
  bool bf16_frequencies = false;  // rounded to bfloat16, as in a model cast whole to that type
  bool operator==(const RopeSpec&) const = default;
};

// Memory a layer keeps between passes of a session, per sequence: here, a KV cache. Zero heads:
// none.
struct StateSpec {
  int64_t kv_heads = 0, head_dim = 0;
};

// Planning: a layer declares the temporaries of one forward pass over its largest input, in the
// order it will use them.
class PlanCall {
 public:
  virtual ~PlanCall() = default;
  virtual const LayerConfig& config() const = 0;
  virtual const Shape& input() const = 0;
  // f32 memory that lives while this layer runs.
  virtual void temp(const Shape& shape) = 0;
  // The output goes to fresh memory of this shape (leaf layers) ...
  virtual void output(const Shape& shape) = 0;
  // ... or is that of a child. Runs child i on `input`; its output shape and memory are then
  // current.
  virtual Status child(size_t i) = 0;
  // The input is still needed after the children so far.
  virtual void keep_input() = 0;
};

// One forward call. Shapes may be smaller than planned in every axis but the last.
class ForwardCall {
 public:
  virtual ~ForwardCall() = default;
  virtual Recorder& ops() = 0;
  virtual const LayerConfig& config() const = 0;
  virtual const Tensor& x() const = 0;
  virtual Result<Tensor> temp(size_t i, const Shape& shape) = 0;
  virtual Result<Tensor> output(const Shape& shape) = 0;
  virtual const Tensor& param(size_t i) const = 0;  // in the order of LayerDef::params
  // Rows of x are `sequences` runs of equal length, one after the other; all stand at position
  // `first`.
  virtual int64_t sequences() const = 0;
  virtual int64_t first() const = 0;
  virtual KvCache cache(int64_t sequence) = 0;
  virtual const Tensor& rope_cos() const = 0;
  virtual const Tensor& rope_sin() const = 0;
  virtual Result<Tensor> child(size_t i, const Tensor& input) = 0;
};

struct LayerDef {
  LayerKind kind;
  std::string_view name;
  std::span<const FieldDesc> fields;
  bool container = false;
  // The parameters of a layer with this configuration, in a fixed order.
  void (*params)(const LayerConfig&, std::vector<ParamSpec>&) = nullptr;
  // Shape of the output for an input shape; the Error says which extent is wrong.
  Result<Shape> (*infer)(const LayerConfig&, const Shape&) = nullptr;
  // Memory of one pass. Null: one output of the inferred shape and nothing else.
  Status (*plan)(PlanCall&) = nullptr;
  // Records the ops of one pass and returns the output.
  Result<Tensor> (*forward)(ForwardCall&) = nullptr;
  StateSpec (*state)(const LayerConfig&) = nullptr;  // null: none
  RopeSpec (*rope)(const LayerConfig&) = nullptr;    // null: none
};

const LayerDef& layer_def(LayerKind kind);
std::span<const LayerDef* const> layer_table();

// Shape of the output of a layer, children included; disabled layers pass their input on.
Result<Shape> infer_shape(const LayerConfig& layer, const Shape& in);

}  // namespace loom
