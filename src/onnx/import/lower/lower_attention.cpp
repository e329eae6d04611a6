// Attention as exporters take it apart: softmax(q k^T * scale + mask) v over heads that are columns
// of three products of one input. See lower.hpp. B batch, H heads, T positions, D head width.
#include <algorithm>

#include "base/text.hpp"
#include "layers/core/field_tables.hpp"
#include "onnx/import/lower/lower.hpp"

namespace loom::core {
namespace {

constexpr double kHidden = -1e4;  // what masks add at least where a position may not look

bool is_one(double v) {
  return v > 1 - 1e-6 && v < 1 + 1e-6;
}

Weights scaled(const Weights& w, double by) {
  if (is_one(by)) return w;
  std::vector<float> out = *w;
  for (float& v : out) v = static_cast<float>(static_cast<double>(v) * by);
  return std::make_shared<const std::vector<float>>(std::move(out));
}

// The weight or, where the projection has one, the bias as a parameter of attention. A missing bias
// is zero.
ItemParam projected(std::string path, const Item& from, size_t param, Shape shape, double by = 1) {
  if (from.params.size() > param) {
    const ItemParam& p = from.params[param];
    return {std::move(path), shape, scaled(p.values, by), p.made_up || !is_one(by)};
  }
  const std::vector<float> zeros(static_cast<size_t>(shape.count()));
  return {std::move(path), shape, shared(zeros), true};
}

}  // namespace

// The Dense that makes a stream; `scale` takes a factor before it.
Result<int> Lowering::projection(const OnnxNode& n, const PatternValue& x, double& scale) const {
  if (x.f != nullptr) {
    const Recognized r = recognize(*x.f);
    if (r.kind != Recognized::Kind::affine || r.shift != 0)
      return refuse(n,
                    "heads that are not products of the input (rotations and norms of q and k "
                    "are not read)");
    scale *= r.scale;
  }
  const Item& item = items_[static_cast<size_t>(x.item)];
  if (item.role != Item::Role::layer || item.layer.def->kind != LayerKind::dense)
    return refuse(n,
                  "a product of two computed values that is not attention over products of the "
                  "input (rotations and norms of q and k are not read)");
  return x.item;
}

Result<PatternValue> Lowering::scores(const OnnxNode& n, const PatternValue& q,
                                      const PatternValue& k) {
  Scores s;
  LOOM_ASSIGN(s.q, projection(n, q, s.scale));
  LOOM_ASSIGN(s.k, projection(n, k, s.scale));
  const std::vector<int64_t> dims = q.view.dims(), other = k.view.dims();
  if (dims.size() != 4 || other.size() != 4)
    return refuse(n, "only heads of [batch, heads, time, values] are read");
  int64_t repeats = 1;
  const OnnxView keys = k.view.permuted({0, 3, 1, 2}).once(2, repeats);
  if (!q.view.permuted({0, 2, 1, 3}).plain() || !keys.plain() || dims[0] != batch_ ||
      other[0] != batch_ || other[1] != dims[1] || other[2] != dims[3] || other[3] != dims[2] ||
      dims[1] % repeats != 0)
    return refuse(n, "q and k are not heads of [batch, time, width]");
  s.heads = dims[1];
  s.time = dims[2];
  s.head_dim = dims[3];
  s.kv_heads = s.heads / repeats;
  if (items_[static_cast<size_t>(s.q)].out.last() != s.heads * s.head_dim ||
      items_[static_cast<size_t>(s.k)].out.last() != s.kv_heads * s.head_dim)
    return refuse(n, "q and k are not heads of [batch, time, width]");
  PatternValue out = stream(s.q, {batch_, s.heads, s.time, s.time});
  out.scores = std::make_shared<const Scores>(s);
  return out;
}

// A factor, or a mask that hides positions.
Result<PatternValue> Lowering::scores_with(const OnnxNode& n, const PatternValue& x,
                                           const Constant& c) {
  Scores s = *x.scores;
  PatternValue out = x;
  if (s.softmax) return refuse(n, "changes the weights of attention");
  const std::string_view function = layer_of(n.op).function;
  if (function != "add") {
    const bool known = (function == "mul" || function == "div") && c.values.size() == 1;
    if (!known) return refuse(n, "changes scores of attention by neither a factor nor a mask");
    s.scale = function == "mul" ? s.scale * c.at(0) : s.scale / c.at(0);
    out.scores = std::make_shared<const Scores>(s);
    return out;
  }
  const bool none = c.values.size() == 1 && c.at(0) == 0;
  if (none) return out;
  if (c.values.size() == 1 || c.count() != s.time * s.time || c.dims.size() < 2 ||
      c.dims.back() != s.time || c.dims[c.dims.size() - 2] != s.time || s.causal || s.window > 0)
    return refuse(n, "a mask that is not one of [time, time], or a second one");
  bool later = false;
  int64_t reach = 0;
  const auto can_attend = [&](int64_t i) { return c.at(i) > kHidden; };
  for (int64_t i = 0; i < c.count(); ++i) {
    const int64_t apart = i % s.time - i / s.time;
    if (!can_attend(i)) continue;
    if (c.at(i) != 0) return refuse(n, "a mask that adds to scores instead of hiding positions");
    later = later || apart > 0;
    reach = std::max(reach, apart < 0 ? -apart : apart);
  }
  s.causal = !later;
  s.window = reach + 1 < s.time ? reach + 1 : 0;
  for (int64_t i = 0; i < c.count(); ++i) {
    const int64_t apart = i % s.time - i / s.time, far = apart < 0 ? -apart : apart;
    const bool visible = (!s.causal || apart <= 0) && (s.window == 0 || far < s.window);
    if (visible != can_attend(i)) return refuse(n, "a mask that is neither causal nor a window");
  }
  out.scores = std::make_shared<const Scores>(s);
  return out;
}

Result<PatternValue> Lowering::attend(const OnnxNode& n, const PatternValue& p,
                                      const PatternValue& v) {
  const Scores& s = *p.scores;
  double scale = 1;
  LOOM_ASSIGN(const int values, projection(n, v, scale));
  int64_t repeats = 1;
  const std::vector<int64_t> dims = v.view.dims();
  if (dims.size() != 4) return refuse(n, "only heads of [batch, heads, time, values] are read");
  const OnnxView view_as = v.view.permuted({0, 2, 1, 3}).once(2, repeats);
  const Item &q = items_[static_cast<size_t>(s.q)], &k = items_[static_cast<size_t>(s.k)],
             &w = items_[static_cast<size_t>(values)];
  if (!s.softmax || !view_as.plain() || dims[0] != batch_ || dims[1] != s.heads ||
      dims[2] != s.time || dims[3] != s.head_dim || s.heads / repeats != s.kv_heads ||
      w.out.last() != s.kv_heads * s.head_dim || q.sources != k.sources || q.sources != w.sources)
    return refuse(n, "q, k and v are not heads of products of one input");
  const Item& source = items_[static_cast<size_t>(q.sources[0])];
  if (source.out.rank() != 3 || source.out[0] != batch_ || source.out[1] != s.time)
    return refuse(n, "attention over what is no [batch, time, width]");
  const int64_t width = q.layer.integer(fields::dense::kIn);
  if (s.scale <= 0) return refuse(n, "scores times a factor that is not above 0");
  const bool usual = is_one(s.scale * __builtin_sqrt(static_cast<double>(s.head_dim)));
  const bool biased = q.params.size() > 1 || k.params.size() > 1 || w.params.size() > 1;
  Result<LayerConfig> layer =
      make_layer(LayerKind::multi_head_attention, {{"width", width},
                                                   {"heads", s.heads},
                                                   {"kv_heads", s.kv_heads},
                                                   {"head_dim", s.head_dim},
                                                   {"bias", biased},
                                                   {"causal", s.causal},
                                                   {"window", s.window},
                                                   {"rope", false},
                                                   {"scale", usual ? 0 : s.scale}});
  if (!layer.ok()) return refuse(n, layer.error().message);
  Item item = layer_item(std::move(*layer), q.sources[0]);
  item.role = Item::Role::attention;
  const int64_t wide = s.heads * s.head_dim, narrow = s.kv_heads * s.head_dim;
  item.out = Shape{batch_, s.time, wide};
  item.params = {projected("q", q, 0, Shape{wide, width}),
                 projected("k", k, 0, Shape{narrow, width}),
                 projected("v", w, 0, Shape{narrow, width}, scale),
                 {"o", Shape{width, wide}, nullptr}};
  if (biased) {
    item.params.push_back(projected("q_bias", q, 1, Shape{wide}));
    item.params.push_back(projected("k_bias", k, 1, Shape{narrow}));
    item.params.push_back(projected("v_bias", w, 1, Shape{narrow}, scale));
  }
  LOOM_ASSIGN(const int made, add(n, std::move(item)));
  PatternValue y = stream(made, {batch_, s.time, s.heads, s.head_dim});
  y.view = y.view.permuted({0, 2, 1, 3});
  return y;
}

}  // namespace loom::core
