#include "grid/pass.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "ops/recording/trace.hpp"

namespace loom::core {
namespace {

class Walker : public ForwardCall {
 public:
  Walker(Pass& pass, const Node& node, std::span<const Tensor> inputs)
      : ForwardCall(pass, node.config, inputs), pass_(pass), node_(node) {}

  Result<Tensor> tensor(const Shape& shape) override { return pass_.tensor(shape); }
  const Tensor& param(size_t i) const override {
    return pass_.network->params()[static_cast<size_t>(node_.params[i])].tensor;
  }
  Status product(size_t weight, MatmulArgs m) override {
    m.w = param(weight);
    if (std::ranges::none_of(node_.adapters, [&](auto& a) { return a.weight == weight; }))
      return ops().matmul(m);
    return adapted_product(*this, *pass_.network, node_, weight, m);
  }
  KvCache cache() override { return (*pass_.caches)[static_cast<size_t>(node_.state)]; }
  Tensor state() override { return (*pass_.states)[static_cast<size_t>(node_.state)]; }
  Result<Tensor> extra_input() const override {
    if (pass_.given != nullptr) return (*pass_.given)[static_cast<size_t>(node_.input)];
    return unsupported(
        cat("the input '",
            printable(pass_.network->extra_inputs()[static_cast<size_t>(node_.input)].name),
            "' is not given in this pass"));
  }
  const PositionTable& position_table() const override {
    return (*pass_.ropes)[static_cast<size_t>(node_.rope)].table();
  }
  Noise noise() const override { return {pass_.seed, static_cast<uint64_t>(node_.id), pass_.step}; }
  Status add_loss(const Tensor& value, float weight) override {
    pass_.losses.push_back({value, weight});
    return {};
  }
  Status update_buffer(size_t i, const Tensor& value, float rate) override {
    pass_.kept.push_back({param(i), value, rate, {}});
    return {};
  }
  Result<Tensor> sample_mask(int64_t least) override {
    pass_.least = std::max(pass_.least, least);
    if (pass_.partial && pass_.present.empty()) {
      LOOM_ASSIGN(pass_.present, tensor(Shape{pass_.sequences, 1}));
    }
    return pass_.present;
  }
  Result<LayerOutputs> child(size_t i, std::span<const Tensor> inputs) override {
    const Node& below = node_.children[i];
    if (below.disabled() && !inputs.empty()) return LayerOutputs(inputs[0]);
    Walker walk(pass_, below, inputs);
    return below.config.def->forward(walk);
  }
  bool can_read_values() const override {
    return static_cast<bool>(pass_.synchronize) && !pass_.training;
  }
  Result<bool> synchronize() override { return pass_.synchronize(); }
  // The commands go to a trace that is never run.
  Status skip_child(size_t i, const Tensor& input) override {
    Trace unread(pass_.recorder->ops().compute);
    Recorder unused(unread);
    Recorder* const recorder = std::exchange(pass_.recorder, &unused);
    const auto synchronize = std::exchange(pass_.synchronize, [] { return Result<bool>(false); });
    const Result<LayerOutputs> y = child(i, {&input, 1});
    pass_.recorder = recorder;
    pass_.synchronize = synchronize;
    return y.ok() ? Status{} : Status(y.error());
  }

 private:
  Pass& pass_;
  const Node& node_;
};

// The first layer, in tree order, that cannot run rows of several sequences.
const Node* not_ragged(const Node& node) {
  if (node.disabled()) return nullptr;
  if (!node.config.def->ragged) return &node;
  for (const Node& child : node.children) {
    if (const Node* found = not_ragged(child)) return found;
  }
  return nullptr;
}

}  // namespace

Status check_ragged(const Network& network) {
  if (network.has_links() || !network.extra_inputs().empty())
    return unsupported("a network with links or further inputs cannot run sequences together");
  for (const GridNode& cell : network.cells()) {
    const Node* bad = not_ragged(cell.node);
    if (bad == nullptr) continue;
    return unsupported(
        cat(bad->config.def->name, " at ", cell.at.str(),
            " looks at several rows of its input, so sequences cannot share a pass"));
  }
  return {};
}

Result<LayerOutputs> Pass::cell(size_t i, const Tensor& in, const Tensor& skip) {
  const Node& node = network->cells()[i].node;
  const std::array<Tensor, 2> read = {in, skip};
  Walker walk(*this, node, inputs_after(node.config, read));
  return node.config.def->forward(walk);
}

Result<Tensor> Pass::run(size_t begin, size_t end, const Tensor& x) {
  const std::vector<GridNode>& cells = network->cells();
  std::vector<Tensor> own;
  std::vector<Tensor>& made = outputs != nullptr ? *outputs : own;  // of cells from `begin` on
  Tensor value = x, before = x;
  for (size_t i = begin; i < end; ++i) {
    const GridNode& cell = cells[i];
    if (on_cell) on_cell(i);
    Tensor in = value, skip = before;
    if (cell.link >= 0) {
      const auto from = static_cast<size_t>(cell.link);
      if (!cell.feedback && from < begin) {
        return invalid(cat("cell ", cell.at.str(), " reads cell ", cells[from].at.str(),
                           ", which is not part of this pass; run both in one"));
      }
      const Tensor linked = cell.feedback ? (*feedback)[from] : made[from - begin];
      (cell.skip ? skip : in) = linked;
    }
    LOOM_ASSIGN(const LayerOutputs cell_outputs, this->cell(i, in, skip));
    const Tensor& out = cell_outputs[0];
    if (i + 1 == cells.size() && results != nullptr)
      results->assign(cell_outputs.all().begin(), cell_outputs.all().end());
    if (on_output) on_output(i, out);
    before = in;
    value = out;
    if (outputs != nullptr || network->has_links()) made.push_back(out);
  }
  return value;
}

}  // namespace loom::core
