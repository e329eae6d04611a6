// A window of ticks, unrolled into one trace: what back-propagation through ticks starts from. The
// gradient of anything in the window by anything in it follows from ops/gradient.hpp; with
//   g_t[k] = dL/dS_t[k] as losses give it directly, and J_j(t) the Jacobian of f_j at U_t[j],
//   G_t[k] = g_t[k] + sum over slots j that read k of J_j(t+1)^T G_{t+1}[j];
//   dL/dW_k = sum over t of the gradient of f_k at U_t[k] by W_k, with G_t[k];
//   dL/dX_t = sum over slots that read the port.
// J of an identity slot is 1, and the value of a slot that holds is that of the tick before: both
// are the same tensor of the trace, so that gradients pass straight through.
//
// Values at the window's begin are inputs: what lies before it is a constant (truncation).
#pragma once

#include "grid/traced.hpp"
#include "mesh/record.hpp"
#include "mesh/topology.hpp"
#include "ops/fwd.hpp"

namespace loom::core {

// What slots and carried states hold between two windows.
struct MeshMemory {
  std::vector<Tensor> slots, states;
  Buffer memory;
  static Result<MeshMemory> create(const MeshTopology& topology, const Network& network,
                                   const Ops& ops);
  // The same as tensors of `trace`, for a plan of what a window takes.
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
  // [ticks, slots], to be filled: 1 where a slot fires, 0 where it holds since nothing reached it.
  // Empty: every slot that ever fires does so in each tick.
  Tensor gates;
  std::vector<std::vector<Tensor>> slots;   // [0 .. ticks][slot]; 0: what the window begins with
  std::vector<std::vector<Tensor>> states;  // [0 .. ticks][state], where states are carried
  std::vector<int64_t> starts;              // of every tick: its first command
  Tensor step;
  CellExtras extras;             // of all ticks; where a slot holds its value, it keeps nothing
  std::vector<RopeTable> ropes;  // must outlive the program made of the trace
};

// begin: copied first, so that it may change behind the window. Errors: parameters that are not
// loaded; ticks below 1.
Result<Unrolled> unroll(const MeshTopology& topology, const Network& network,
                        const MeshMemory& begin, Trace& trace, const UnrollOptions& options);

// The rows of Unrolled::gates, for a window that begins when `held` slots hold a value and in which
// every port is set; held becomes what it is `stride` ticks later.
void fill_gates(const MeshTopology& topology, std::vector<bool>& held, int64_t ticks,
                int64_t stride, float* gates);

}  // namespace loom::core
