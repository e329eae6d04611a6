// The state of a Mesh. mesh_plan.cpp records, mesh.cpp ticks, mesh_stream.cpp runs streams. Private
// to the room.
#pragma once

#include <optional>

#include "mesh/mesh.hpp"
#include "mesh/record.hpp"
#include "ops/recording/program.hpp"

namespace loom::core {

struct Mesh::Impl {
  const Network* network = nullptr;
  const Ops* ops = nullptr;
  ThreadPool* pool = nullptr;
  MeshRunOptions run;
  MeshTopology topology;
  std::vector<bool> carrying;
  std::vector<RopeTable> ropes;

  Buffer memory;  // of all following tensors
  std::vector<Tensor> ports, states;
  std::vector<Tensor> sides[2];  // per slot
  Tensor zeros;                  // as large as the largest input of a cell
  Attached attached;

  // A recording of one tick, which writes sides[i]. Commands of slot k begin at starts[k].
  struct Tick {
    std::optional<Program> program;
    Tensor step, activity;  // [1], [slots]
    std::vector<int64_t> starts;
  };
  Tick single[2];
  // A recording of `block` ticks; the first writes sides[1].
  struct Block {
    std::optional<Program> program;
    std::vector<Tensor> x;      // per port: [block, port]
    Tensor y, steps, activity;  // [block, output], [block], [block, slots]
  } block;
  int64_t block_ticks = 0;

  // On a device: inputs and outputs of `ticks` ticks of a stream, so that inputs are uploaded in
  // one piece and results are downloaded in one.
  struct Tape {
    int64_t ticks = 0;
    Buffer memory;
    Tensor steps, x;     // [ticks], [ticks, port 0]; one piece of memory
    Tensor y, activity;  // [ticks, output], [ticks, slots]; another
    Attached attached;
  } tape;

  int64_t ticks = 0, stale = 0;
  std::vector<bool> port_set, held;
  std::vector<int64_t> first_tick;  // per slot: the tick of its first firing; 0 means none
  // On a device: ports whose value is not uploaded yet, and ports for which the block has other
  // values.
  std::vector<bool> port_changed, block_changed;

  // The tensors of one recorded tick.
  struct Places {
    std::vector<Tensor> ports;
    const std::vector<Tensor>* read = nullptr;
    const std::vector<Tensor>* write = nullptr;
    Tensor step, activity;
  };
  bool runs(size_t slot) const { return topology.slots()[slot].fill >= 0; }
  const Shape& result() const {
    return topology.slots()[static_cast<size_t>(topology.output())].out;
  }
  int64_t slots() const { return static_cast<int64_t>(topology.slots().size()); }

  // mesh_plan.cpp
  Status make_memory();
  Tensor input_tensor(const MeshInput& input, const Places& p, const Shape& shape) const;
  Status record_slot(Trace& trace, const Places& p, size_t k) const;
  Status record_activity(Trace& trace, const Places& p, size_t k) const;
  Status record_tick(Trace& trace, const Places& p, std::vector<size_t>& begins) const;
  Status make_single(int side);
  Status make_block();
  Status make_tape();

  // mesh.cpp
  bool steady() const;
  bool block_fits(int64_t left) const {
    return block.program && ticks % 2 == 0 && left >= block_ticks && steady();
  }
  Status send_ports();
  Status tick_once();
  Status run_parts(Tick& t, const std::vector<bool>& fires);
  void fired(const std::vector<bool>& fires);
  Status fill_block(const Tensor& x);
  Status run_block(const Tensor& x);
  void passed(int64_t count);

  // mesh_stream.cpp
  Status stream_here(const Tensor& x, int64_t count, const Tensor& y, const Tensor& activity);
  Status stream_there(const Tensor& x, int64_t count, const Tensor& y, const Tensor& activity);
  Status send_tape(const Tensor& x, int64_t count);
  Status tick_of_tape(int64_t row);
  Status block_of_tape(int64_t row);
  void mark_empty(const Tensor& activity, int64_t first, int64_t count) const;
};

// Calls MeshRunOptions::gather for the life of this object.
class Gathering {
 public:
  explicit Gathering(const std::function<void(bool)>& gather) : gather_(gather) {
    if (gather_) gather_(true);
  }
  Gathering(const Gathering&) = delete;
  Gathering& operator=(const Gathering&) = delete;
  ~Gathering() {
    if (gather_) gather_(false);
  }

 private:
  const std::function<void(bool)>& gather_;
};

// Copies the values of a contiguous tensor to another of equal count.
void mesh_copy(const Tensor& from, const Tensor& to);

}  // namespace loom::core
