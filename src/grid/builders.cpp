// See builders.hpp. make_layer checks ranges of single fields, finalize() checks shapes. The checks
// here cover the cases that neither would report clearly.
#include "grid/builders.hpp"

#include "base/numbers/checked.hpp"
#include "base/numbers/rng.hpp"
#include "base/text.hpp"
#include "grid/network.hpp"

namespace loom::core {
namespace {

// Adds a layer, or returns the error of making it.
Status add(std::vector<LayerConfig>& to, LayerKind kind, const std::vector<Field>& fields,
           std::vector<LayerConfig> children = {}) {
  LOOM_ASSIGN(LayerConfig layer, make_layer(kind, fields, std::move(children)));
  to.push_back(std::move(layer));
  return {};
}

// Dense layers from `in` through `hidden` to `out`.
Status add_dense(std::vector<LayerConfig>& to, int64_t in, const std::vector<int64_t>& hidden,
                 int64_t out, const std::string& activation) {
  for (const int64_t width : hidden) {
    LOOM_TRY(add(to, LayerKind::dense,
                 {{"in", in}, {"out", width}, {"activation", to_lower_ascii(activation)}}));
    in = width;
  }
  return add(to, LayerKind::dense, {{"in", in}, {"out", out}});
}

// Limits of the extents of a description. The caller's shapes check their product.
Status positive(std::string_view what, int64_t value, int64_t max = int64_t{1} << 24) {
  if (value >= 1 && value <= max) return {};
  return invalid(cat(what, " is ", value, ", must be from 1 to ", max));
}

}  // namespace

Result<NetworkSpec> build_row(std::vector<LayerConfig> layers, const Shape& input) {
  GridSpec grid(1, 1, static_cast<int64_t>(layers.size()), 1);
  for (size_t i = 0; i < layers.size(); ++i) {
    LOOM_TRY(grid.put({0, 0, static_cast<int64_t>(i), 0}, {std::move(layers[i])}));
  }
  LOOM_TRY(Network::finalize(grid, input.after(1)));
  return NetworkSpec{std::move(grid), input};
}

Result<NetworkSpec> build_mlp(const MlpOptions& o) {
  std::vector<LayerConfig> layers;
  LOOM_TRY(add_dense(layers, o.in, o.hidden, o.out, o.activation));
  return build_row(std::move(layers), Shape{o.in});
}

Result<NetworkSpec> build_cnn(const CnnOptions& o) {
  if (o.input.rank() != 3) {
    return invalid(cat("an image is [channels, height, width], not ", o.input.str()));
  }
  if (o.kernels.empty()) return invalid("give at least one kernel size");
  for (int i = 0; i < 3; ++i) LOOM_TRY(positive("an extent of the image", o.input[i], 1 << 16));
  std::vector<LayerConfig> layers;
  Shape shape = o.input.after(1);
  for (size_t i = 0; i < o.filters.size(); ++i) {
    const int64_t kernel = o.kernels[std::min(i, o.kernels.size() - 1)];
    LOOM_TRY(add(layers, LayerKind::cnn2,
                 {{"channels", shape[1]},
                  {"filters", o.filters[i]},
                  {"kernel", kernel},
                  {"stride", o.stride},
                  {"padding", kernel / 2},
                  {"activation", to_lower_ascii(o.activation)}}));
    LOOM_ASSIGN(shape, infer_shape(layers.back(), shape));
  }
  LOOM_TRY(add_dense(layers, shape.count(), o.hidden, o.out, o.activation));
  return build_row(std::move(layers), o.input);
}

Result<NetworkSpec> build_transformer(const TransformerOptions& o) {
  LOOM_TRY(positive("heads", o.heads));
  LOOM_TRY(positive("time", o.time));
  LOOM_TRY(positive("layers", o.layers, 4096));
  if (o.width % (2 * o.heads) != 0) {
    return invalid(cat("width ", o.width, " must be a multiple of twice the heads, ", 2 * o.heads,
                       ": rotary embedding turns pairs"));
  }
  std::vector<LayerConfig> layers;
  LOOM_TRY(add(layers, LayerKind::embedding, {{"vocab", o.vocab}, {"width", o.width}}));
  for (int64_t i = 0; i < o.layers; ++i) {
    std::vector<LayerConfig> attention, mlp;
    LOOM_TRY(add(attention, LayerKind::rms_norm, {{"width", o.width}}));
    LOOM_TRY(add(attention, LayerKind::multi_head_attention,
                 {{"width", o.width},
                  {"heads", o.heads},
                  {"kv_heads", o.kv_heads > 0 ? o.kv_heads : o.heads},
                  {"head_dim", o.width / o.heads},
                  {"causal", o.causal}}));
    LOOM_TRY(add(layers, LayerKind::residual, {}, std::move(attention)));
    LOOM_TRY(add(mlp, LayerKind::rms_norm, {{"width", o.width}}));
    LOOM_TRY(add(mlp, LayerKind::swiglu,
                 {{"width", o.width}, {"inner", o.inner > 0 ? o.inner : 4 * o.width}}));
    LOOM_TRY(add(layers, LayerKind::residual, {}, std::move(mlp)));
  }
  LOOM_TRY(add(layers, LayerKind::rms_norm, {{"width", o.width}}));
  LOOM_TRY(add(layers, LayerKind::dense,
               {{"in", o.width}, {"out", o.out > 0 ? o.out : o.vocab}, {"bias", false}}));
  return build_row(std::move(layers), Shape{o.time});
}

Result<NetworkSpec> build_recurrent(const RecurrentOptions& o) {
  LOOM_TRY(positive("time", o.time));
  LayerKind kind = LayerKind::gru;
  if (o.cell == "rnn") {
    kind = LayerKind::rnn;
  } else if (o.cell == "lstm") {
    kind = LayerKind::lstm;
  } else if (o.cell != "gru") {
    return invalid(cat("unknown cell '", printable(o.cell), "'; known are rnn, lstm, gru"));
  }
  if (o.hidden.empty()) return invalid("give at least one recurrent layer");
  std::vector<LayerConfig> layers;
  if (o.vocab > 0) {
    LOOM_TRY(add(layers, LayerKind::embedding, {{"vocab", o.vocab}, {"width", o.in}}));
  }
  int64_t in = o.in;
  for (size_t i = 0; i < o.hidden.size(); ++i) {
    const bool all = o.sequence || i + 1 < o.hidden.size();
    LOOM_TRY(add(layers, kind, {{"in", in}, {"hidden", o.hidden[i]}, {"return_sequence", all}}));
    in = o.hidden[i];
  }
  LOOM_TRY(add_dense(layers, in, o.dense, o.out, "relu"));
  return build_row(std::move(layers), o.vocab > 0 ? Shape{o.time} : Shape{o.time, o.in});
}

namespace {

// A random layer that keeps its width, from random number `number`. `nested`: whether it may have
// children.
Result<LayerConfig> random_layer(const Rng& rng, uint64_t& drawn, int64_t width, bool nested) {
  static constexpr std::string_view kActivations[] = {"relu", "tanh", "sigmoid", "silu", "linear"};
  const auto pick = [&](uint32_t n) { return rng.bits(drawn++) % n; };
  switch (pick(nested ? 7 : 5)) {
    case 0: return make_layer(LayerKind::layer_norm, {{"width", width}});
    case 1: return make_layer(LayerKind::rms_norm, {{"width", width}});
    case 2: return make_layer(LayerKind::swiglu, {{"width", width}, {"inner", 2 * width}});
    case 3:
    case 4:
      return make_layer(
          LayerKind::dense,
          {{"in", width}, {"out", width}, {"activation", std::string(kActivations[pick(5)])}});
    default: break;
  }
  std::vector<LayerConfig> children;
  for (uint32_t n = 1 + pick(2); n > 0; --n) {
    LOOM_ASSIGN(LayerConfig child, random_layer(rng, drawn, width, false));
    children.push_back(std::move(child));
  }
  return make_layer(LayerKind::residual, {}, std::move(children));
}

}  // namespace

Result<NetworkSpec> build_random(const RandomOptions& o) {
  for (const int64_t extent : {o.depth, o.rows, o.cols, o.layers})
    LOOM_TRY(positive("an extent of the grid", extent, 64));
  const int64_t cells = o.depth * o.rows * o.cols * o.layers;
  if (cells < 2) return invalid("a random grid needs two cells at least");
  GridSpec grid(o.depth, o.rows, o.cols, o.layers);
  const Rng rng(o.seed, 0);
  uint64_t drawn = 0;
  for (int64_t i = 0; i < cells; ++i) {
    Cell cell;
    if (i == 0) {
      LOOM_ASSIGN(cell.layer, make_layer(LayerKind::dense, {{"in", o.in}, {"out", o.width}}));
    } else if (i + 1 == cells) {
      LOOM_ASSIGN(cell.layer, make_layer(LayerKind::dense, {{"in", o.width}, {"out", o.out}}));
    } else {
      if (rng.bits(drawn++) % 5 == 0) continue;  // an empty cell
      LOOM_ASSIGN(cell.layer, random_layer(rng, drawn, o.width, true));
    }
    LOOM_TRY(grid.put(grid.coord(i), std::move(cell)));
  }
  LOOM_TRY(Network::finalize(grid, Shape{1, o.in}));
  return NetworkSpec{std::move(grid), Shape{o.in}};
}

}  // namespace loom::core
