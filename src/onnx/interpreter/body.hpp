// A graph made ready to run: names are places of a frame, constants are values, nodes are steps in
// order with the operator that computes each. Made by plan.cpp, run by evaluator.cpp.
#pragma once

#include <deque>

#include "onnx/operators/operator.hpp"

namespace loom::core::evaluate {

// The operator of any build that has this room; null if there is none.
const Operator* find_operator(std::string_view domain, std::string_view name);
// All of them, for tables.
std::span<const std::span<const Operator>> operator_families();

struct Step {
  const OnnxNode* node = nullptr;
  const Operator* op = nullptr;
  int64_t opset = 0;
  std::vector<int> in, out;  // slots; -1 if left out
  std::vector<int> around;   // read by graphs inside
  std::vector<int> release;  // read for the last time
  std::vector<std::unique_ptr<Body>> bodies;
  std::shared_ptr<const Prepared> prepared;
};

struct Body {
  std::vector<Slot> fixed;  // a place each; constants are there before the first step
  std::vector<int> inputs, outputs;
  std::vector<std::pair<int, int>> captures;  // place outside, place here
  std::vector<Step> steps;
};

// Calls of functions that a model defines.
extern const Operator kFunctionCall;

// The graph and the functions of a model as steps. `kept` holds nodes that the model has not: those
// of functions with the attributes of their calls. Errors: what is read and not there, and
// operators, attributes and counts of inputs that are not known (unsupported, by name).
Result<std::unique_ptr<Body>> plan(const OnnxModel& model, Runtime& rt, std::deque<OnnxNode>& kept);
// Calls `prepare` of the operator of a step with its constant inputs.
Status prepare_step(Step& step, const Body& body, Runtime& rt);
// Batch norms and activations become part of the convolutions before them.
Status fuse(Body& body, Runtime& rt);
Status run_step(const Step& step, std::span<Slot> frame, Runtime& rt);
Result<std::vector<Slot>> run_frame(const Body& body, std::vector<Slot> frame, Runtime& rt);

}  // namespace loom::core::evaluate
