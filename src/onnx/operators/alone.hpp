// An operator that runs alone: one node whose inputs are known, outside of any graph. It runs on
// one thread, with the kernels of a CPU. Constants of imported networks are folded this way, so
// that a constant has the values that the interpreter computes, in every build.
#pragma once

#include <memory>
#include <vector>

#include "onnx/operators/operator.hpp"
#include "ops/recording/recorder.hpp"

namespace loom::core::evaluate {

class Alone {
 public:
  // `ops` must outlive it. Values take at most `memory_limit` bytes.
  explicit Alone(const Ops& ops, int64_t memory_limit);
  Memory& memory() { return *memory_; }

  // The outputs of `node`, one for each of its names. Absent inputs are left out. Errors: a number
  // of inputs or an attribute that the row does not have; a node that holds graphs; and what the
  // operator refuses.
  Result<std::vector<Slot>> run(const Operator& row, const OnnxNode& node, int64_t opset,
                                std::span<const Slot> inputs);
  // The same for tensors of a file, and only if the standard defines it (defined()). An input that
  // is left out is null.
  Result<std::vector<OnnxTensor>> run(const Operator& row, const OnnxNode& node, int64_t opset,
                                      std::span<const OnnxTensor* const> inputs);
  // The extents of its first output, by the shape rule of the row, which it must have.
  Result<Dims> shape(const Operator& row, const OnnxNode& node, int64_t opset,
                     std::span<const Slot> inputs);
  // An Error if the standard leaves undefined what the row computes of these inputs.
  Status defined(const Operator& row, const OnnxNode& node, int64_t opset,
                 std::span<const Slot> inputs);

 private:
  std::shared_ptr<Memory> memory_;
  ThreadPool pool_;
  Recorder recorder_;
  Runtime rt_;
};

}  // namespace loom::core::evaluate
