// Converts a record of the original project to a Loom layer: the meaning of its fields, and the
// defaults that the original applies on loading. One function per kind of layer; see reader.hpp.
#include <algorithm>

#include "base/text.hpp"
#include "dtype/codecs/loom1_codes.hpp"
#include "formats/original/reader.hpp"

namespace loom::core {
namespace {

using Fields = std::vector<Field>;

// State shared by the functions below.
struct Maker {
  Loom1Reader& reader;
  Loom1Layer& layer;
  const Loom1Extras& extras;
  std::string activation;

  const Loom1Record& r() const { return layer.record; }
  void note(std::string_view text) const { reader.note(layer.location, text); }
  Error bad(std::string_view text) const { return reader.bad(layer, text); }
};

struct Name {
  std::string_view theirs, ours;
};
constexpr Name kLoom1Activations[] = {{"relu", "relu"},
                                      {"silu", "silu"},
                                      {"gelu", "gelu_tanh"},
                                      {"tanh", "tanh"},
                                      {"sigmoid", "sigmoid"},
                                      {"leakyrelu", "leaky_relu"},
                                      {"leaky_relu", "leaky_relu"},
                                      {"relu2", "relu2"},
                                      {"linear", "linear"}};

Result<Fields> dense(Maker& m) {
  return Fields{{"in", m.r().input_height},
                {"out", m.r().output_height},
                {"bias", false},
                {"activation", m.activation}};
}

void add_inner_norm(const Maker& m, Fields& to) {
  if (!m.extras.inner_norm) return;
  to.emplace_back("sub_norm", true);
  if (m.extras.norm_eps > 0) to.emplace_back("sub_norm_eps", m.extras.norm_eps);
}

Result<Fields> attention(Maker& m) {
  const Loom1Record& r = m.r();
  if (r.num_heads < 1) return m.bad(cat("num_heads is ", r.num_heads, ", must be at least 1"));
  if (r.head_dim <= 0 && r.d_model % r.num_heads != 0) {
    return m.bad(cat("d_model ", r.d_model, " is not a multiple of num_heads ", r.num_heads,
                     ", and head_dim is absent"));
  }
  const int64_t dim = r.head_dim > 0 ? r.head_dim : r.d_model / r.num_heads;
  if (r.query_dim > 0 && (r.query_dim % r.num_heads != 0 || r.query_dim / r.num_heads != dim)) {
    return m.bad(
        cat("query_dim ", r.query_dim, " is not num_heads ", r.num_heads, " times head_dim ", dim));
  }
  if (r.seq_length <= 0) m.note("seq_length absent, taken as 1");
  const double base = r.rope_freq_base > 0 ? r.rope_freq_base : m.extras.rope_freq_base;
  if (base <= 0) {
    m.note("rope_freq_base absent, taken as 10000 (versions before 0.83 then rotated nothing)");
  }
  Fields f{{"width", r.d_model},
           {"heads", r.num_heads},
           {"kv_heads", r.num_kv_heads > 0 ? r.num_kv_heads : r.num_heads},
           {"head_dim", dim},
           {"bias", true},
           {"out_bias", true},
           {"rope_theta", base > 0 ? base : 10000.0}};
  if (m.extras.qk_norm) {
    f.emplace_back("qk_norm", true);
    if (m.extras.norm_eps > 0) f.emplace_back("qk_norm_eps", m.extras.norm_eps);
  }
  add_inner_norm(m, f);
  return f;
}

Result<Fields> swiglu(Maker& m) {
  Fields f{{"width", m.r().input_height}, {"inner", m.r().output_height}, {"bias", true}};
  add_inner_norm(m, f);
  if (!m.extras.gate.empty()) {
    f.emplace_back("activation", m.extras.gate);
  } else if (m.activation == "relu2") {
    m.note("the gate is SiLU; the original uses ReLU2 in its ternary path alone");
  }
  return f;
}

// A file has input_height gains, but the norm covers output_height.
Result<int64_t> norm_width(Maker& m) {
  const int64_t in = m.r().input_height, out = m.r().output_height;
  if (in > 0 && out > 0 && in != out)
    return m.bad(cat("input_height ", in, " and output_height ", out, " differ in a norm"));
  return std::max(in, out);
}

Result<Fields> rms_norm(Maker& m) {
  LOOM_ASSIGN(const int64_t width, norm_width(m));
  if (m.extras.norm_eps > 0) return Fields{{"width", width}, {"eps", m.extras.norm_eps}};
  m.note("eps is not in the file, taken as 1e-6");
  return Fields{{"width", width}};
}

Result<Fields> layer_norm(Maker& m) {
  LOOM_ASSIGN(const int64_t width, norm_width(m));
  return Fields{{"width", width}};
}

// Extents of input and output along the axes of a convolution, 0 if absent.
struct Extents {
  int64_t in[3] = {}, out[3] = {};
  int axes = 1;
};
Extents extents_of(const Loom1Record& r, int axes, bool transposed) {
  const auto either = [](int64_t a, int64_t b) { return a > 0 ? a : b; };
  const int64_t ih = r.input_height, oh = r.output_height;
  if (axes == 1 && transposed) return {{r.input_width}, {r.output_width}, 1};
  if (axes == 1) return {{ih}, {oh}, 1};
  const int64_t iw = either(r.input_width, ih), ow = either(r.output_width, oh);
  if (axes == 2) return {{ih, iw}, {oh, ow}, 2};
  return {{either(r.input_depth, ih), ih, iw}, {either(r.output_depth, oh), oh, ow}, 3};
}

struct Loom1Window {
  int64_t kernel, stride, padding;
};
Result<Loom1Window> window_of(Maker& m) {
  const Loom1Record& r = m.r();
  if (r.kernel_size <= 0) m.note("kernel_size absent, taken as 1");
  if (r.stride <= 0) m.note("stride absent, taken as 1");
  const Loom1Window w{std::max<int64_t>(r.kernel_size, 1), std::max<int64_t>(r.stride, 1),
                      r.padding};
  constexpr int64_t kMax = 4096;
  if (w.kernel <= kMax && w.stride <= kMax && w.padding >= 0 && w.padding <= kMax) return w;
  return m.bad(cat("kernel_size ", w.kernel, ", stride ", w.stride, ", padding ", w.padding,
                   " must be at most ", kMax));
}

Result<Fields> conv(Maker& m, int axes) {
  LOOM_ASSIGN(const Loom1Window w, window_of(m));
  const Extents e = extents_of(m.r(), axes, false);
  for (int i = 0; i < axes; ++i) {
    if (e.in[i] <= 0 || e.out[i] <= 0) continue;
    const int64_t room = e.in[i] + 2 * w.padding - w.kernel;
    const int64_t out = room < 0 ? 0 : room / w.stride + 1;
    if (out == e.out[i]) continue;
    return m.bad(cat("an extent of ", e.in[i], " gives ", out, " with kernel_size ", w.kernel,
                     ", stride ", w.stride, ", padding ", w.padding, ", but the file says ",
                     e.out[i]));
  }
  return Fields{{"channels", m.r().input_channels},
                {"filters", m.r().filters},
                {"kernel", w.kernel},
                {"stride", w.stride},
                {"padding", w.padding},
                {"bias", false},
                {"activation", m.activation}};
}

Result<Fields> conv_transposed(Maker& m, int axes) {
  LOOM_ASSIGN(const Loom1Window w, window_of(m));
  const Extents e = extents_of(m.r(), axes, true);
  std::vector<int64_t> more;
  for (int i = 0; i < axes; ++i) {
    more.push_back(m.r().output_padding);
    if (e.in[i] <= 0 || e.out[i] <= 0) continue;
    // The original computes the length in the file, and ignores output_padding.
    const int64_t out = (e.in[i] - 1) * w.stride - 2 * w.padding + w.kernel;
    more.back() = e.out[i] - out;
    if (more.back() >= 0 && more.back() < std::max<int64_t>(w.stride, 1)) continue;
    return m.bad(cat("an extent of ", e.in[i], " gives ", out, " with kernel_size ", w.kernel,
                     ", stride ", w.stride, ", padding ", w.padding, ", but the file says ",
                     e.out[i]));
  }
  m.note(
      "weights are read as [filters][channels][taps], as the original's code does; its documents "
      "say [channels][filters][taps]");
  return Fields{{"channels", m.r().input_channels},
                {"filters", m.r().filters},
                {"kernel", w.kernel},
                {"stride", w.stride},
                {"padding", w.padding},
                {"output_padding", more},
                {"bias", false},
                {"activation", m.activation}};
}

Result<Fields> cnn1(Maker& m) {
  return conv(m, 1);
}
Result<Fields> cnn2(Maker& m) {
  return conv(m, 2);
}
Result<Fields> cnn3(Maker& m) {
  return conv(m, 3);
}
Result<Fields> conv_transposed1(Maker& m) {
  return conv_transposed(m, 1);
}
Result<Fields> conv_transposed2(Maker& m) {
  return conv_transposed(m, 2);
}
Result<Fields> conv_transposed3(Maker& m) {
  return conv_transposed(m, 3);
}

Result<Fields> recurrent(Maker& m) {
  if (m.r().seq_length <= 0) m.note("seq_length absent, taken as 1");
  return Fields{{"in", m.r().input_height}, {"hidden", m.r().output_height}};
}

Result<Fields> embedding(Maker& m) {
  return Fields{
      {"vocab", m.r().vocab_size}, {"width", m.r().embedding_dim}, {"activation", m.activation}};
}

Result<Fields> kmeans(Maker& m) {
  m.note("rows are clustered one by one; the original took the whole batch for one row");
  const double tau = m.r().kmeans_temperature;
  return Fields{{"clusters", m.r().num_clusters},
                {"width", m.r().input_height},
                {"temperature", tau == 0 ? 1.0 : tau},
                {"mode", m.r().output_mode.empty() ? "probabilities" : m.r().output_mode},
                {"activation", m.activation}};
}

Result<Fields> softmax(Maker& m) {
  const Loom1Record& r = m.r();
  std::string variant = to_lower_ascii(r.softmax_type.empty() ? "standard" : r.softmax_type);
  m.note("each row is normalized by itself; the original normalized a whole batch at once");
  if (variant == "adaptive" || variant == "mixture") {
    m.note(cat("softmax_type ", variant, " is Standard, as in the original, where it is a stub"));
    variant = "standard";
  }
  if (variant == "entmax")
    m.note("entmax is the exact one; the original blended softmax and sparsemax");
  if (variant == "masked" && r.mask.empty())
    m.note("the mask is not in the file: every position is kept");
  if (variant == "hierarchical" && r.hierarchy_levels.empty()) {
    return m.reader.lacking(m.layer,
                            "hierarchy_levels are not in the file; a checkpoint does not "
                            "hold them, an architecture does");
  }
  if (variant == "gumbel" && !r.gumbel_noise)
    m.note("noise in training alone; the original always drew it");
  Fields f{{"variant", variant},
           {"temperature", r.temperature == 0 ? 1.0 : r.temperature},
           {"rows", r.softmax_rows},
           {"cols", r.softmax_cols},
           {"noise", r.gumbel_noise}};
  if (r.entmax_alpha != 0) f.emplace_back("alpha", r.entmax_alpha);
  if (variant == "masked" && !r.mask.empty()) f.emplace_back("mask", r.mask);
  if (variant == "hierarchical") f.emplace_back("levels", r.hierarchy_levels);
  return f;
}

Result<Fields> parallel(Maker& m) {
  std::string mode = m.r().combine_mode.empty() ? "concat" : m.r().combine_mode;
  if (mode == "filter") {
    return m.reader.lacking(m.layer,
                            "combine_mode filter needs its gate, which files of the "
                            "original do not hold");
  }
  if (mode == "grid_scatter") {
    m.note("grid_scatter is concat, as in the original");
    mode = "concat";
  }
  return Fields{{"combine", mode}};
}

Result<Fields> nothing(Maker&) {
  return Fields{};
}

struct Kind {
  std::string_view name;
  LayerKind kind;
  Result<Fields> (*fields)(Maker&);
  bool activates;  // whether its activation is used
};
constexpr Kind kLoom1Kinds[] = {
    {"dense", LayerKind::dense, dense, true},
    {"multiheadattention", LayerKind::multi_head_attention, attention, false},
    {"mha", LayerKind::multi_head_attention, attention, false},
    {"attention", LayerKind::multi_head_attention, attention, false},
    {"swiglu", LayerKind::swiglu, swiglu, false},
    {"rmsnorm", LayerKind::rms_norm, rms_norm, false},
    {"layernorm", LayerKind::layer_norm, layer_norm, false},
    {"cnn1", LayerKind::cnn1, cnn1, true},
    {"cnn2", LayerKind::cnn2, cnn2, true},
    {"cnn3", LayerKind::cnn3, cnn3, true},
    {"convtransposed1d", LayerKind::conv_transposed1, conv_transposed1, true},
    {"convtransposed2d", LayerKind::conv_transposed2, conv_transposed2, true},
    {"convtransposed3d", LayerKind::conv_transposed3, conv_transposed3, true},
    {"rnn", LayerKind::rnn, recurrent, false},
    {"lstm", LayerKind::lstm, recurrent, false},
    {"embedding", LayerKind::embedding, embedding, true},
    {"kmeans", LayerKind::kmeans, kmeans, true},
    {"softmax", LayerKind::softmax, softmax, false},
    {"parallel", LayerKind::parallel, parallel, false},
    {"sequential", LayerKind::sequential, nothing, false},
    {"residual", LayerKind::residual, nothing, false}};

Result<const Kind*> kind_of(const Loom1Reader& reader, const Loom1Layer& layer) {
  const std::string name = to_lower_ascii(layer.record.type);
  if (name == "metacognition" || name == "meta") {
    return reader.lacking(layer,
                          "metacognition changes a layer while it runs, which Loom does not "
                          "do; save the layer it observes without it");
  }
  std::vector<std::string> known;
  for (const Kind& kind : kLoom1Kinds) {
    if (kind.name == name) return &kind;
    known.emplace_back(kind.name);
  }
  if (name.empty()) return reader.bad(layer, "\"type\" is required, but absent");
  return reader.bad(layer, cat("unknown type '", printable(layer.record.type), "'; known are ",
                               join(known, ", ")));
}

Result<std::string> activation_of(Loom1Reader& reader, const Loom1Layer& layer, bool counts) {
  const std::string name = to_lower_ascii(layer.record.activation);
  if (name.empty()) {
    if (counts) reader.note(layer.location, "activation absent, taken as Linear");
    return std::string("linear");
  }
  std::vector<std::string> known;
  for (const Name& row : kLoom1Activations) {
    if (row.theirs == name) return std::string(row.ours);
    known.emplace_back(row.theirs);
  }
  return reader.bad(layer, cat("unknown activation '", printable(layer.record.activation),
                               "'; known are ", join(known, ", ")));
}

}  // namespace

Status configure_loom1(Loom1Reader& reader, Loom1Layer& layer, const Loom1Extras& extras) {
  LOOM_ASSIGN(const Kind* kind, kind_of(reader, layer));
  Maker maker{reader, layer, extras, {}};
  LOOM_ASSIGN(maker.activation, activation_of(reader, layer, kind->activates));
  if (!layer.record.dtype.empty()) {
    const Result<DType> dtype = parse_dtype(layer.record.dtype);
    if (!dtype.ok() || !loom1_has(*dtype))
      return reader.bad(layer, cat("unknown dtype '", printable(layer.record.dtype), "'"));
    layer.dtype = *dtype;
  }
  LOOM_ASSIGN(const Fields fields, kind->fields(maker));
  Result<LayerConfig> made = make_layer(kind->kind, fields);
  if (!made.ok()) return reader.bad(layer, made.error().message);
  layer.config = std::move(*made);
  layer.config.disabled = layer.record.is_disabled;
  return {};
}

}  // namespace loom::core
