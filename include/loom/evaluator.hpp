// Evaluator: runs an ONNX or TFLite file unchanged, node by node, on the CPU. It supports every
// type, exact integers, data-dependent shapes, If, Loop, Scan, and functions. It is for files that
// a Network cannot hold; a Network has gradients, training, fused layers and GPUs.
//
//   Evaluator graph = Evaluator::load("silero_vad.onnx").or_exit();
//   for (const ValueInfo& input : graph.inputs()) print(input.name, input.type);
//   std::vector<Tensor> y = graph.run({{x, state, rate}}).or_exit();
//
// Types are those of Tensor; booleans are uint8, 0 and 1. Sequences exist only inside the graph.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "loom/engine.hpp"
#include "loom/export.hpp"
#include "loom/files.hpp"
#include "loom/tensor.hpp"

namespace loom {

#ifndef LOOM_MINIMAL
// An input or output of a graph.
struct ValueInfo {
  std::string name;
  std::string type;  // in ONNX terms: "float", "int64", "bool", ...
  DType dtype = DType::float32;
  bool known_rank = false;
  Shape shape;  // if the rank is known; -1 means any extent
};

// Copies share the graph. One run at a time: others wait for the engine.
class LOOM_API Evaluator {
 public:
  // Errors: not_found, bad_file, unsupported (nodes without an operator, with reasons).
  static Result<Evaluator> load(const std::string& path, const Engine* engine = nullptr);
  static Result<Evaluator> load(const FileBytes& file, const Engine* engine = nullptr);

  // In file order. Inputs with a default value in the file are excluded.
  const std::vector<ValueInfo>& inputs() const;
  const std::vector<ValueInfo>& outputs() const;

  // All inputs to all outputs, in those orders. Errors: invalid_argument (a count, type, rank or
  // extent that differs from the file; a node's own check, naming the node), unsupported (an output
  // that is not a tensor, or of a type that Tensor lacks), out_of_memory.
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs) const;

  struct LOOM_LOCAL Impl;

 private:
  explicit Evaluator(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};
#endif

}  // namespace loom
