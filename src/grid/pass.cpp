#include "grid/pass.hpp"

#include "base/text.hpp"

namespace loom::core {
namespace {

class Walker : public ForwardCall {
 public:
  Walker(Pass& pass, const Node& node, const Tensor& x, const Tensor& skip)
      : pass_(pass), node_(node), x_(x), skip_(skip) {}

  Recorder& ops() override { return *pass_.recorder; }
  const LayerConfig& config() const override { return node_.config; }
  const Tensor& x() const override { return x_; }
  const Tensor& skip() const override { return skip_; }
  Result<Tensor> tensor(const Shape& shape) override { return pass_.tensor(shape); }
  const Tensor& param(size_t i) const override {
    return pass_.network->params()[static_cast<size_t>(node_.params[i])].tensor;
  }
  int64_t sequences() const override { return pass_.sequences; }
  int64_t first() const override { return pass_.first; }
  bool stateful() const override { return pass_.stateful; }
  KvCache cache(int64_t sequence) override {
    return (*pass_.caches)[static_cast<size_t>(node_.state * pass_.sequences + sequence)];
  }
  Tensor state() override { return (*pass_.states)[static_cast<size_t>(node_.state)]; }
  Tensor mask() const override { return pass_.mask; }
  const Tensor& rope_cos() const override {
    return (*pass_.ropes)[static_cast<size_t>(node_.rope)].cos();
  }
  const Tensor& rope_sin() const override {
    return (*pass_.ropes)[static_cast<size_t>(node_.rope)].sin();
  }
  bool training() const override { return pass_.training; }
  Noise noise() const override { return {pass_.seed, static_cast<uint64_t>(node_.id), pass_.step}; }
  Status add_loss(const Tensor& value, float weight) override {
    pass_.losses.push_back({value, weight});
    return {};
  }
  Result<Tensor> child(size_t i, const Tensor& input, const Tensor& skip) override {
    const Node& below = node_.children[i];
    if (below.disabled()) return input;
    Walker walk(pass_, below, input, skip);
    return below.config.def->forward(walk);
  }

 private:
  Pass& pass_;
  const Node& node_;
  Tensor x_, skip_;
};

}  // namespace

Result<Tensor> Pass::cell(size_t i, const Tensor& in, const Tensor& skip) {
  const Node& node = network->cells()[i].node;
  Walker walk(*this, node, in, skip);
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
    LOOM_ASSIGN(const Tensor out, this->cell(i, in, skip));
    if (on_output) on_output(i, out);
    before = in;
    value = out;
    if (outputs != nullptr || network->has_links()) made.push_back(out);
  }
  return value;
}

}  // namespace loom::core
