// Learning rules beside back-propagation. A network whose cells follow each other is cut in front
// of every cell with parameters but the first. What stands between two cuts, a block, learns from a
// signal at its end, which takes the place of dL/d(output): inside the block gradients are exact,
// the slope of its own activations among them, and no gradient crosses a cut. So a rule is where
// signals come from. Private to the room.
//
// With h_k the output of block k of m, f_k the numbers of it per row, y the prediction, e = dL/dy
// with the weights of rows (1 / rows for a mean), and B_k fixed random matrices with variance 1 /
// (rows of B_k):
//   dfa           s_k = e B_k                      direct feedback alignment (Nokland, 2016)
//   drtp          s_k = -w t B_k, t the target (one-hot for classes), w the weight of the row
//                                                  direct random target projection (Frenkel,
//                                                  Lefebvre and Bol, 2021)
//   diff_project  s_m = beta e; s_k-1,i = sqrt(O) sum_o s_k,o W_oi / sum_o |W_oi|, W [O, I] the
//                 weight of the Dense that follows; 0 where that sum of |W_oi| is 0.01 or less
//                 (difference targets t = h - s through normalized weights)
//   fixed_dtp     s_m = beta e; s_k-1 = (g(h_k) - g(h_k - n s_k)) / n, g(v) = tanh(v B_k), n the
//   rows
//                 of e: difference target propagation with random inverses (Lee and others, 2015;
//                 Shibuya and others, 2023)
// Where the prediction equals the target every signal but those of drtp is 0.
#pragma once

#include "learn/scribe.hpp"
#include "learn/step_builder.hpp"

namespace loom::core {

// A cut of a network.
struct SignalCut {
  size_t below = 0;  // cell whose output gets a signal
  size_t above = 0;  // cell with parameters behind it
  std::string name;  // of the cell below, for messages
  Tensor random;     // B_k, of rules that have one
  Tensor weight;     // W of diff_project
};

// The cuts of a network, first to last, with their matrices, which `memory` owns. Empty for
// back-propagation. Errors: invalid_argument, naming the cell that the rule has no signal for.
Result<std::vector<SignalCut>> make_cuts(const Network& network, const TrainStepOptions& options,
                                         std::vector<Buffer>& memory);

// Records the signals and hands them to `d`. dy: e, a matrix; in t the pass, targets and weights.
Status record_signals(Trace& trace, const TrainStepOptions& options, const StepTensors& t,
                      const Tensor& dy, Differentiator& d);

}  // namespace loom::core
