// A graph of ONNX that runs unchanged, node by node: every type of the standard, exact integers,
// shapes that depend on data, control flow, functions, lists. It is the way for files that no
// Network can hold: a Network has fixed shapes and one type, and in return gradients, training,
// fused layers and a GPU. Here everything runs on the CPU; convolutions, products, pooling and the
// like by the kernels of networks (ops/), the rest by bodies of this room. One run at a time.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "io/files/file.hpp"
#include "onnx/operators/value.hpp"
#include "ops/families/fwd.hpp"

namespace loom::core::evaluate {

struct Body;

struct EvaluatorOptions {
  int64_t memory_limit = int64_t{8} << 30;  // bytes of all values at a time
};

class Evaluator {
 public:
  Evaluator();
  ~Evaluator();
  Evaluator(Evaluator&&) noexcept;
  Evaluator& operator=(Evaluator&&) noexcept;

  // `ops` (of the CPU) and `pool` must outlive it. Errors: those of parse_onnx, and what no
  // operator computes, by node, operator and reason (unsupported).
  static Result<Evaluator> load(const FileRef& path, const Ops& ops, ThreadPool& pool,
                                const EvaluatorOptions& options = {});
  // From a model in memory; the bytes that its tensors view must outlive it.
  static Result<Evaluator> of(OnnxModel model, const Ops& ops, ThreadPool& pool,
                              const EvaluatorOptions& options = {});

  // Inputs and outputs of a run, in the order of the file. Inputs with a value of their own are not
  // listed.
  const std::vector<OnnxValue>& inputs() const;
  const std::vector<OnnxValue>& outputs() const;
  Memory& memory();
  // Steps of the outermost graph after folding.
  int64_t steps() const;

  // Errors: another number of inputs, types that are not those of the file, ranks and known extents
  // too; what a node finds wrong with its inputs, by node.
  Result<std::vector<Slot>> run(std::vector<Slot> inputs);
  // From now on runs add their times there; null: no more.
  void set_profile(Profile* profile);

 private:
  struct Impl;
  Status open(const std::string& where);
  std::unique_ptr<Impl> impl_;
};

}  // namespace loom::core::evaluate
