// The TANHI protocol: a datagram with one JSON object and a line end for each layer that a run
// executes. Viewers use it to animate the grid. `seq` counts reported records, so a gap shows
// records that a full queue dropped.
#include <algorithm>
#include <map>
#include <utility>

#include "base/text.hpp"
#include "io/json/json.hpp"
#include "telemetry/datagram_sender.hpp"
#include "telemetry/sink.hpp"

namespace loom::core {
namespace {

constexpr size_t kMaxLinks = 48, kMaxBranches = 32;

JsonValue json_integer(int64_t value) {
  return JsonValue::integer(value);
}

void add_position(JsonValue& object, const Place& at, std::string_view before = "") {
  constexpr std::array<std::string_view, 4> kNames = {"z", "y", "x", "l"};
  for (size_t i = 0; i < kNames.size(); ++i)
    object.add(cat(before, kNames[i]), json_integer(at[i]));
}

// One executed layer, with at most the given numbers of links and branches.
std::string pass_line(const Record& record, const PictureCell* cell, size_t index, size_t links,
                      size_t branches) {
  const LayerPassed& pass = record.pass;
  JsonValue line = JsonValue::object(), shape = JsonValue::array();
  line.add("v", JsonValue::string("tanhi1"));
  line.add("seq", json_integer(record.step));
  line.add("phase", JsonValue::string(pass.backward ? "bwd" : "fwd"));
  line.add("idx", json_integer(static_cast<int64_t>(index)));
  add_position(line, pass.at);
  line.add("layer", JsonValue::string(pass.type));
  line.add("dtype", json_integer(cell != nullptr ? cell->dtype : 0));
  line.add("connections", json_integer(cell != nullptr ? cell->parameters : 0));
  line.add("t0_ns", json_integer(pass.begin_ns));
  line.add("t1_ns", json_integer(pass.end_ns));
  for (const int64_t extent : pass.shape) shape.push(json_integer(extent));
  line.add("shape", std::move(shape));
  JsonValue all_links = JsonValue::array();
  for (size_t i = 0; cell != nullptr && i < std::min(links, cell->links.size()); ++i) {
    JsonValue link = JsonValue::object();
    add_position(link, cell->links[i]);
    all_links.push(std::move(link));
  }
  line.add("links", std::move(all_links));
  if (cell != nullptr && !cell->branches.empty()) {
    if (!cell->combine.empty()) line.add("combine", JsonValue::string(cell->combine));
    JsonValue all = JsonValue::array();
    for (size_t i = 0; i < std::min(branches, cell->branches.size()); ++i) {
      JsonValue branch = JsonValue::object();
      branch.add("type", JsonValue::string(cell->branches[i]));
      branch.add("slot", json_integer(static_cast<int64_t>(i)));
      branch.add("remote", JsonValue::boolean(false));
      add_position(branch, pass.at, "t");
      all.push(std::move(branch));
    }
    line.add("branches", std::move(all));
  }
  return dump_json(line) + "\n";
}

class TanhiDatagrams final : public Sink {
 public:
  TanhiDatagrams(Socket socket, std::string address)
      : to_(std::move(socket), cat("tanhi://", address)) {}

  bool takes(Record::Kind kind) const override {
    return kind == Record::Kind::picture || kind == Record::Kind::pass ||
           kind == Record::Kind::sweep;
  }

  Status write(const Record& record) override {
    if (record.kind == Record::Kind::picture) {
      remember(record.nodes);
    } else {
      to_.send(record.kind == Record::Kind::pass ? pass(record) : sweep(record));
    }
    return {};
  }
  Status end() override { return to_.end(); }

 private:
  static constexpr size_t kMaxDatagram = 1400;

  void remember(const std::vector<PictureNode>& nodes) {
    cells_.clear();
    for (const PictureNode& node : nodes) {
      if (node.cell) cells_.emplace(node.cell->at, std::pair(cells_.size(), *node.cell));
    }
  }

  std::string pass(const Record& record) {
    const auto known = cells_.find(record.pass.at);
    const PictureCell* cell = known == cells_.end() ? nullptr : &known->second.second;
    const size_t index = cell == nullptr ? 0 : known->second.first;
    size_t links = kMaxLinks, branches = kMaxBranches;
    for (;;) {
      std::string line = pass_line(record, cell, index, links, branches);
      if (line.size() <= kMaxDatagram || links + branches == 0) return line;
      (branches > 0 ? branches : links) /= 2;
    }
  }

  // Makes viewers clear the state of the previous run.
  std::string sweep(const Record& record) {
    constexpr size_t kMaxLabel = 100;
    const auto now = static_cast<int64_t>(record.wall * 1e9);
    JsonValue line = JsonValue::object();
    line.add("v", JsonValue::string("tanhi1"));
    line.add("seq", json_integer(record.step));
    line.add("phase", JsonValue::string("sweep"));
    line.add("idx", json_integer(0));
    add_position(line, Place{});
    line.add("t0_ns", json_integer(now));
    line.add("t1_ns", json_integer(now));
    line.add("label", JsonValue::string(printable(record.tag.substr(0, kMaxLabel))));
    return dump_json(line) + "\n";
  }

  DatagramSender to_;
  std::map<Place, std::pair<size_t, PictureCell>> cells_;  // with their order
};

}  // namespace

Result<std::unique_ptr<Sink>> tanhi_sink(const std::string& address) {
  LOOM_ASSIGN(const HostPort to, parse_host_port(address, kTanhiPort));
  LOOM_ASSIGN(Socket socket, Socket::connect(SocketKind::datagram, to, 1.0));
  return std::unique_ptr<Sink>(std::make_unique<TanhiDatagrams>(std::move(socket), address));
}

}  // namespace loom::core
