// MeshTopology: the readers and shapes of a step mesh. A mesh is a grid whose cells all fire once a
// tick, on values committed at the end of the previous tick. Nothing runs here. Sources are
// resolved, delays become slots, and shapes are checked. The first tick in which a slot can hold a
// value is computed.
//
// A slot is one output that is committed per tick. Every cell of the grid has one. A disabled
// cell's slot is the identity of its source, one tick later. A link with a delay of d ticks goes
// through d - 1 identity slots, which links from the same source share. So ticks, holding and
// gradients treat delays only as slots (docs/decisions/0025-mesh.md).
//
// U_t[k] is what slot k reads in tick t, S_t[k] what it commits, X_t[p] what port p holds:
//   S_t[k] = f_k(U_t[k]);  U_t[k] = S_{t-1}[source(k)], or X_t[p] if k reads a port.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "grid/network.hpp"

namespace loom::core {

// The source of a slot. `index` counts ports or slots.
struct MeshInput {
  enum class Kind : uint8_t { none, port, slot };
  Kind kind = Kind::none;
  int index = -1;
  bool operator==(const MeshInput&) const = default;
};

// A change of a cell's source: of its first input, or of the second input of a bare Residual.
struct MeshLink {
  enum class From : uint8_t { as_is, cell, port, none };
  Coord to;
  From from = From::as_is;  // as_is: the grid's source; only the delay changes
  Coord cell = {};          // From::cell; any cell of the grid, the reading one as well
  std::string port;         // From::port: the name of one of MeshOptions::ports
  // Ticks, at least 1: the value of the previous tick. For a port, 1 is the current value.
  int64_t delay = 1;
  bool second = false;
};

// An input of the mesh. The first is called "input" and has the shape of the network's input. Then
// come further inputs of the network, by name, and then the ports of MeshOptions.
struct MeshPort {
  std::string name;
  Shape shape;  // of one sample
};

struct MeshOptions {
  std::vector<MeshPort> ports;
  std::vector<MeshLink> links;
  // A cell whose source has no value yet: false means that it holds, so it does not fire; true
  // means that it fires on zeros.
  bool zero_fill = false;
  // Recurrent layers continue from the state of the previous tick. false: each tick is a whole
  // sequence. Attention covers the steps of its own input in both cases.
  bool carry = false;
};

struct MeshSlot {
  Coord at;            // for a delay slot: the cell that it delays
  int cell = -1;       // index into Network::cells(); -1 means the identity
  bool delay = false;  // it exists for a delay and is not a cell of the grid
  MeshInput first, second;
  bool two = false;  // the layer takes a second input
  Shape in, out;     // with the batch axis
  // The first tick in which it fires if every port is set from tick 1 on; -1 means never.
  int64_t fill = -1;
  std::string str() const;  // "cell (0, 0, 1, 0)"
};

class MeshTopology {
 public:
  // Errors: invalid, naming the link, or the two cells that do not match.
  static Result<MeshTopology> create(const Network& network, const GridSpec& grid,
                                     const MeshOptions& options);

  const std::vector<MeshSlot>& slots() const { return slots_; }
  const std::vector<MeshPort>& ports() const { return ports_; }  // first "input"; with the batch
  const MeshOptions& options() const { return options_; }
  // The slot of the cell at `at`. Errors: not_found.
  Result<int> find(const Coord& at) const;
  int port(const std::string& name) const;  // -1 if there is none
  int output() const;                       // the slot of the last cell
  bool takes_ids(int port) const { return ids_below(port) > 0; }
  // The limit of the port's ids; 0 means that the port takes numbers.
  int64_t ids_below(int port) const { return ids_below_[static_cast<size_t>(port)]; }
  // A bool per slot: whether it fires in a tick when these ports and slots hold a value.
  std::vector<bool> firing(const std::vector<bool>& ports, const std::vector<bool>& slots) const;
  // The largest fill of all slots that fire at all.
  int64_t fill() const;

 private:
  // A source before its delay has become slots.
  struct LinkSource {
    MeshInput from;
    int64_t delay = 1;
  };
  Status add_ports(const Network& network);
  Status add_cells(const Network& network, const GridSpec& grid);
  Status resolve(const GridSpec& grid);
  Result<LinkSource> linked(const MeshLink& link, const LinkSource& before) const;
  void align_second_inputs();
  Status add_delays();
  Result<MeshInput> delayed(const LinkSource& link_source);
  Status infer(const Network& network);
  Status check_cell(const Network& network, size_t slot, bool& changed);
  Status check_ids(const Network& network);
  const Shape* shape_of(const MeshInput& input) const;
  std::string name_of(const MeshInput& input) const;
  void work_out_fill();

  std::vector<MeshSlot> slots_;
  std::vector<MeshPort> ports_;
  std::vector<int64_t> ids_below_;
  MeshOptions options_;
  // Per cell of the grid, during construction. own_port_: the port of an Input layer, else -1.
  std::vector<int> own_port_;
  std::vector<LinkSource> first_, second_;
  std::vector<bool> second_given_;
};

}  // namespace loom::core
