#include "grid/pass.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "layers/core/forward_call.hpp"
#include "ops/recording/trace.hpp"

namespace loom::core {
namespace {

// The output of a layer with one output; infer_shape() rejects others.
Result<Tensor> forward_one(ForwardCall& call) {
  const LayerDef& def = *call.config().def;
  if (def.forward != nullptr) return def.forward(call);
  LOOM_ASSIGN(const std::vector<Tensor> outputs, def.forward_all(call));
  return outputs[0];
}

class Walker : public ForwardCall {
 public:
  Walker(Pass& pass, const Node& node, std::span<const Tensor> inputs, const Tensor& skip)
      : pass_(pass), node_(node), inputs_(inputs), skip_(skip) {}

  Recorder& ops() override { return *pass_.recorder; }
  const LayerConfig& config() const override { return node_.config; }
  const Tensor& x() const override { return inputs_[0]; }
  const Tensor& skip() const override { return skip_; }
  std::span<const Tensor> inputs() const override { return inputs_; }
  Result<Tensor> tensor(const Shape& shape) override { return pass_.tensor(shape); }
  const Tensor& param(size_t i) const override {
    return pass_.network->params()[static_cast<size_t>(node_.params[i])].tensor;
  }
  int64_t sequences() const override { return pass_.sequences; }
  int64_t first() const override { return pass_.first; }
  bool stateful() const override { return pass_.stateful; }
  KvCache cache() override { return (*pass_.caches)[static_cast<size_t>(node_.state)]; }
  Tensor places() const override { return pass_.places; }
  Tensor state() override { return (*pass_.states)[static_cast<size_t>(node_.state)]; }
  Tensor mask() const override { return pass_.mask; }
  const SequenceEnds& ends() const override { return pass_.ends; }
  Result<Tensor> given() const override {
    if (pass_.given != nullptr) return (*pass_.given)[static_cast<size_t>(node_.input)];
    return unsupported(
        cat("the input '",
            printable(pass_.network->extra_inputs()[static_cast<size_t>(node_.input)].name),
            "' is not given in this pass"));
  }
  const Tensor& rope_cos() const override {
    return (*pass_.ropes)[static_cast<size_t>(node_.rope)].cos();
  }
  const Tensor& rope_sin() const override {
    return (*pass_.ropes)[static_cast<size_t>(node_.rope)].sin();
  }
  const Tensor& position_numbers() const override {
    return (*pass_.ropes)[static_cast<size_t>(node_.rope)].numbers();
  }
  bool training() const override { return pass_.training; }
  Noise noise() const override { return {pass_.seed, static_cast<uint64_t>(node_.id), pass_.step}; }
  Status add_loss(const Tensor& value, float weight) override {
    pass_.losses.push_back({value, weight});
    return {};
  }
  Status keep(size_t i, const Tensor& value, float rate) override {
    pass_.kept.push_back({param(i), value, rate, {}});
    return {};
  }
  Result<Tensor> present(int64_t least) override {
    pass_.least = std::max(pass_.least, least);
    if (pass_.partial && pass_.present.empty()) {
      LOOM_ASSIGN(pass_.present, tensor(Shape{pass_.sequences, 1}));
    }
    return pass_.present;
  }
  Result<Tensor> child(size_t i, const Tensor& input, const Tensor& skip) override {
    const Node& below = node_.children[i];
    if (below.disabled()) return input;
    Walker walk(pass_, below, std::span(&input, 1), skip);
    return forward_one(walk);
  }
  bool can_read_values() const override {
    return static_cast<bool>(pass_.settle) && !pass_.training;
  }
  Result<bool> settle() override { return pass_.settle(); }
  // The commands go to a trace that is never run.
  Status skip_child(size_t i, const Tensor& input) override {
    Trace unread(pass_.recorder->ops().compute);
    Recorder deaf(unread);
    Recorder* const recorder = std::exchange(pass_.recorder, &deaf);
    const auto settle = std::exchange(pass_.settle, [] { return Result<bool>(false); });
    const Result<Tensor> y = child(i, input, input);
    pass_.recorder = recorder;
    pass_.settle = settle;
    return y.ok() ? Status{} : Status(y.error());
  }
  Result<std::vector<Tensor>> child_all(size_t i, std::span<const Tensor> inputs) override {
    const Node& below = node_.children[i];
    if (below.disabled() && !inputs.empty()) return std::vector<Tensor>{inputs[0]};
    Walker walk(pass_, below, inputs, inputs.empty() ? Tensor{} : inputs.back());
    return forward_all(walk);
  }

 private:
  Pass& pass_;
  const Node& node_;
  std::span<const Tensor> inputs_;
  Tensor skip_;
};

}  // namespace

Result<Tensor> Pass::cell(size_t i, const Tensor& in, const Tensor& skip) {
  const Node& node = network->cells()[i].node;
  Walker walk(*this, node, std::span(&in, 1), skip);
  return forward_one(walk);
}

Result<std::vector<Tensor>> Pass::cell_all(size_t i, const Tensor& in, const Tensor& skip) {
  Walker walk(*this, network->cells()[i].node, std::span(&in, 1), skip);
  return forward_all(walk);
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
    Tensor out;
    const bool last = i + 1 == cells.size();
    if (last && !network->more_outputs().empty()) {
      LOOM_ASSIGN(const std::vector<Tensor> all, cell_all(i, in, skip));
      if (results != nullptr) *results = all;
      out = all[0];
    } else {
      LOOM_ASSIGN(out, this->cell(i, in, skip));
      if (last && results != nullptr) results->assign(1, out);
    }
    if (on_output) on_output(i, out);
    before = in;
    value = out;
    if (outputs != nullptr || network->has_links()) made.push_back(out);
  }
  return value;
}

}  // namespace loom::core
