// Modules as layers: see parts.hpp. Names decide; if a name is ambiguous, shapes do. A layer takes
// a tensor only if it uses all of it.
#include <algorithm>
#include <numeric>

#include "base/text.hpp"
#include "formats/universal/parts.hpp"

namespace loom::core {
namespace {

constexpr int64_t kMaxWidth = int64_t{1} << 24;

bool is_float(std::string_view dtype) {
  return dtype.starts_with('F') || dtype.starts_with("BF");
}

bool names_embedding(std::string_view name) {
  const std::string last = to_lower_ascii(last_part(name));
  return last.find("embed") != std::string::npos || one_of(last, {"emb", "wte", "tok_emb"});
}

std::string child(const std::string& parent, std::string_view name) {
  return parent.empty() ? std::string(name) : cat(parent, ".", name);
}

}  // namespace

std::string_view last_part(std::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

std::string_view parent_name(std::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : name.substr(0, dot);
}

int64_t as_number(std::string_view text) {
  if (text.empty() || text.size() > 9) return -1;
  int64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return -1;
    value = value * 10 + (c - '0');
  }
  return value;
}

bool natural_less(std::string_view a, std::string_view b) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto run = [&](std::string_view s) {
    size_t n = 0;
    while (n < s.size() && digit(s[n])) ++n;
    return n;
  };
  while (!a.empty() && !b.empty()) {
    if (!digit(a[0]) || !digit(b[0])) {
      if (a[0] != b[0]) return a[0] < b[0];
      a.remove_prefix(1);
      b.remove_prefix(1);
      continue;
    }
    std::string_view m = a.substr(0, run(a)), n = b.substr(0, run(b));
    a.remove_prefix(m.size());
    b.remove_prefix(n.size());
    while (m.size() > 1 && m[0] == '0') m.remove_prefix(1);
    while (n.size() > 1 && n[0] == '0') n.remove_prefix(1);
    if (m != n) return m.size() != n.size() ? m.size() < n.size() : m < n;
  }
  return a.size() < b.size();
}

ModuleReader::ModuleReader(const TensorFile& file, const InferOptions& options)
    : file_(file), options_(options), taken_(file.entries().size()) {
  for (size_t i = 0; i < file.entries().size(); ++i) {
    const TensorEntry& e = file.entries()[i];
    const std::string module(parent_name(e.name));
    modules_[module].leaves.emplace(last_part(e.name), i);
    if (last_part(e.name) == "inv_freq") {
      taken_[i] = true;
      derived.push_back(e.name);
    }
  }
  for (auto& [name, module] : modules_) module.name = name;
}

std::vector<std::string> ModuleReader::untaken() const {
  std::vector<std::string> names;
  for (size_t i = 0; i < taken_.size(); ++i) {
    if (!taken_[i]) names.push_back(file_.entries()[i].name);
  }
  return names;
}

std::optional<size_t> ModuleReader::find(const std::string& name, std::string_view leaf,
                                         size_t rank) const {
  const auto module = modules_.find(name);
  if (module == modules_.end()) return {};
  const auto at = module->second.leaves.find(leaf);
  if (at == module->second.leaves.end() || taken_[at->second]) return {};
  const TensorEntry& entry = file_.entries()[at->second];
  const bool sized = std::all_of(entry.shape.begin(), entry.shape.end(),
                                 [](int64_t n) { return n >= 1 && n <= kMaxWidth; });
  if (entry.shape.size() != rank || !is_float(entry.dtype) || !sized) return {};
  return at->second;
}

ModuleParam ModuleReader::take(std::string param, size_t tensor, int64_t first) {
  taken_[tensor] = true;
  return {std::move(param), {{tensor, first}}};
}

// ---- attention
// -----------------------------------------------------------------------------------

int64_t ModuleReader::head_dim(const std::string& name, int64_t q, int64_t kv,
                               Confidence& confidence) {
  const int64_t common = std::gcd(q, kv);
  int64_t dim = 0;
  if (options_.heads > 0 && q % options_.heads == 0 && kv % (q / options_.heads) == 0) {
    dim = q / options_.heads;
  } else {
    guesses.push_back({cat("the heads of '", name, "'"), "--attention-heads N"});
    const int64_t first = q >= 4096 ? 128 : 64;
    for (const int64_t d : {first, int64_t{64}, int64_t{32}, int64_t{16}, int64_t{8}, int64_t{4},
                            int64_t{2}, int64_t{1}}) {
      if (dim == 0 && common % d == 0) dim = d;
    }
    confidence = Confidence::low;
  }
  assumptions.push_back(cat(name, ": ", q / dim, " heads and ", kv / dim, " key-value heads of ",
                            dim,
                            options_.heads > 0 && confidence != Confidence::low
                                ? ", as asked for"
                                : ", assumed: shapes only tell how many of the first share one of "
                                  "the second"));
  return dim;
}

Status ModuleReader::finish_attention(ModuleLayer& out, int64_t q, int64_t kv, int64_t width,
                                      std::vector<Field> fields) {
  out.confidence = Confidence::high;
  const auto q_norm = find(child(out.name, "q_norm"), "weight", 1);
  const auto k_norm = find(child(out.name, "k_norm"), "weight", 1);
  int64_t dim = 0;
  if (q_norm && k_norm && shape(*q_norm) == shape(*k_norm)) {
    const int64_t length = shape(*q_norm)[0];
    if (q % length == 0 && kv % length == 0) {
      dim = length;
      fields.emplace_back("qk_norm", true);
      out.params.push_back(take("q_norm", *q_norm));
      out.params.push_back(take("k_norm", *k_norm));
    }
  }
  if (dim == 0) dim = head_dim(out.name, q, kv, out.confidence);
  fields.emplace_back("width", width);
  fields.emplace_back("heads", q / dim);
  fields.emplace_back("kv_heads", kv / dim);
  fields.emplace_back("head_dim", dim);
  if (dim % 2 != 0) fields.emplace_back("rope", false);
  LOOM_ASSIGN(out.config, make_layer(LayerKind::multi_head_attention, fields));
  out.in = out.out = width;
  return {};
}

// q_proj, k_proj, v_proj and o_proj, the first three maybe in one matrix.
Status ModuleReader::attention(const std::string& name, ModuleLayer& out, bool& made) {
  std::optional<size_t> o;
  std::string o_name;
  for (const char* leaf : {"o_proj", "out_proj", "dense"}) {
    if (o) break;
    o_name = child(name, leaf);
    o = find(o_name, "weight", 2);
  }
  if (!o) return {};
  const int64_t width = shape(*o)[0], q = shape(*o)[1];
  const std::string parts[] = {child(name, "q_proj"), child(name, "k_proj"), child(name, "v_proj")};
  const auto wq = find(parts[0], "weight", 2), wk = find(parts[1], "weight", 2),
             wv = find(parts[2], "weight", 2), fused = find(child(name, "qkv_proj"), "weight", 2);
  int64_t kv = 0;
  std::vector<Field> fields;
  if (wq && wk && wv) {
    kv = shape(*wk)[0];
    if (shape(*wq) != std::vector<int64_t>{q, width} || shape(*wk)[1] != width ||
        shape(*wv) != shape(*wk))
      return {};
    out.params = {take("q", *wq), take("k", *wk), take("v", *wv)};
    out.why = "q_proj, k_proj, v_proj, o_proj";
    const auto bq = find(parts[0], "bias", 1), bk = find(parts[1], "bias", 1),
               bv = find(parts[2], "bias", 1);
    if (bq && bk && bv) {
      fields.emplace_back("bias", true);
      for (const auto& [param, tensor] :
           {std::pair("q_bias", *bq), std::pair("k_bias", *bk), std::pair("v_bias", *bv)})
        out.params.push_back(take(param, tensor));
    }
  } else if (fused && shape(*fused)[1] == width && (shape(*fused)[0] - q) % 2 == 0 &&
             shape(*fused)[0] > q) {
    kv = (shape(*fused)[0] - q) / 2;
    out.params = {take("q", *fused), take("k", *fused, q * width),
                  take("v", *fused, (q + kv) * width)};
    out.why = "qkv_proj: q, k and v one below the other; o_proj";
    if (const auto b = find(child(name, "qkv_proj"), "bias", 1); b) {
      fields.emplace_back("bias", true);
      for (auto& p : {take("q_bias", *b), take("k_bias", *b, q), take("v_bias", *b, q + kv)})
        out.params.push_back(p);
    }
  } else {
    return {};
  }
  made = true;
  out.name = name;
  out.params.push_back(take("o", *o));
  if (const auto b = find(o_name, "bias", 1); b) {
    fields.emplace_back("out_bias", true);
    out.params.push_back(take("o_bias", *b));
  }
  return finish_attention(out, q, kv, width, std::move(fields));
}

// torch.nn.MultiheadAttention: in_proj_weight [3 E, E] and out_proj.
Status ModuleReader::packed_attention(const std::string& name, ModuleLayer& out, bool& made) {
  const auto in = find(name, "in_proj_weight", 2);
  const auto o = find(child(name, "out_proj"), "weight", 2);
  if (!in || !o || shape(*in)[0] != 3 * shape(*in)[1] ||
      shape(*o) != std::vector<int64_t>{shape(*in)[1], shape(*in)[1]})
    return {};
  const int64_t e = shape(*in)[1];
  made = true;
  out.name = name;
  out.why = "in_proj_weight: q, k and v one below the other; out_proj";
  out.params = {take("q", *in), take("k", *in, e * e), take("v", *in, 2 * e * e), take("o", *o)};
  std::vector<Field> fields = {{"causal", false}, {"rope", false}};
  const auto b = find(name, "in_proj_bias", 1);
  if (b) {
    fields.emplace_back("bias", true);
    for (auto& p : {take("q_bias", *b), take("k_bias", *b, e), take("v_bias", *b, 2 * e)})
      out.params.push_back(p);
  }
  if (const auto ob = find(child(name, "out_proj"), "bias", 1); ob) {
    fields.emplace_back("out_bias", true);
    out.params.push_back(take("o_bias", *ob));
  }
  assumptions.push_back(cat(name, ": every position sees every other, no rotation"));
  guesses.push_back({cat("the mask of '", name, "'"), ""});
  return finish_attention(out, e, e, e, std::move(fields));
}

// ---- the other layers
// ----------------------------------------------------------------------------

Status ModuleReader::swiglu(const std::string& name, ModuleLayer& out, bool& made) {
  struct Names {
    std::string_view gate, up, down;
  };
  std::vector<ModuleParam> params, biases;
  int64_t width = 0, inner = 0;
  for (const Names& n : {Names{"gate_proj", "up_proj", "down_proj"}, Names{"w1", "w3", "w2"}}) {
    const auto gate = find(child(name, n.gate), "weight", 2),
               up = find(child(name, n.up), "weight", 2),
               down = find(child(name, n.down), "weight", 2);
    if (!gate || !up || !down || shape(*gate) != shape(*up)) continue;
    inner = shape(*gate)[0], width = shape(*gate)[1];
    if (shape(*down) != std::vector<int64_t>{width, inner}) continue;
    params = {take("gate", *gate), take("up", *up), take("down", *down)};
    add_bias(child(name, n.gate), "gate_bias", biases);
    add_bias(child(name, n.up), "up_bias", biases);
    add_bias(child(name, n.down), "down_bias", biases);
    out.why = cat(n.gate, ", ", n.up, ", ", n.down);
  }
  const auto fused = find(child(name, "gate_up_proj"), "weight", 2),
             down = find(child(name, "down_proj"), "weight", 2);
  if (params.empty() && fused && down) {
    width = shape(*down)[0], inner = shape(*down)[1];
    if (shape(*fused) != std::vector<int64_t>{2 * inner, width}) return {};
    params = {take("gate", *fused), take("up", *fused, inner * width), take("down", *down)};
    out.why = "gate_up_proj: the gate above; down_proj";
  }
  if (params.empty()) return {};
  made = true;
  out.name = name;
  const bool biased = biases.size() == 3;
  for (auto& b : biases) {
    taken_[b.pieces[0].tensor] = biased;  // all three, or none
    if (biased) params.push_back(std::move(b));
  }
  out.params = std::move(params);
  LOOM_ASSIGN(out.config, make_layer(LayerKind::swiglu,
                                     {{"width", width}, {"inner", inner}, {"bias", biased}}));
  out.in = out.out = width;
  return {};
}

void ModuleReader::add_bias(const std::string& name, std::string_view param,
                            std::vector<ModuleParam>& out) {
  if (const auto b = find(name, "bias", 1); b) out.push_back(take(std::string(param), *b));
}

// torch.nn.RNN, GRU and LSTM, one layer after the other.
Status ModuleReader::recurrent(const std::string& name, std::vector<ModuleLayer>& out) {
  constexpr struct {
    int64_t gates;
    LayerKind kind;
  } kKinds[] = {{1, LayerKind::rnn}, {3, LayerKind::gru}, {4, LayerKind::lstm}};
  for (int64_t l = 0;; ++l) {
    const auto leaf = [&](const char* stem, size_t rank) {
      return find(name, cat(stem, "_l", l), rank);
    };
    const auto wih = leaf("weight_ih", 2), whh = leaf("weight_hh", 2), bih = leaf("bias_ih", 1),
               bhh = leaf("bias_hh", 1);
    if (!wih || !whh) return {};
    const int64_t rows = shape(*wih)[0], hidden = shape(*whh)[1];
    if (find(name, cat("weight_ih_l", l, "_reverse"), 2) || shape(*whh)[0] != rows || !bih || !bhh)
      return {};
    for (const auto& k : kKinds) {
      if (k.gates * hidden != rows) continue;
      ModuleLayer layer;
      layer.name = cat(name, name.empty() ? "l" : ".l", l);
      layer.in = shape(*wih)[1], layer.out = hidden;
      layer.params = {take("wih", *wih), take("whh", *whh), take("bias", *bih)};
      if (k.kind == LayerKind::gru) {
        layer.params.push_back(take("bias_hh", *bhh));
      } else {
        taken_[*bhh] = true;
        layer.params.back().pieces.push_back({*bhh, 0});
      }
      if (k.gates == 1) {
        assumptions.push_back(cat(layer.name, ": tanh, assumed"));
        guesses.push_back({cat("the function of '", layer.name, "' (tanh or relu)"), ""});
      }
      LOOM_ASSIGN(layer.config, make_layer(k.kind, {{"in", layer.in}, {"hidden", hidden}}));
      layer.why = cat("weight_ih is ", k.gates, " times as high as weight_hh is wide");
      out.push_back(std::move(layer));
    }
    if (!taken_[*wih]) return {};
  }
}

// [F][C][taps], or transposed [C][F][taps]; a bias of F values distinguishes them.
Status ModuleReader::convolution(const std::string& name, size_t weight, ModuleLayer& out,
                                 bool& made) {
  const std::vector<int64_t>& s = shape(weight);
  const auto bias = find(name, "bias", 1);
  const std::string lower = to_lower_ascii(last_part(name));
  const bool named =
      lower.find("transpose") != std::string::npos || lower.find("deconv") != std::string::npos;
  const bool by_bias = bias && shape(*bias)[0] == s[1] && s[0] != s[1];
  const bool transposed = named || by_bias;
  out.out = s[transposed ? 1 : 0], out.in = s[transposed ? 0 : 1];
  if (bias && shape(*bias)[0] != out.out) return {};
  out.axes = static_cast<int>(s.size()) - 2;
  out.taps.assign(s.begin() + 2, s.end());
  constexpr LayerKind kKinds[2][3] = {
      {LayerKind::cnn1, LayerKind::cnn2, LayerKind::cnn3},
      {LayerKind::conv_transposed1, LayerKind::conv_transposed2, LayerKind::conv_transposed3}};
  LOOM_ASSIGN(out.config,
              make_layer(kKinds[transposed][out.axes - 1], {{"channels", out.in},
                                                            {"filters", out.out},
                                                            {"kernel", out.taps},
                                                            {"bias", bias.has_value()}}));
  made = true;
  out.confidence = bias || named ? Confidence::high : Confidence::medium;
  out.why = cat("a weight of ", s.size(), " axes", by_bias ? ", transposed as the bias shows" : "");
  out.params.push_back(take("weight", weight));
  if (bias) out.params.push_back(take("bias", *bias));
  return {};
}

// weight and maybe bias: by rank a norm, a dense layer or an embedding, a convolution.
Status ModuleReader::simple(const std::string& name, ModuleLayer& out, bool& made) {
  out.name = name;
  const TensorModule& module = modules_[name];
  const bool alone = std::all_of(module.leaves.begin(), module.leaves.end(), [](const auto& leaf) {
    return leaf.first == "weight" || leaf.first == "bias";
  });
  if (!alone) return {};  // a batch norm, a quantized matrix
  const auto bias = find(name, "bias", 1);
  if (const auto gamma = find(name, "weight", 1); gamma) {
    if (bias && shape(*bias) != shape(*gamma)) return {};
    out.in = out.out = shape(*gamma)[0];
    out.why = bias ? "gain and shift" : "a gain without a shift";
    out.confidence = bias || last_part(name).find("norm") != std::string_view::npos
                         ? Confidence::high
                         : Confidence::medium;
    out.params.push_back(take("gamma", *gamma));
    if (bias) out.params.push_back(take("beta", *bias));
    made = true;
    LOOM_ASSIGN(out.config, make_layer(bias ? LayerKind::layer_norm : LayerKind::rms_norm,
                                       {{"width", out.in}}));
    return {};
  }
  if (const auto w = find(name, "weight", 2); w) {
    const int64_t rows = shape(*w)[0], cols = shape(*w)[1];
    if (bias && shape(*bias)[0] != rows) return {};
    made = true;
    out.params.push_back(take("weight", *w));
    if (names_embedding(name) && !bias) {
      out.why = "a table by its name";
      out.out = cols;
      LOOM_ASSIGN(out.config, make_layer(LayerKind::embedding, {{"vocab", rows}, {"width", cols}}));
      return {};
    }
    out.why = bias ? "a matrix and a bias" : "a matrix";
    out.in = cols, out.out = rows;
    out.maybe_table = !bias;
    if (bias) out.params.push_back(take("bias", *bias));
    LOOM_ASSIGN(out.config, make_layer(LayerKind::dense,
                                       {{"in", cols}, {"out", rows}, {"bias", bias.has_value()}}));
    return {};
  }
  for (size_t rank = 3; rank <= 5; ++rank) {
    if (const auto w = find(name, "weight", rank); w) return convolution(name, *w, out, made);
  }
  return {};
}

Result<std::vector<ModuleLayer>> ModuleReader::read() {
  std::vector<std::string> names;
  for (const auto& [name, module] : modules_) {
    names.push_back(name);
    // A layer of several modules bears the name they share.
    if (!name.empty()) names.emplace_back(parent_name(name));
  }
  std::sort(names.begin(), names.end(), natural_less);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::vector<ModuleLayer> layers;
  using Step = Status (ModuleReader::*)(const std::string&, ModuleLayer&, bool&);
  for (const Step step : {&ModuleReader::packed_attention, &ModuleReader::attention,
                          &ModuleReader::swiglu, &ModuleReader::simple}) {
    for (const std::string& name : names) {
      if (step == &ModuleReader::simple && modules_.count(name) == 0) continue;
      ModuleLayer layer;
      bool made = false;
      LOOM_TRY((this->*step)(name, layer, made));
      if (made) layers.push_back(std::move(layer));
    }
  }
  for (const std::string& name : names) {
    if (modules_.count(name) > 0) LOOM_TRY(recurrent(name, layers));
  }
  std::stable_sort(layers.begin(), layers.end(), [](const ModuleLayer& a, const ModuleLayer& b) {
    return natural_less(a.name, b.name);
  });
  return layers;
}

}  // namespace loom::core
