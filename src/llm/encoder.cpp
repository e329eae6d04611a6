#include "llm/encoder.hpp"

#include "base/text.hpp"
#include "layers/core/graph.hpp"

namespace loom::core {
namespace {

using Layer = Result<LayerConfig>;

std::string encoder_activation(const std::string& name) {
  if (name == "gelu") return "gelu_erf";
  if (name == "gelu_new" || name == "gelu_pytorch_tanh") return "gelu_tanh";
  return name;
}

Layer table(int64_t rows, const EncoderConfig& c) {
  return make_layer(LayerKind::embedding, {{"vocab", rows}, {"width", c.hidden_size}});
}

Layer encoder_norm(const EncoderConfig& c) {
  return make_layer(LayerKind::layer_norm, {{"width", c.hidden_size}, {"eps", c.norm_eps}});
}

Layer dense(int64_t in, int64_t out, bool bias, const std::string& activation) {
  return make_layer(LayerKind::dense,
                    {{"in", in}, {"out", out}, {"bias", bias}, {"activation", activation}});
}

// tokens + types + positions, of which the tables are children 0, 2 and 4.
Layer embeddings(const EncoderConfig& c) {
  if (c.position_rows == 0 && c.types == 0) return table(c.vocab_size, c);
  std::vector<LayerConfig> nodes;
  GraphWiring wiring;
  wiring.names = {"ids"};
  const auto add = [&](const char* name, Layer layer, std::vector<GraphValue> reads) -> Status {
    if (!layer.ok()) return layer.error();
    nodes.push_back(std::move(*layer));
    wiring.nodes.push_back(std::move(reads));
    wiring.names.emplace_back(name);
    return {};
  };
  LOOM_TRY(add("tokens", table(c.vocab_size, c), {{}}));
  int64_t sum = 0;
  std::vector<int64_t> terms;
  for (const auto& [rows, input, name] : {std::tuple(c.position_rows, "positions", "places"),
                                          std::tuple(c.types, "types", "kinds")}) {
    if (rows == 0) continue;
    LOOM_TRY(add(input, make_layer(LayerKind::input, {{"input", input}, {"ids", rows}}), {{}}));
    LOOM_TRY(add(name, table(rows, c), {{static_cast<int64_t>(nodes.size()) - 1, 0}}));
    terms.push_back(static_cast<int64_t>(nodes.size()) - 1);
  }
  for (size_t i = terms.size(); i-- > 0;) {
    LOOM_TRY(add(i == 0 ? "sum" : "some", make_layer(LayerKind::binary, {{"function", "add"}}),
                 {{sum, 0}, {terms[i], 0}}));
    sum = static_cast<int64_t>(nodes.size()) - 1;
  }
  wiring.outputs = {{sum, 0}};
  return make_graph(wiring, std::move(nodes));
}

Layer encoder_attention(const EncoderConfig& c, const EncoderLayer& own) {
  return make_layer(LayerKind::multi_head_attention,
                    {{"width", c.hidden_size},
                     {"heads", c.num_heads},
                     {"kv_heads", c.num_heads},
                     {"head_dim", c.head_dim},
                     {"bias", c.attention_bias},
                     {"out_bias", c.attention_bias},
                     {"causal", false},
                     {"window", own.window},
                     {"rope", own.rope_theta > 0},
                     {"rope_theta", own.rope_theta > 0 ? own.rope_theta : 10000.0}});
}

// x + the children of `layers`, one after the other.
Layer added_to(std::vector<Layer> layers) {
  std::vector<LayerConfig> children;
  for (Layer& layer : layers) {
    if (!layer.ok()) return layer.error();
    children.push_back(std::move(*layer));
  }
  return make_layer(LayerKind::residual, {}, std::move(children));
}

Layer attention_part(const EncoderConfig& c, int64_t block) {
  std::vector<Layer> layers;
  if (c.pre_norm && block > 0) layers.push_back(encoder_norm(c));
  layers.push_back(encoder_attention(c, c.layers[static_cast<size_t>(block)]));
  return added_to(std::move(layers));
}

Layer mlp_part(const EncoderConfig& c) {
  const std::string activation = encoder_activation(c.hidden_act);
  std::vector<Layer> layers;
  if (c.pre_norm) {
    layers.push_back(encoder_norm(c));
    layers.push_back(make_layer(LayerKind::swiglu, {{"width", c.hidden_size},
                                                    {"inner", c.intermediate_size},
                                                    {"bias", c.mlp_bias},
                                                    {"activation", activation}}));
  } else {
    layers.push_back(dense(c.hidden_size, c.intermediate_size, c.mlp_bias, activation));
    layers.push_back(dense(c.intermediate_size, c.hidden_size, c.mlp_bias, "linear"));
  }
  return added_to(std::move(layers));
}

EncoderRole with_bias(EncoderRole role, bool bias) {
  return static_cast<EncoderRole>(static_cast<int>(role) + (bias ? 1 : 0));
}

EncoderRole role_of_attention(std::string_view name) {
  using enum EncoderRole;
  const EncoderRole base = name[0] == 'q' ? q : name[0] == 'k' ? k : name[0] == 'v' ? v : o;
  return with_bias(base, name.ends_with("_bias"));
}

EncoderRole role_of_block(const Param& param, const EncoderConfig& c, int64_t block) {
  using enum EncoderRole;
  const bool bias = param.spec.name == "beta" || param.spec.name == "bias";
  const bool norm = param.spec.name == "gamma" || param.spec.name == "beta";
  if (c.pre_norm) {
    if (norm) return with_bias(param.cell.l == 0 ? attention_norm : mlp_norm, bias);
    if (param.cell.l == 0) return role_of_attention(param.spec.name);
    return param.spec.name == "gate" ? gate : param.spec.name == "up" ? up : down;
  }
  (void)block;
  if (norm) return with_bias(param.cell.l == 1 ? attention_norm : mlp_norm, bias);
  if (param.cell.l == 0) return role_of_attention(param.spec.name);
  return with_bias(param.child == 0 ? inner : outer, bias);
}

}  // namespace

Result<GridSpec> encoder_grid(const EncoderConfig& c) {
  GridSpec grid(c.num_layers + 3, 1, 1, 4);
  const auto put = [&](int64_t z, int64_t l, Layer layer) -> Status {
    if (!layer.ok()) return layer.error();
    return grid.put({z, 0, 0, l}, {std::move(*layer)});
  };
  LOOM_TRY(put(0, 0, embeddings(c)));
  LOOM_TRY(put(0, 1, encoder_norm(c)));
  for (int64_t b = 0; b < c.num_layers; ++b) {
    LOOM_TRY(put(1 + b, 0, attention_part(c, b)));
    if (!c.pre_norm) LOOM_TRY(put(1 + b, 1, encoder_norm(c)));
    LOOM_TRY(put(1 + b, c.pre_norm ? 1 : 2, mlp_part(c)));
    if (!c.pre_norm) LOOM_TRY(put(1 + b, 3, encoder_norm(c)));
  }
  if (c.pre_norm) LOOM_TRY(put(1 + c.num_layers, 0, encoder_norm(c)));
  if (c.labels == 0) return grid;
  const int64_t head = 2 + c.num_layers;
  LOOM_TRY(put(head, 0,
               dense(c.hidden_size, c.hidden_size, c.head_bias, encoder_activation(c.head_act))));
  if (c.head_norm) LOOM_TRY(put(head, 1, encoder_norm(c)));
  LOOM_TRY(put(head, 2, dense(c.hidden_size, c.labels, true, "linear")));
  return grid;
}

size_t encoder_body_cells(const Network& network, const EncoderConfig& config) {
  size_t count = 0;
  for (const GridNode& cell : network.cells()) count += cell.at.z < 2 + config.num_layers ? 1 : 0;
  return count;
}

Status check_encoder(const Network& network, const EncoderConfig& config,
                     const std::string& where) {
  LOOM_ASSIGN(const GridSpec grid, encoder_grid(config));
  LOOM_ASSIGN(const Network expected, Network::finalize(grid, Shape{1, 1}));
  bool same = expected.params().size() == network.params().size() &&
              expected.cells().size() == network.cells().size() &&
              expected.extra_inputs() == network.extra_inputs() && !network.has_links();
  for (size_t i = 0; same && i < expected.params().size(); ++i) {
    const Param &a = expected.params()[i], &b = network.params()[i];
    same = a.path == b.path && a.spec.shape == b.spec.shape;
  }
  if (same) return {};
  return bad_file("its network is not that of the encoder which its config.json describes", where);
}

EncoderPiece encoder_piece(const Param& param, const EncoderConfig& config) {
  using enum EncoderRole;
  const bool bias = param.spec.name == "beta" || param.spec.name == "bias";
  const int64_t z = param.cell.z, n = config.num_layers;
  if (z == 0) {
    if (param.cell.l == 1) return {with_bias(embedding_norm, bias)};
    if (param.child <= 0) return {tokens};
    return {param.child == 2 && config.position_rows > 0 ? positions : types};
  }
  if (z <= n) return {role_of_block(param, config, z - 1), z - 1};
  if (z == n + 1) return {with_bias(final_norm, bias)};
  const EncoderRole roles[] = {head, head_norm, labels};
  return {with_bias(roles[param.cell.l], bias)};
}

bool is_encoder_table(const Param& param) {
  return param.cell.z == 0 && param.spec.matrix();
}

}  // namespace loom::core
