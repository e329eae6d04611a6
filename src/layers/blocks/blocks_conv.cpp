// Blocks over [B, C, ..]:
//   SqueezeExcite  y = x s, s = gate(W2 act(W1 mean(x))) (Hu, Shen and Sun, 2018).
//   SeparableConv  a convolution of each channel without bias and activation, then one of
//                  kernel 1 over all channels (Sifre, 2014; Chollet, 2017).
#include "layers/blocks/blocks.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/graph_maker.hpp"

namespace loom::core {
namespace {

LayerKind conv_of(int64_t axes) {
  return axes == 1 ? LayerKind::cnn1 : axes == 2 ? LayerKind::cnn2 : LayerKind::cnn3;
}

namespace squeeze_excite {

using namespace fields::squeeze_excite;

Result<LayerConfig> expand(const LayerConfig& c) {
  const int64_t channels = c.integer(kChannels), hidden = c.integer(kHidden);
  const LayerKind conv = conv_of(c.integer(kAxes));
  const auto dense = [&](int64_t in, int64_t out, int field) {
    return layer_with(
        conv, {{"channels", in}, {"filters", out}, {"kernel", 1}, {"activation", c.text(field)}});
  };
  GraphMaker g;
  const GraphValue mean =
      g.add("mean", LayerKind::pool, {{"kind", "average"}, {"output", 1}}, {g.input()});
  const GraphValue squeezed = g.add("squeeze", dense(channels, hidden, kActivation), {{mean}});
  const GraphValue factors = g.add("excite", dense(hidden, channels, kGate), {{squeezed}});
  return g.finish(g.add("scale", LayerKind::binary, {{"function", "mul"}}, {g.input(), factors}));
}

}  // namespace squeeze_excite

namespace separable_conv {

using namespace fields::separable_conv;

Result<LayerConfig> expand(const LayerConfig& c) {
  const int64_t channels = c.integer(kChannels);
  const LayerKind conv = conv_of(c.integer(kAxes));
  return both_of(layer_with(conv, {{"channels", channels},
                                   {"filters", channels},
                                   {"groups", channels},
                                   {"kernel", c.list(kKernel)},
                                   {"stride", c.list(kStride)},
                                   {"padding", c.list(kPadding)},
                                   {"dilation", c.list(kDilation)},
                                   {"bias", false}}),
                 layer_with(conv, {{"channels", channels},
                                   {"filters", c.integer(kFilters)},
                                   {"kernel", 1},
                                   {"activation", c.text(kActivation)}}));
}

}  // namespace separable_conv
}  // namespace

extern const LayerDef kSqueezeExcite;
const LayerDef kSqueezeExcite = {.kind = LayerKind::graph,
                                 .name = "SqueezeExcite",
                                 .fields = fields::squeeze_excite::kFields,
                                 .expand = squeeze_excite::expand};

extern const LayerDef kSeparableConv;
const LayerDef kSeparableConv = {.kind = LayerKind::sequential,
                                 .name = "SeparableConv",
                                 .fields = fields::separable_conv::kFields,
                                 .expand = separable_conv::expand};

}  // namespace loom::core
