// Learning rules beside back-propagation. A network whose cells follow each other is cut in front
// of every cell with parameters but the first. The cells between two cuts are a block. It learns
// from a signal at its end, which replaces dL/d(output). Inside the block gradients are exact,
// the slope of its own activations among them, and no gradient crosses a cut. So a rule is where
// signals come from: a row of learn/rules/rule.hpp. Private to the room.
//
// The formulas of the rows use these symbols:
//   h_k  the output of block k of m blocks, with f_k numbers per row
//   y    the prediction, h_m, with n rows
//   w    the weights of rows; 1 / rows for a mean
//   e    dL/dy, with the weights w
//   t    the target, one-hot for classes
//   s_k  the signal of block k
//   B_k  fixed random matrices with variance 1 / (rows of B_k)
// If the prediction equals the target, all signals are 0 but those of drtp and hebb.
// forward_forward has no signals of this kind: learn/rules/forward_forward.hpp.
#pragma once

#include "learn/scribe.hpp"
#include "learn/step/step_builder.hpp"

namespace loom::core {

// A cut of a network.
struct SignalCut {
  size_t below = 0;  // cell whose output gets a signal
  size_t above = 0;  // cell with parameters after it
  std::string name;  // of the cell below, for messages
  Tensor random;     // B_k, of rules that have one; V_k of dtp
  int weight = -1;   // parameter W of the Dense that is the block above, for diff_project and hebb
  Tensor bias;       // c_k of dtp
  int slot = -1;     // of a mesh: learn/rules/tick_signals.hpp
  Tensor random_v, bias_v;  // means of squares of the gradients of V and c
};

// Cuts and matrices of a rule for a network.
struct SignalPlan {
  std::vector<SignalCut> cuts;  // first to last
  std::vector<size_t> blocks;   // of every parameter: the number of cuts before its cell
  Tensor labels;                // forward_forward: [classes, numbers of a sample]
  std::optional<size_t> top;    // the cell of the prediction; unset: the last
  Tensor stats;                 // [cuts + 1, kLinkNumbers], where RuleSpec::stats is set
};

// The plan of a network, whose tensors `memory` owns; what is trained of it goes to `state`. No
// cuts for back-propagation. Errors: invalid_argument, naming the cell that the rule has no signal
// for.
Result<SignalPlan> make_plan(const Network& network, const TrainStepOptions& options,
                             std::vector<Buffer>& memory, std::vector<StateTensor>& state);

// Records the signals and hands them to `d`. dy: e, a matrix; in t the pass, targets and weights.
Status record_signals(Trace& trace, const Network& network, const TrainStepOptions& options,
                      StepTensors& t, const Tensor& dy, Differentiator& d);

// Cells [begin, end) once more, on x, as the pass in `t` ran them.
Result<Tensor> run_again(Trace& trace, const Network& network, const TrainStepOptions& options,
                         const StepTensors& t, size_t begin, size_t end, const Tensor& x);
// -w t as a matrix of the shape of dy.
Result<Tensor> minus_targets(TraceBuilder& s, const TrainStepOptions& options, const StepTensors& t,
                             const Tensor& dy);
// How rows of the numbers `from` become rows of the numbers `to`: row by row where there are
// equally many, else sample by sample.
struct RowPair {
  int64_t from = 0, to = 0;
};
Result<RowPair> rows_between(const Shape& from, const Shape& to, int64_t batch, bool by_sample);
// Uniform with variance 1 / rows.
Result<Tensor> random_matrix(const Shape& shape, uint64_t seed, uint64_t stream,
                             std::vector<Buffer>& memory);
// Options of a rule, out of range.
Status check_rule(const RuleSpec& rule);
// Status: a signal can take the place of the gradient of h, the output at a cut.
Status check_whole(const Trace& trace, const SignalCut& cut, const Tensor& h, Rule rule);
// Streams of random numbers of rules: not those of layers and of rounding.
constexpr uint64_t kSignalStream = uint64_t{1} << 51;

}  // namespace loom::core
