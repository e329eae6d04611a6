// Dense layers and convolutions whose weights have a norm of their own:
//   WeightNormDense, WeightNormConv      row i of W is g_i v_i / |v_i| (Salimans, Kingma, 2016).
//   SpectralNormDense, SpectralNormConv  W / s, s its largest singular value (Miyato et al., 2018).
// A row of a convolution is a filter, [channels][taps]. A convolution is the sum over its taps of
// the values under each tap times the matrix of the tap. Channels are last, so one product covers
// all positions.
#include <cmath>

#include "base/text.hpp"
#include "layers/blocks/blocks.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/fields.hpp"
#include "layers/core/graph_maker.hpp"

namespace loom::core {
namespace {

namespace normed {

constexpr int64_t kEnd = int64_t{1} << 40;  // beyond any extent

GraphValue constant(GraphMaker& g, std::string_view name, Extents shape, const char* fill,
                    double factor = 1.0) {
  return g.add(name, LayerKind::constant, {{"shape", shape}, {"fill", fill}, {"factor", factor}},
               {});
}

GraphValue binary(GraphMaker& g, std::string_view name, const char* function, const GraphValue& a,
                  const GraphValue& b) {
  return g.add(name, LayerKind::binary, {{"function", function}}, {a, b});
}

// W [rows, cols] of g v / |v|.
GraphValue weight_normed(GraphMaker& g, int64_t rows, int64_t cols) {
  const double deviation = 1.0 / std::sqrt(static_cast<double>(cols));
  const GraphValue v = constant(g, "v", {rows, cols}, "normal", deviation);
  const GraphValue length = constant(g, "g", {rows, 1}, "ones");
  const GraphValue squares =
      g.add("squares", LayerKind::reduce,
            {{"function", "sum_squares"}, {"axes", Extents{1}}, {"keep", true}}, {v});
  const GraphValue norm = g.add("norm", LayerKind::unary, {{"function", "sqrt"}}, {squares});
  return binary(g, "w", "mul", binary(g, "unit", "div", v, norm), length);
}

// The same of W / s.
GraphValue spectral_normed(GraphMaker& g, int64_t rows, int64_t cols, int64_t iterations,
                           double eps) {
  const double deviation = 1.0 / std::sqrt(static_cast<double>(cols));
  const GraphValue w = constant(g, "weight", {rows, cols}, "normal", deviation);
  return g.add("w", LayerKind::spectral_norm,
               {{"rows", rows}, {"cols", cols}, {"iterations", iterations}, {"eps", eps}}, {w});
}

// By name, because blocks here share some fields at different indices.
int64_t integer(const LayerConfig& c, std::string_view field) {
  return c.integer(field_index(c, field));
}

GraphValue normed_matrix(GraphMaker& g, const LayerConfig& c, bool spectral, int64_t rows,
                         int64_t cols) {
  if (!spectral) return weight_normed(g, rows, cols);
  return spectral_normed(g, rows, cols, integer(c, "iterations"), c.real(field_index(c, "eps")));
}

// Bias and activation over the last extent.
GraphValue finished(GraphMaker& g, const LayerConfig& c, GraphValue y, int64_t width) {
  if (integer(c, "bias") != 0) y = binary(g, "sum", "add", y, constant(g, "b", {width}, "zeros"));
  const std::string_view activation = c.text(field_index(c, "activation"));
  if (activation == "linear") return y;
  return g.add("activation", LayerKind::unary, {{"function", activation}}, {y});
}

Result<LayerConfig> dense(const LayerConfig& c, bool spectral) {
  const int64_t in = integer(c, "in"), out = integer(c, "out");
  GraphMaker g;
  const GraphValue w = normed_matrix(g, c, spectral, out, in);
  const GraphValue y = g.add("product", LayerKind::matmul, {{"transpose_b", true}}, {g.input(), w});
  return g.finish(finished(g, c, y, out));
}

// A field of each axis.
Result<std::vector<int64_t>> per_axis(const LayerConfig& c, std::string_view field) {
  const auto axes = static_cast<size_t>(integer(c, "axes"));
  const std::vector<int64_t>& list = c.list(field_index(c, field));
  if (list.size() == axes) return list;
  if (list.size() == 1) return std::vector<int64_t>(axes, list[0]);
  return invalid(
      cat(c.def->name, ": ", field, " has ", list.size(), " numbers, must have 1 or ", axes));
}

struct Windows {
  int64_t channels = 0, filters = 0, taps = 1;
  std::vector<int64_t> kernel, stride, padding, dilation;
};

Result<Windows> windows_of(const LayerConfig& c) {
  Windows w;
  w.channels = integer(c, "channels");
  w.filters = integer(c, "filters");
  LOOM_ASSIGN(w.kernel, per_axis(c, "kernel"));
  LOOM_ASSIGN(w.stride, per_axis(c, "stride"));
  LOOM_ASSIGN(w.padding, per_axis(c, "padding"));
  LOOM_ASSIGN(w.dilation, per_axis(c, "dilation"));
  for (const int64_t k : w.kernel) w.taps *= k;
  constexpr int64_t kMaxTaps = 512;
  if (w.taps <= kMaxTaps) return w;
  return invalid(cat(c.def->name, ": a kernel of ", w.taps, " taps; at most ", kMaxTaps));
}

// The values under tap `tap` of every position, from padded x, channels last.
GraphValue under_tap(GraphMaker& g, const Windows& w, const GraphValue& x, int64_t tap) {
  std::vector<int64_t> starts, ends, axes;
  int64_t rest = tap;
  for (size_t axis = w.kernel.size(); axis-- > 0;) {
    const int64_t at = rest % w.kernel[axis], left = w.kernel[axis] - 1 - at;
    rest /= w.kernel[axis];
    starts.insert(starts.begin(), at * w.dilation[axis]);
    ends.insert(ends.begin(), left > 0 ? -left * w.dilation[axis] : kEnd);
    axes.insert(axes.begin(), static_cast<int64_t>(axis) + 1);
  }
  return g.add(cat("under", tap), LayerKind::slice,
               {{"starts", starts}, {"ends", ends}, {"axes", axes}, {"steps", w.stride}}, {x});
}

// The matrix of a tap, [filters, channels].
GraphValue tap_matrix(GraphMaker& g, const Windows& w, const GraphValue& all, int64_t tap) {
  const GraphValue one = g.add(cat("column", tap), LayerKind::slice,
                               {{"starts", Extents{tap}},
                                {"ends", Extents{tap + 1}},
                                {"axes", Extents{2}},
                                {"steps", Extents{1}}},
                               {all});
  return g.add(cat("tap", tap), LayerKind::view, {{"shape", Extents{w.filters, w.channels}}},
               {one});
}

Result<LayerConfig> conv(const LayerConfig& c, bool spectral) {
  LOOM_ASSIGN(const Windows w, windows_of(c));
  const auto axes = static_cast<int64_t>(w.kernel.size());
  std::vector<int64_t> last = {0}, first = {0, axes + 1};
  for (int64_t i = 0; i < axes; ++i) {
    last.push_back(2 + i);
    first.push_back(1 + i);
  }
  last.push_back(1);
  GraphMaker g;
  const GraphValue matrix = normed_matrix(g, c, spectral, w.filters, w.channels * w.taps);
  const GraphValue all = g.add("filters", LayerKind::view,
                               {{"shape", Extents{w.filters, w.channels, w.taps}}}, {matrix});
  const GraphValue padded =
      g.add("padded", LayerKind::pad, {{"before", w.padding}, {"after", w.padding}}, {g.input()});
  const GraphValue x = g.add("channels_last", LayerKind::transpose, {{"axes", last}}, {padded});
  GraphValue y;
  for (int64_t tap = 0; tap < w.taps; ++tap) {
    const GraphValue part = g.add(cat("product", tap), LayerKind::matmul, {{"transpose_b", true}},
                                  {under_tap(g, w, x, tap), tap_matrix(g, w, all, tap)});
    y = tap == 0 ? part : binary(g, cat("sum", tap), "add", y, part);
  }
  y = finished(g, c, y, w.filters);
  return g.finish(g.add("channels_first", LayerKind::transpose, {{"axes", first}}, {y}));
}

template <Result<LayerConfig> (*make)(const LayerConfig&, bool), bool spectral>
Result<LayerConfig> of(const LayerConfig& c) {
  return make(c, spectral);
}

constexpr LayerDef block(std::string_view name, std::span<const FieldDesc> fields,
                         Result<LayerConfig> (*expand)(const LayerConfig&)) {
  return {.kind = LayerKind::graph, .name = name, .fields = fields, .expand = expand};
}

}  // namespace normed
}  // namespace

extern const LayerDef kWeightNormDense;
const LayerDef kWeightNormDense = normed::block(
    "WeightNormDense", fields::weight_norm_dense::kFields, normed::of<normed::dense, false>);

extern const LayerDef kWeightNormConv;
const LayerDef kWeightNormConv = normed::block("WeightNormConv", fields::weight_norm_conv::kFields,
                                               normed::of<normed::conv, false>);

extern const LayerDef kSpectralNormDense;
const LayerDef kSpectralNormDense = normed::block(
    "SpectralNormDense", fields::spectral_norm_dense::kFields, normed::of<normed::dense, true>);

extern const LayerDef kSpectralNormConv;
const LayerDef kSpectralNormConv = normed::block(
    "SpectralNormConv", fields::spectral_norm_conv::kFields, normed::of<normed::conv, true>);

}  // namespace loom::core
