// Learning rules beside back-propagation. A network whose cells follow each other is cut in front
// of every cell with parameters but the first. What stands between two cuts, a block, learns from a
// signal at its end, which takes the place of dL/d(output): inside the block gradients are exact,
// the slope of its own activations among them, and no gradient crosses a cut. So a rule is where
// signals come from. Private to the room.
//
// With h_k the output of block k of m, f_k the numbers of it per row, y = h_m the prediction, e =
// dL/dy with the weights w of rows (1 / rows for a mean), n the rows of y, t the target (one-hot
// for classes), and B_k fixed random matrices with variance 1 / (rows of B_k):
//   dfa           s_k = e B_k                      direct feedback alignment (Nokland, 2016)
//   drtp          s_k = -w t B_k                   direct random target projection (Frenkel,
//                                                  Lefebvre and Bol, 2021)
//   diff_project  s_m = beta e; s_k-1,i = sqrt(O) sum_o s_k,o W_oi / sum_o |W_oi| where block k is
//                 one Dense with weight W [O, I]; 0 where that sum of |W_oi| is 0.01 or less
//                 (difference targets t = h - s through normalized weights). Other blocks: s_k
//                 through the block as a gradient, with slopes of activations 1, then scaled to
//                 the root mean square that s_k has
//   fixed_dtp     s_m = beta e; s_k-1 = (g(h_k) - g(h_k - n s_k)) / n, g(v) = tanh(v B_k):
//                 difference target propagation with random inverses (Lee and others, 2015;
//                 Shibuya and others, 2023)
//   dtp           s_m = e; s_m-1 = beta dL/dh_m-1, through the last block alone; below as
//                 fixed_dtp with g(v) = tanh(v V_k + c_k), V and c trained to give h + u back from
//                 what block k makes of h + u, u normal noise (Lee and others, 2015)
//   chain         s_k = dL/dh_k: back-propagation, block by block, for budgets and gates
//   hebb          t_m = t, t_k-1,i = sum_o t_k,o W_oi / sum_o |W_oi|, s_k = w (h_k - t_k), slopes
//                 of activations 1: the rule of the original project with its index put right. It
//                 hardly learns, and is there to be measured against
// Where the prediction equals the target every signal but those of drtp and hebb is 0.
// forward_forward has no signals of this kind: learn/rules/forward_forward.hpp.
#pragma once

#include "learn/scribe.hpp"
#include "learn/step/step_builder.hpp"

namespace loom::core {

// A cut of a network.
struct SignalCut {
  size_t below = 0;  // cell whose output gets a signal
  size_t above = 0;  // cell with parameters behind it
  std::string name;  // of the cell below, for messages
  Tensor random;     // B_k, of rules that have one; V_k of dtp
  int weight = -1;   // parameter W of the Dense that is the block above, for diff_project and hebb
  Tensor bias;       // c_k of dtp
  int slot = -1;     // of a mesh: learn/rules/tick_signals.hpp
  Tensor random_v, bias_v;  // means of squares of the gradients of V and c
};

// What a rule keeps beside the network.
struct SignalPlan {
  std::vector<SignalCut> cuts;  // first to last
  std::vector<size_t> blocks;   // of every parameter: how many cuts stand before its cell
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
// share / the sum of the magnitudes of every column of a weight, 0 where that is 0.01 or less.
Result<Tensor> column_factors(TraceBuilder& s, const Tensor& plain, float share);
// How rows of the numbers `from` become rows of the numbers `to`: row by row where there are
// equally many, else sample by sample.
struct RowPair {
  int64_t from = 0, to = 0;
};
Result<RowPair> rows_between(const Shape& from, const Shape& to, int64_t batch, bool by_sample);
// Uniform with variance 1 / rows.
Result<Tensor> random_matrix(const Shape& shape, uint64_t seed, uint64_t stream,
                             std::vector<Buffer>& memory);
// Status: a signal can take the place of the gradient of h, the output at a cut.
Status check_whole(const Trace& trace, const SignalCut& cut, const Tensor& h, Rule rule);
// Streams of random numbers of rules: not those of layers and of rounding.
constexpr uint64_t kSignalStream = uint64_t{1} << 51;

}  // namespace loom::core
