// Blocks of sequences:
//   EmbeddingBag     the sum or mean of the rows of all ids of a sample.
//   RecurrentStack   stacked RNN, LSTM or GRU layers, in one direction or both.
//   Mamba            a selective state-space model (Gu and Dao, 2023):
//                    h_t = exp(d_t A) h_(t-1) + d_t B_t u_t,  y_t = C_t h_t + D u_t
#include "base/text.hpp"
#include "layers/blocks/blocks.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/fields.hpp"
#include "layers/core/graph_maker.hpp"
#include "ops/activation.hpp"

namespace loom::core {
namespace {

using List = Extents;
constexpr int64_t kAll = int64_t{1} << 40;  // beyond any extent

GraphValue slice(GraphMaker& g, std::string_view name, const GraphValue& x, int64_t axis,
                 int64_t from, int64_t to, int64_t by = 1) {
  return g.add(
      name, LayerKind::slice,
      {{"starts", List{from}}, {"ends", List{to}}, {"axes", List{axis}}, {"steps", List{by}}}, {x});
}
GraphValue view(GraphMaker& g, std::string_view name, const GraphValue& x, List shape) {
  return g.add(name, LayerKind::view, {{"shape", shape}}, {x});
}
GraphValue binary(GraphMaker& g, std::string_view name, const char* function,
                  std::initializer_list<GraphValue> of) {
  return g.add(name, LayerKind::binary, {{"function", function}}, of);
}
GraphValue unary(GraphMaker& g, std::string_view name, std::string_view function,
                 const GraphValue& x) {
  return g.add(name, LayerKind::unary, {{"function", function}}, {x});
}

namespace embedding_bag {

using namespace fields::embedding_bag;

Result<LayerConfig> expand(const LayerConfig& c) {
  const std::string_view mode = c.text(kMode);
  if (mode != "mean" && mode != "sum" && mode != "max") {
    return invalid(
        cat("EmbeddingBag: unknown mode '", printable(mode), "'; known are mean, sum, max"));
  }
  return both_of(layer_with(LayerKind::embedding,
                            {{"vocab", c.integer(kVocab)}, {"width", c.integer(kWidth)}}),
                 layer_with(LayerKind::reduce, {{"function", mode}, {"axes", List{1}}}));
}

}  // namespace embedding_bag

namespace recurrent {

using namespace fields::recurrent_stack;

Result<LayerKind> kind_of(const LayerConfig& c) {
  const std::string_view kind = c.text(kKind);
  if (kind == "rnn") return LayerKind::rnn;
  if (kind == "lstm") return LayerKind::lstm;
  if (kind == "gru") return LayerKind::gru;
  return invalid(
      cat("RecurrentStack: unknown kind '", printable(kind), "'; known are rnn, lstm, gru"));
}

// One direction of one layer.
Result<LayerConfig> direction_of(const LayerConfig& c, LayerKind kind, int64_t in, bool all) {
  const Args fields = {{"in", in},
                       {"hidden", c.integer(kHidden)},
                       {"return_sequence", all},
                       {"initial_state", c.flag(kInitialState)},
                       {"final_state", c.flag(kFinalState)}};
  LOOM_ASSIGN(LayerConfig layer, layer_with(kind, fields));
  LOOM_TRY(parse_activation(c.text(kActivation)));
  if (kind != LayerKind::rnn) return layer;
  layer.set_text(field_index(layer, "activation"), std::string(c.text(kActivation)));
  return layer;
}

// Splits the inputs that hold the states of all layers, and concatenates their last states.
class States {
 public:
  States(const LayerConfig& c, LayerKind kind, GraphMaker& g)
      : c_(c), parts_(kind == LayerKind::lstm ? 2 : 1), g_(g) {}

  static std::vector<std::string> inputs(const LayerConfig& c, LayerKind kind) {
    if (!c.flag(kInitialState)) return {"input"};
    if (kind == LayerKind::lstm) return {"input", "h", "c"};
    return {"input", "h"};
  }
  // The states that direction number `i` reads besides x.
  void read(int64_t i, std::vector<GraphValue>& reads) {
    for (int64_t part = 0; part < parts_ && c_.flag(kInitialState); ++part) {
      const GraphValue one =
          slice(g_, cat("begin", i, "_", part), GraphMaker::input(1 + part), 1, i, i + 1);
      reads.push_back(view(g_, cat("begins", i, "_", part), one, {0, c_.integer(kHidden)}));
    }
  }
  void add(const GraphValue& layer) {
    for (int64_t part = 0; part < parts_ && c_.flag(kFinalState); ++part) {
      last_[part].push_back(view(g_, cat("ends", last_[part].size(), "_", part),
                                 {layer.node, 1 + part}, {0, 1, c_.integer(kHidden)}));
    }
  }
  void finish(std::vector<GraphValue>& outputs) {
    for (int64_t part = 0; part < parts_ && c_.flag(kFinalState); ++part)
      outputs.push_back(
          g_.add(cat("last", part), layer_with(LayerKind::concat, {{"axis", 1}}), last_[part]));
  }

 private:
  const LayerConfig& c_;
  int64_t parts_;
  GraphMaker& g_;
  std::vector<GraphValue> last_[2];
};

Result<LayerConfig> expand(const LayerConfig& c) {
  LOOM_ASSIGN(const LayerKind kind, kind_of(c));
  const int64_t hidden = c.integer(kHidden), layers = c.integer(kLayers);
  const bool both = c.flag(kBidirectional);
  GraphMaker g(States::inputs(c, kind));
  States states(c, kind, g);
  GraphValue x = g.input();
  int64_t count = 0;
  for (int64_t i = 0; i < layers; ++i) {
    const bool all = i + 1 < layers || c.flag(kReturnSequence);
    const int64_t in = i == 0 ? c.integer(kIn) : hidden * (both ? 2 : 1);
    const auto layer = [&](std::string_view direction, const GraphValue& from) {
      std::vector<GraphValue> reads = {from};
      states.read(count++, reads);
      const GraphValue made = g.add(cat(direction, i), direction_of(c, kind, in, all), reads);
      states.add(made);
      return made;
    };
    const GraphValue there = layer("forward", x);
    if (both) {
      const GraphValue reversed = slice(g, cat("turned", i), x, 1, -1, -kAll, -1);
      GraphValue back = layer("backward", reversed);
      if (all) back = slice(g, cat("turned_back", i), back, 1, -1, -kAll, -1);
      x = g.add(cat("both", i), LayerKind::concat, {{"axis", all ? 2 : 1}}, {there, back});
    } else {
      x = there;
    }
  }
  std::vector<GraphValue> outputs = {x};
  states.finish(outputs);
  return g.finish(outputs);
}

}  // namespace recurrent

namespace mamba {

using namespace fields::mamba;

// u: a causal convolution of the channels; no later step enters.
GraphValue convolved(GraphMaker& g, const GraphValue& x, int64_t channels, int64_t kernel) {
  const auto turn = [&](const char* name, const GraphValue& t) {
    return g.add(name, LayerKind::transpose, {{"axes", List{0, 2, 1}}}, {t});
  };
  GraphValue y = g.add("conv", LayerKind::cnn1,
                       {{"channels", channels},
                        {"filters", channels},
                        {"groups", channels},
                        {"kernel", kernel},
                        {"padding", kernel - 1},
                        {"activation", "silu"}},
                       {turn("channels", x)});
  if (kernel > 1) y = slice(g, "past", y, 2, 0, 1 - kernel);
  return turn("u", y);
}

Result<LayerConfig> expand(const LayerConfig& c) {
  const int64_t width = c.integer(kWidth), n = c.integer(kState), e = width * c.integer(kExpand);
  const int64_t r = c.integer(kRank) > 0 ? c.integer(kRank) : (width + 15) / 16;
  GraphMaker g;
  const auto dense = [&](std::string_view name, int64_t in, int64_t out, const GraphValue& x,
                         bool bias = false, const char* activation = "linear") {
    return g.add(name, LayerKind::dense,
                 {{"in", in}, {"out", out}, {"bias", bias}, {"activation", activation}}, {x});
  };
  const GraphValue both = dense("in", width, 2 * e, g.input());
  const GraphValue u = convolved(g, slice(g, "x", both, 2, 0, e), e, c.integer(kKernel));
  const GraphValue gate = unary(g, "gate", "silu", slice(g, "z", both, 2, e, kAll));

  const GraphValue chosen = dense("chosen", e, r + 2 * n, u);
  const GraphValue b = view(g, "B", slice(g, "b", chosen, 2, r, r + n), {0, 0, 1, n});
  const GraphValue read = view(g, "C", slice(g, "c", chosen, 2, r + n, kAll), {0, 0, 1, n});
  const GraphValue small =
      dense("steps", r, e, slice(g, "rank", chosen, 2, 0, r), true, "softplus");
  const GraphValue step = view(g, "d", small, {0, 0, e, 1});

  const GraphValue logs =
      g.add("A_log", LayerKind::constant, {{"shape", List{1, 1, e, n}}, {"fill", "log_range"}}, {});
  const GraphValue a = unary(g, "A", "neg", unary(g, "A_exp", "exp", logs));
  const GraphValue kept = unary(g, "kept", "exp", binary(g, "dA", "mul", {step, a}));
  const GraphValue added =
      binary(g, "added", "mul", {step, view(g, "u_column", u, {0, 0, e, 1}), b});
  const GraphValue h = g.add("h", LayerKind::scan, {{"width", e * n}}, {kept, added});

  const GraphValue seen =
      g.add("seen", LayerKind::reduce, {{"axes", List{3}}}, {binary(g, "hC", "mul", {h, read})});
  const GraphValue d = g.add("D", LayerKind::constant, {{"shape", List{e}}, {"fill", "ones"}}, {});
  const GraphValue y = binary(g, "y", "add", {seen, binary(g, "Du", "mul", {u, d})});
  return g.finish(dense("out", e, width, binary(g, "gated", "mul", {y, gate})));
}

}  // namespace mamba
}  // namespace

extern const LayerDef kEmbeddingBag;
const LayerDef kEmbeddingBag = {.kind = LayerKind::sequential,
                                .name = "EmbeddingBag",
                                .fields = fields::embedding_bag::kFields,
                                .expand = embedding_bag::expand};

extern const LayerDef kRecurrentStack;
const LayerDef kRecurrentStack = {.kind = LayerKind::graph,
                                  .name = "RecurrentStack",
                                  .fields = fields::recurrent_stack::kFields,
                                  .expand = recurrent::expand};

extern const LayerDef kMamba;
const LayerDef kMamba = {.kind = LayerKind::graph,
                         .name = "Mamba",
                         .fields = fields::mamba::kFields,
                         .expand = mamba::expand};

}  // namespace loom::core
