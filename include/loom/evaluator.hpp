// Evaluator: an ONNX or TFLite file that runs as it stands, node by node, on the CPU: every type,
// whole numbers exact, shapes that depend on data, If, Loop and Scan, functions. It is for files
// that no Network can hold; a Network has gradients, training, fused layers and GPUs.
//
//   Evaluator graph = Evaluator::load("silero_vad.onnx").or_exit();
//   for (const ValueInfo& input : graph.inputs()) print(input.name, input.type);
//   std::vector<Tensor> y = graph.run({{x, state, rate}}).or_exit();
//
// Types: those of Tensor; truths are uint8, 0 and 1. Lists stay inside of the graph.
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
// What a graph takes or gives.
struct ValueInfo {
  std::string name;
  std::string type;  // as ONNX calls it: "float", "int64", "bool", ...
  DType dtype = DType::float32;
  bool known_rank = false;
  Shape shape;  // of known rank; -1: any extent
};

// Copies share the graph. One run at a time: others wait for the engine.
class LOOM_API Evaluator {
 public:
  // Errors: not_found, bad_file, unsupported (what no operator computes, by node and reason).
  static Result<Evaluator> load(const std::string& path, const Engine* engine = nullptr);
  static Result<Evaluator> load(const FileBytes& file, const Engine* engine = nullptr);

  // In the order of the file. Inputs that the file gives a value are none.
  const std::vector<ValueInfo>& inputs() const;
  const std::vector<ValueInfo>& outputs() const;

  // All inputs to all outputs, in those orders. Errors: invalid_argument (another number, type,
  // rank or extent than the file says; what a node finds wrong, by node), unsupported (an output
  // that is no tensor, or of a type that Tensor has not), out_of_memory.
  Result<std::vector<Tensor>> run(std::span<const Tensor> inputs) const;

  struct LOOM_LOCAL Impl;

 private:
  explicit Evaluator(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};
#endif

}  // namespace loom
