// A window of ticks, unrolled into one trace: the basis of back-propagation through ticks.
// ops/gradients/gradient.hpp gives the gradient of any value in the window with respect to any
// other. Let g_t[k] = dL/dS_t[k] be the direct gradient of losses, and J_j(t) the Jacobian of f_j
// at U_t[j]. Then:
//   G_t[k] = g_t[k] + sum over slots j that read k of J_j(t+1)^T G_{t+1}[j];
//   dL/dW_k = sum over t of the gradient of f_k at U_t[k] by W_k, with G_t[k];
//   dL/dX_t = sum over slots that read the port.
// J of an identity slot is 1. A slot that holds has the value of the previous tick: both are the
// same tensor of the trace, so gradients pass unchanged.
//
// Values at the start of the window are inputs: earlier values are constants (truncation).
#pragma once

#include "grid/traced.hpp"
#include "mesh/record.hpp"
#include "mesh/topology.hpp"
#include "ops/families/fwd.hpp"

namespace loom::core {

// The values of slots and carried states between two windows.
struct MeshMemory {
  std::vector<Tensor> slots, states;
  Buffer memory;
  static Result<MeshMemory> create(const MeshTopology& topology, const Network& network,
                                   const Ops& ops);
  // The same as tensors of `trace`, to plan the memory of a window.
  static MeshMemory planned(const MeshTopology& topology, const Network& network, Trace& trace);
  Status clear(const Ops& ops) const;

 private:
  static std::vector<Shape> shapes(const MeshTopology& topology, const Network& network);
};

struct UnrollOptions {
  int64_t ticks = 1;
  bool training = true;
  uint64_t seed = 0;
};

struct Unrolled {
  std::vector<Tensor> x;  // per port: [ticks, port]; to be filled
  // [ticks, slots], to be filled: 1 if a slot fires, 0 if it holds because nothing has reached it.
  // An empty tensor means that every slot that ever fires does so in each tick.
  Tensor gates;
  std::vector<std::vector<Tensor>> slots;  // [0 .. ticks][slot]; index 0 is the start of the window
  std::vector<std::vector<Tensor>> states;  // [0 .. ticks][state], if states are carried
  std::vector<int64_t> starts;              // of every tick: its first command
  Tensor step;
  CellExtras extras;             // of all ticks; a slot that holds keeps nothing
  std::vector<RopeTable> ropes;  // must outlive the program of the trace
};

// begin: copied first, so it may change after the window. Errors: parameters that are not loaded;
// ticks below 1.
Result<Unrolled> unroll(const MeshTopology& topology, const Network& network,
                        const MeshMemory& begin, Trace& trace, const UnrollOptions& options);

// The rows of Unrolled::gates for a window with all ports set, in which the `held` slots have a
// value at the start. Updates held to the state `stride` ticks later.
void fill_gates(const MeshTopology& topology, std::vector<bool>& held, int64_t ticks,
                int64_t stride, float* gates);

}  // namespace loom::core
