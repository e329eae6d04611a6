// Learning rules through the ticks of a step mesh. There a cell is a slot that fires once a tick on
// what was committed the tick before: S_t[k] = f_k(S_{t-1}[source of k]). Every firing of a slot
// with parameters gets a signal s_t[k] in the place of dL/dS_t[k]; gradients are exact inside of
// that one firing and cross neither slots nor ticks, but with the rule chain. dL/dW_k is their sum
// over the ticks of a window. Let e_t = dL/dS_t[m] of the trained slot m. Let a(t, k) be the tick
// in which m outputs the sample that slot k sees in tick t. It is t + fill of m - fill of k
// ("wave"), or t itself ("steady": exact only at a fixed point):
//   dfa           s_t[k] = e_a(t,k) B_k
//   drtp          s_t[k] = -w t_a(t,k) B_k
//   diff_project  s_t[m] = beta e_t; s_t[k] = the mean over the slots j that read k of s_{t+1}[j]
//                 through j: where j is one Dense with weight W [O, I] sqrt(O) (s W)_i / sum over o
//                 of |W_oi|, else as a gradient with slopes 1 scaled to the root mean square of s
//   chain         s_t[k] = dL/dS_t[k]: back-propagation through ticks, for budgets and gates
// Firings whose signal would come from after the window learn nothing in it. Budgets
// (learn/rules/budgets.hpp) are of all ticks of a window together. Private to learn and mesh.
#pragma once

#include <string>
#include <vector>

#include "learn/rules/signals.hpp"
#include "ops/gradients/gradient.hpp"

namespace loom::core {

struct TickSlot {
  std::string name;  // "cell (0, 0, 1, 0)"
  size_t cell = 0;   // into Network::cells(); of an identity that of what it delays
  bool identity = false;
  Shape out;                 // of a tick
  std::vector<int> params;   // of its cell, children included
  int dense = -1;            // the weight, where its cell is one Dense
  int64_t fill = -1;         // first tick in which it fires; -1 means never
  std::vector<int> readers;  // slots that read it a tick later
  bool learns() const { return !params.empty() && fill >= 0; }
};

struct TickPass {
  std::vector<TickSlot> slots;
  int output = 0;
  bool steady = false;
  // [0 .. ticks][slot]: what was committed, of the recording in hand.
  std::vector<std::vector<Tensor>> values;
  int64_t ticks() const { return static_cast<int64_t>(values.size()) - 1; }
};

// Errors: invalid_argument for rules that have no form through ticks, and slots that they have no
// signal for.
Result<SignalPlan> make_tick_plan(const Network& network, const TrainStepOptions& options,
                                  std::vector<Buffer>& memory);
// As record_signals(). dy: e of all ticks, one after the other.
Status record_tick_signals(Trace& trace, const Network& network, const TrainStepOptions& options,
                           StepTensors& t, const Tensor& dy, Differentiator& d);

}  // namespace loom::core
