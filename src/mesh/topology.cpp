#include "mesh/topology.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "layers/core/graph.hpp"

namespace loom::core {
namespace {

constexpr int64_t kMaxDelay = 1 << 16;

Shape with_batch(const Shape& sample, int64_t batch) {
  return sample.after(batch);
}

}  // namespace

std::string MeshSlot::str() const {
  return delay ? cat("the delayed cell ", at.str()) : cat("cell ", at.str());
}

Status MeshTopology::add_ports(const Network& network) {
  const auto add = [&](const MeshPort& p, int64_t ids) {
    ports_.push_back(p);
    ids_below_.push_back(ids);
  };
  add({"input", network.input()}, 0);
  for (const InputSpec& spec : network.extra_inputs()) {
    if (port(spec.name) >= 0) {
      return invalid(cat("a further input of the network is called '", printable(spec.name),
                         "', as the first port of a mesh; give it another name"));
    }
    add({spec.name, spec.batch(network.input()[0])}, spec.ids);
  }
  for (const MeshPort& p : options_.ports) {
    if (p.name.empty() || port(p.name) >= 0) {
      return invalid(cat("the port '", printable(p.name),
                         "' needs a name of its own ('input' and further inputs are ports)"));
    }
    if (p.shape.rank() < 1 || p.shape.rank() >= Shape::kMaxRank || p.shape.count() < 1) {
      return invalid(
          cat("the port '", p.name, "' needs the shape of one sample; got ", p.shape.str()));
    }
    add({p.name, with_batch(p.shape, network.input()[0])}, 0);
  }
  return {};
}

Status MeshTopology::add_cells(const Network& network, const GridSpec& grid) {
  int next = 0;
  for (int64_t i = 0; i < grid.size(); ++i) {
    const Cell* cell = grid.cell(i);
    if (cell == nullptr) continue;
    MeshSlot& slot = slots_.emplace_back();
    slot.at = grid.coord(i);
    own_port_.push_back(-1);
    if (cell->layer.disabled) continue;
    const auto n = static_cast<size_t>(next);
    if (n >= network.cells().size() || !(network.cells()[n].at == slot.at)) {
      return invalid(
          cat("the network has no cell ", slot.at.str(), "; it was made of another grid"));
    }
    slot.cell = next++;
    slot.two = wants_skip(cell->layer);
    slot.out = network.cells()[n].out;
    const int input = network.cells()[n].node.input;
    if (input < 0) continue;
    own_port_.back() = input + 1;
    if (!takes_ids(input + 1)) continue;
    return unsupported(cat("cell ", slot.at.str(), " holds the ids of the input '",
                           printable(network.extra_inputs()[static_cast<size_t>(input)].name),
                           "', which cells of a mesh cannot; put the Input into the Graph that "
                           "reads it"));
  }
  return {};
}

Result<int> MeshTopology::find(const Coord& at) const {
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!slots_[i].delay && slots_[i].at == at) return static_cast<int>(i);
  }
  return make_error(Code::not_found, cat("the mesh has no cell ", at.str()));
}

int MeshTopology::port(const std::string& name) const {
  for (size_t i = 0; i < ports_.size(); ++i) {
    if (ports_[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

int MeshTopology::output() const {
  for (size_t i = slots_.size(); i-- > 0;) {
    if (!slots_[i].delay) return static_cast<int>(i);
  }
  return -1;
}

Result<MeshTopology::LinkSource> MeshTopology::linked(const MeshLink& link,
                                                      const LinkSource& before) const {
  if (link.delay < 1 || link.delay > kMaxDelay) {
    return invalid(cat("the link to cell ", link.to.str(), " has a delay of ", link.delay,
                       " ticks; give 1 to ", kMaxDelay));
  }
  LinkSource link_source{before.from, link.delay};
  if (link.from == MeshLink::From::none) link_source.from = {};
  if (link.from == MeshLink::From::cell) {
    const Result<int> found = find(link.cell);
    if (!found.ok()) {
      return invalid(cat("cell ", link.to.str(), " is linked to ", link.cell.str(),
                         ", where the mesh has no cell"));
    }
    link_source.from = {MeshInput::Kind::slot, *found};
  }
  if (link.from == MeshLink::From::port) {
    const int found = port(link.port);
    if (found < 0) {
      return invalid(cat("cell ", link.to.str(), " reads the port '", link.port,
                         "', which the mesh does not have"));
    }
    link_source.from = {MeshInput::Kind::port, found};
  }
  return link_source;
}

// Applies the grid's links, then the changes of the options.
Status MeshTopology::resolve(const GridSpec& grid) {
  const size_t cells = slots_.size();
  first_.resize(cells);
  second_.resize(cells);
  second_given_.resize(cells);
  for (size_t k = 0; k < cells; ++k) {
    first_[k].from = {k == 0 ? MeshInput::Kind::port : MeshInput::Kind::slot,
                      k == 0 ? 0 : static_cast<int>(k) - 1};
    if (own_port_[k] >= 0) first_[k].from = {MeshInput::Kind::port, own_port_[k]};
    const Cell* cell = grid.find(slots_[k].at);
    if (!cell->link.has_value()) continue;
    MeshLink link{slots_[k].at, MeshLink::From::cell, cell->link->from, {}, 1, slots_[k].two};
    LOOM_ASSIGN((slots_[k].two ? second_ : first_)[k], linked(link, {}));
    second_given_[k] = slots_[k].two;
  }
  for (const MeshLink& link : options_.links) {
    const Result<int> found = find(link.to);
    if (!found.ok()) {
      return invalid(cat("a link goes to ", link.to.str(), ", where the mesh has no cell"));
    }
    const auto k = static_cast<size_t>(*found);
    if (!link.second) {
      LOOM_ASSIGN(first_[k], linked(link, first_[k]));
      continue;
    }
    if (!slots_[k].two) {
      return invalid(cat("cell ", link.to.str(),
                         " takes no second input; only a Residual without "
                         "children does"));
    }
    if (link.from == MeshLink::From::as_is && !second_given_[k]) {
      return invalid(cat("the second input of cell ", link.to.str(),
                         " comes from no link whose "
                         "delay could change; say where it comes from"));
    }
    LOOM_ASSIGN(second_[k], linked(link, second_[k]));
    second_given_[k] = true;
  }
  return {};
}

// Without a link, a second input is the input of the preceding layer, as in a pass. It must be of
// the same sample, so it is delayed by as many ticks as that layer's own result.
void MeshTopology::align_second_inputs() {
  for (size_t k = 0; k < first_.size(); ++k) {
    if (!slots_[k].two || second_given_[k]) continue;
    LinkSource at = first_[k];
    size_t steps = 0;
    bool enabled = false;
    while (at.from.kind == MeshInput::Kind::slot && !enabled && steps++ < first_.size()) {
      const auto j = static_cast<size_t>(at.from.index);
      enabled = slots_[j].cell >= 0;
      at = {first_[j].from, at.delay + first_[j].delay};
    }
    second_[k] = at;
  }
}

// The identity slot after `wanted.delay` - 1 others, created if it does not exist.
Result<MeshInput> MeshTopology::delayed(const LinkSource& link_source) {
  MeshInput from = link_source.from;
  if (from.kind == MeshInput::Kind::none) return from;
  for (int64_t d = 1; d < link_source.delay; ++d) {
    size_t i = 0;
    while (i < slots_.size() && !(slots_[i].delay && slots_[i].first == from)) ++i;
    if (i == slots_.size()) {
      MeshSlot slot;
      if (from.kind == MeshInput::Kind::slot) slot.at = slots_[static_cast<size_t>(from.index)].at;
      slot.delay = true;
      slot.first = from;
      slots_.push_back(slot);
    }
    from = {MeshInput::Kind::slot, static_cast<int>(i)};
  }
  return from;
}

Status MeshTopology::add_delays() {
  for (size_t k = 0; k < first_.size(); ++k) {
    LOOM_ASSIGN(slots_[k].first, delayed(first_[k]));
    if (!slots_[k].two) continue;
    LOOM_ASSIGN(slots_[k].second, delayed(second_[k]));
  }
  return {};
}

const Shape* MeshTopology::shape_of(const MeshInput& input) const {
  const auto i = static_cast<size_t>(input.index);
  if (input.kind == MeshInput::Kind::none) return nullptr;
  const Shape& shape = input.kind == MeshInput::Kind::port ? ports_[i].shape : slots_[i].out;
  return shape.rank() > 0 ? &shape : nullptr;
}

std::string MeshTopology::name_of(const MeshInput& input) const {
  const auto i = static_cast<size_t>(input.index);
  if (input.kind == MeshInput::Kind::none) return "nothing";
  return input.kind == MeshInput::Kind::port ? cat("the port '", ports_[i].name, "'")
                                             : slots_[i].str();
}

// Infers the output of slot k from the current outputs of its sources.
Status MeshTopology::check_cell(const Network& network, size_t k, bool& changed) {
  MeshSlot& slot = slots_[k];
  const Shape* in = shape_of(slot.first);
  const Shape before = slot.out;
  if (slot.cell < 0) {
    if (in != nullptr) slot.in = slot.out = *in;
  } else {
    const GridNode& node = network.cells()[static_cast<size_t>(slot.cell)];
    slot.in = in != nullptr ? *in : node.in;
    const Shape* second = slot.two ? shape_of(slot.second) : nullptr;
    const Shape skip = second != nullptr ? *second : slot.in;
    if (slot.two && !(skip == slot.in)) {
      return invalid(cat(slot.str(), " takes ", slot.in.str(), ", but its second input, ",
                         name_of(slot.second), ", brings ", skip.str()));
    }
    Result<Shape> out = infer_after(node.node.config, slot.in, skip);
    if (!out.ok()) {
      Error error = out.error();
      error.message = cat(slot.str(), " does not fit ", name_of(slot.first), ": ", error.message);
      return error;
    }
    slot.out = *out;
  }
  changed = changed || !(slot.out == before);
  return {};
}

// Cells begin with the shapes of a pass. Sources may be anywhere, so shapes are propagated until
// none changes.
Status MeshTopology::infer(const Network& network) {
  bool changed = true;
  for (size_t round = 0; changed; ++round) {
    changed = false;
    if (round > slots_.size() + 2) {
      return invalid("the shapes of the mesh do not settle: a loop of links makes them grow");
    }
    // Identities first: a cell is only checked with known shapes.
    for (const bool cells : {false, true}) {
      for (size_t k = 0; k < slots_.size(); ++k) {
        if ((slots_[k].cell >= 0) == cells) LOOM_TRY(check_cell(network, k, changed));
      }
    }
  }
  for (const MeshSlot& slot : slots_) {
    if (slot.out.rank() > 0) continue;
    return invalid(cat(slot.str(), " passes on what no cell and no port gives; link it to one"));
  }
  return {};
}

Status MeshTopology::check_ids(const Network& network) {
  for (const MeshSlot& slot : slots_) {
    if (slot.cell < 0) continue;
    if (!loom::core::takes_ids(network.cells()[static_cast<size_t>(slot.cell)].node.config))
      continue;
    if (slot.first.kind != MeshInput::Kind::port) {
      return invalid(cat(slot.str(), " takes integers (ids), which only a port holds; ",
                         name_of(slot.first), " gives others"));
    }
    int64_t& below = ids_below_[static_cast<size_t>(slot.first.index)];
    const int64_t mine = id_rows(network.cells()[static_cast<size_t>(slot.cell)].node.config);
    below = below > 0 ? std::min(below, mine) : mine;
  }
  for (const MeshSlot& slot : slots_) {
    for (const MeshInput& in : {slot.first, slot.second}) {
      if (in.kind != MeshInput::Kind::port || !takes_ids(in.index)) continue;
      const bool reads =
          slot.cell >= 0 && in == slot.first &&
          loom::core::takes_ids(network.cells()[static_cast<size_t>(slot.cell)].node.config);
      if (reads) continue;
      return invalid(cat(name_of(in), " holds ids, which ", slot.str(),
                         " cannot take; give it a port of its own"));
    }
  }
  return {};
}

std::vector<bool> MeshTopology::firing(const std::vector<bool>& ports,
                                       const std::vector<bool>& slots) const {
  std::vector<bool> fires(slots_.size());
  for (size_t k = 0; k < slots_.size(); ++k) {
    const MeshInput& in = slots_[k].first;
    const auto i = static_cast<size_t>(in.index);
    fires[k] = options_.zero_fill || (in.kind == MeshInput::Kind::port && ports[i]) ||
               (in.kind == MeshInput::Kind::slot && slots[i]);
  }
  return fires;
}

void MeshTopology::work_out_fill() {
  const std::vector<bool> ports(ports_.size(), true);
  std::vector<bool> held(slots_.size());
  for (int64_t tick = 1;; ++tick) {
    const std::vector<bool> fires = firing(ports, held);
    bool more = false;
    for (size_t k = 0; k < fires.size(); ++k) {
      if (!fires[k] || slots_[k].fill >= 0) continue;
      slots_[k].fill = tick;
      more = true;
    }
    if (!more) return;
    held = fires;
  }
}

int64_t MeshTopology::fill() const {
  int64_t most = 1;
  for (const MeshSlot& slot : slots_) most = std::max(most, slot.fill);
  return most;
}

Result<MeshTopology> MeshTopology::create(const Network& network, const GridSpec& grid,
                                          const MeshOptions& options) {
  if (!network.more_outputs().empty()) {
    return unsupported(cat("the network gives ", network.more_outputs().size() + 1,
                           " outputs, and a cell of a mesh commits one; put each output into a "
                           "cell of its own"));
  }
  MeshTopology t;
  t.options_ = options;
  LOOM_TRY(t.add_ports(network));
  LOOM_TRY(t.add_cells(network, grid));
  LOOM_TRY(t.resolve(grid));
  t.align_second_inputs();
  LOOM_TRY(t.add_delays());
  LOOM_TRY(t.infer(network));
  LOOM_TRY(t.check_ids(network));
  t.work_out_fill();
  return t;
}

}  // namespace loom::core
