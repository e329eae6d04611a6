#include "llm/decoder.hpp"

#include <map>

#include "base/text.hpp"
#include "layers/core/graph.hpp"
#include "llm/decoder_block.hpp"

namespace loom::core {
namespace {

// The activation's name in Loom for a checkpoint's hidden_act (validated by the config reader).
std::string hidden_activation(const std::string& name) {
  if (name == "gelu") return "gelu_erf";
  if (name == "gelu_new" || name == "gelu_pytorch_tanh") return "gelu_tanh";
  return name;
}

std::string rope_scaling(RopeKind kind) {
  if (kind == RopeKind::none || kind == RopeKind::standard) return "";
  return std::string(kRopeKinds[static_cast<size_t>(kind)]);
}

// Numbers as a layer has them: separated by spaces, as many digits as f32 has.
std::string factor_list(const std::vector<double>& factors) {
  std::string text;
  for (const double factor : factors)
    text += cat(text.empty() ? "" : " ", static_cast<float>(factor));
  return text;
}

// The eps of the norms of latents. Classes of transformers ignore their setting there.
constexpr double kLatentEps = 1e-6;

Result<LayerConfig> norm_layer(const DecoderConfig& c) {
  if (!c.layer_norms)
    return make_layer(LayerKind::rms_norm, {{"width", c.hidden_size}, {"eps", c.rms_norm_eps}});
  return make_layer(LayerKind::layer_norm, {{"width", c.hidden_size},
                                            {"eps", c.rms_norm_eps},
                                            {"weight", c.norm_weights},
                                            {"bias", c.norm_biases}});
}

Result<LayerConfig> attention_layer(const DecoderConfig& c, const DecoderLayer& own) {
  const bool local = own.rope_theta > 0;
  return make_layer(
      LayerKind::multi_head_attention,
      {{"width", c.hidden_size},
       {"heads", c.num_heads},
       {"kv_heads", c.num_kv_heads},
       {"head_dim", c.head_dim},
       {"bias", c.attention_bias},
       {"out_bias", c.attention_out_bias},
       {"qk_norm", c.qk_norm},
       {"qk_norm_eps", c.latent > 0 ? kLatentEps : c.rms_norm_eps},
       {"sub_norm", c.sub_norms},
       {"sub_norm_eps", c.rms_norm_eps},
       {"scale", c.attention_scale},
       {"soft_cap", c.attention_soft_cap},
       {"window", own.window},
       {"rope", own.rope && c.rope != RopeKind::none},
       {"rope_width", c.rope_width},
       {"rope_theta", local ? own.rope_theta : c.rope_theta},
       {"rope_scaling", local ? "" : rope_scaling(c.rope)},
       {"rope_factor", c.rope_factor},
       {"rope_low_freq", c.rope_low_freq_factor},
       {"rope_high_freq", c.rope_high_freq_factor},
       {"rope_original", c.rope_original_max_positions},
       {"qk_norm_form", std::string(kQkNormForms[static_cast<size_t>(c.qk_norm_form)])},
       {"qk_norm_after_rope", c.qk_norm_after_rope},
       {"clip", c.clip_qkv},
       {"alibi", c.alibi},
       {"alibi_scale", c.alibi_scale},
       {"sinks", c.sinks},
       {"rope_attention", local ? 1.0 : c.rope_attention},
       {"rope_beta_fast", c.rope_beta_fast},
       {"rope_beta_slow", c.rope_beta_slow},
       {"rope_truncate", c.rope_truncate},
       {"rope_short", local ? "" : factor_list(c.rope_short)},
       {"rope_long", local ? "" : factor_list(c.rope_long)},
       {"latent", c.latent},
       {"latent_q", c.latent_q},
       {"value_dim", c.value_dim}});
}

Result<LayerConfig> scan_layer(const DecoderConfig& c) {
  const DecoderScan& s = c.scan;
  const auto& [in, gate, x, b, read, step, out] = s.scales;
  return make_layer(LayerKind::selective_scan, {{"width", c.hidden_size},
                                                {"inner", s.inner},
                                                {"state", s.state},
                                                {"heads", s.heads},
                                                {"groups", s.groups},
                                                {"rank", s.rank},
                                                {"kernel", s.kernel},
                                                {"bias", s.bias},
                                                {"conv_bias", s.conv_bias},
                                                {"activation", hidden_activation(c.hidden_act)},
                                                {"norm", s.norm},
                                                {"norm_eps", c.rms_norm_eps},
                                                {"step_norm", s.step_norm},
                                                {"step_norm_eps", s.step_norm_eps},
                                                {"scale_in", in},
                                                {"scale_gate", gate},
                                                {"scale_x", x},
                                                {"scale_b", b},
                                                {"scale_c", read},
                                                {"scale_step", step},
                                                {"scale_out", out}});
}

Result<LayerConfig> conv_layer(const DecoderConfig& c) {
  return make_layer(LayerKind::short_conv,
                    {{"width", c.hidden_size}, {"kernel", c.conv.kernel}, {"bias", c.conv.bias}});
}

Result<LayerConfig> mlp_layer(const DecoderConfig& c) {
  return make_layer(LayerKind::swiglu, {{"width", c.hidden_size},
                                        {"inner", c.intermediate_size},
                                        {"bias", c.mlp_bias},
                                        {"activation", hidden_activation(c.hidden_act)},
                                        {"sub_norm", c.sub_norms},
                                        {"sub_norm_eps", c.rms_norm_eps}});
}

Result<LayerConfig> experts_layer(const DecoderConfig& c) {
  const DecoderExperts& e = c.experts;
  return make_layer(LayerKind::experts,
                    {{"width", c.hidden_size},
                     {"inner", e.inner},
                     {"experts", e.count},
                     {"chosen", e.chosen},
                     {"activation", hidden_activation(c.hidden_act)},
                     {"score", std::string(kRouterScores[static_cast<size_t>(e.score)])},
                     {"normalize", e.normalize},
                     {"scale", e.scale},
                     {"choice_bias", e.choice_bias},
                     {"groups", e.groups},
                     {"chosen_groups", e.chosen_groups},
                     {"shared_inner", e.shared_inner},
                     {"shared_gate", e.shared_gate},
                     {"bias", e.bias},
                     {"group_best", e.group_best},
                     {"router_bias", e.router_bias},
                     {"scale_inputs", e.scale_inputs},
                     {"limit", e.limit},
                     {"gate_scale", e.gate_scale},
                     {"up_offset", e.up_offset},
                     {"jitter", e.jitter}});
}

// The two projections of an MLP without a gate.
Result<LayerConfig> up_layer(const DecoderConfig& c) {
  return make_layer(LayerKind::dense, {{"in", c.hidden_size},
                                       {"out", c.intermediate_size},
                                       {"bias", c.mlp_bias},
                                       {"activation", hidden_activation(c.hidden_act)}});
}
Result<LayerConfig> down_layer(const DecoderConfig& c) {
  return make_layer(LayerKind::dense, {{"in", c.intermediate_size},
                                       {"out", c.hidden_size},
                                       {"bias", c.mlp_bias},
                                       {"activation", "linear"}});
}

Result<LayerConfig> part_layer(BlockPart part, const DecoderConfig& c, const DecoderLayer& own) {
  switch (part) {
    case BlockPart::attention_norm:
    case BlockPart::attention_post_norm:
    case BlockPart::mlp_norm:
    case BlockPart::mlp_post_norm: return norm_layer(c);
    case BlockPart::attention: return attention_layer(c, own);
    case BlockPart::scan: return scan_layer(c);
    case BlockPart::conv: return conv_layer(c);
    case BlockPart::mlp: return mlp_layer(c);
    case BlockPart::experts: return experts_layer(c);
    case BlockPart::up: return up_layer(c);
    case BlockPart::down: return down_layer(c);
    case BlockPart::sum: break;
  }
  return make_layer(LayerKind::binary, {{"function", "add"}});
}

// Puts the cells of block `b`: residuals of serial parts, or one graph of parallel ones.
Status put_block(const DecoderConfig& c, int64_t b, GridSpec& grid) {
  std::map<int64_t, std::vector<LayerConfig>> cells;
  GraphWiring wiring;
  for (BlockNode& node : block_nodes(c, b)) {
    LOOM_ASSIGN(LayerConfig layer, part_layer(node.part, c, c.layer(b)));
    cells[node.cell].push_back(std::move(layer));
    wiring.nodes.push_back(std::move(node.reads));
  }
  wiring.outputs = {{static_cast<int64_t>(wiring.nodes.size()) - 1, 0}};
  for (auto& [l, children] : cells) {
    Result<LayerConfig> layer =
        l == kParallelCell
            ? make_graph(wiring, std::move(children))
            : make_layer(LayerKind::residual, {{"scale", c.residual_scale}}, std::move(children));
    if (!layer.ok()) return layer.error();
    LOOM_TRY(grid.put({1 + b, 0, 0, l}, {std::move(*layer), {}}));
  }
  return {};
}

// Combinations that a configuration may name but no network has.
Status check_forms(const DecoderConfig& c) {
  const bool serial = c.residual == ResidualKind::serial;
  if (c.post_norms && (c.layer_norms || !serial))
    return unsupported("a decoder with norms after attention and MLP has RMSNorms there");
  if (!serial && (!c.pre_norms || c.residual_scale != 1))
    return unsupported(
        "a decoder with parallel attention and MLP has norms before them and no residual scale");
  if (c.experts.count > 0 && (!serial || c.sub_norms)) {
    return unsupported("a decoder with experts has them after attention, and no norms inside");
  }
  if (c.sub_norms && !c.gated_mlp)
    return unsupported("a decoder with norms before the last projections has an MLP with a gate");
  return {};
}

}  // namespace

Result<GridSpec> decoder_grid(const DecoderConfig& c) {
  LOOM_TRY(check_forms(c));
  const bool serial = c.residual == ResidualKind::serial;
  GridSpec grid(c.num_layers + 2, 1, 1, serial ? 2 : 3);
  const auto put = [&](const Coord& at, Result<LayerConfig> layer,
                       std::optional<Coord> shared = {}) -> Status {
    if (!layer.ok()) return layer.error();
    return grid.put(at, {std::move(*layer), shared});
  };
  LOOM_TRY(
      put({0, 0, 0, 0}, make_layer(LayerKind::embedding, {{"vocab", c.vocab_size},
                                                          {"width", c.hidden_size},
                                                          {"scale", c.embedding_scale},
                                                          {"positions", c.learned_positions}})));
  for (int64_t b = 0; b < c.num_layers; ++b) LOOM_TRY(put_block(c, b, grid));
  const int64_t last = c.num_layers + 1;
  LOOM_TRY(put({last, 0, 0, 0}, norm_layer(c)));
  auto head = make_layer(LayerKind::dense, {{"in", c.hidden_size},
                                            {"out", c.vocab_size},
                                            {"bias", c.head_bias},
                                            {"soft_cap", c.final_soft_cap},
                                            {"scale", c.logit_scale}});
  std::optional<Coord> tied;
  if (c.tie_word_embeddings) tied = Coord{0, 0, 0, 0};
  LOOM_TRY(put({last, 0, 0, 1}, std::move(head), tied));
  return grid;
}

Status check_decoder(const Network& network, const DecoderConfig& config,
                     const std::string& where) {
  const std::vector<GridNode>& cells = network.cells();
  const bool ids = takes_ids(cells.front().node.config) && network.vocab() >= config.vocab_size;
  const bool head = cells.back().at.z > cells.front().at.z;
  const bool out = network.output().last() == config.vocab_size;
  if (ids && head && out && !network.has_links()) return {};
  return bad_file("its network is not a decoder: it must take token ids and give vocab_size logits",
                  where);
}

namespace {

// Values of the public configurations (config.json) of these models.
struct NamedShape {
  std::string_view name;
  int64_t hidden, inner, layers, heads, kv_heads, vocab, positions;
  double theta;
  double rope_factor = 0;  // of the llama3 scaling; 0 means none
  bool tied = true;
  bool bias = false;  // of queries, keys and values
  double eps = 1e-5;
};

constexpr NamedShape kShapes[] = {
    {"smollm2-135m", 576, 1536, 30, 9, 3, 49152, 8192, 100000},
    {"smollm2-360m", 960, 2560, 32, 15, 5, 49152, 8192, 100000},
    {"qwen2.5-0.5b", 896, 4864, 24, 14, 2, 151936, 32768, 1000000, 0, true, true, 1e-6},
    {"llama-3.2-1b", 2048, 8192, 16, 32, 8, 128256, 131072, 500000, 32},
    {"smollm2-1.7b", 2048, 8192, 24, 32, 32, 49152, 8192, 130000},
    {"llama-3.2-3b", 3072, 8192, 28, 24, 8, 128256, 131072, 500000, 32},
    {"llama-3.1-8b", 4096, 14336, 32, 32, 8, 128256, 131072, 500000, 8, false},
    {"shakespeare", 192, 512, 8, 3, 1, 4096, 1024, 100000},
    {"tiny", 64, 160, 2, 4, 2, 256, 512, 10000}};

DecoderConfig config_of(const NamedShape& shape) {
  DecoderConfig c;
  c.architecture = shape.bias ? "Qwen2ForCausalLM" : "LlamaForCausalLM";
  c.model_type = shape.bias ? "qwen2" : "llama";
  c.hidden_size = shape.hidden;
  c.intermediate_size = shape.inner;
  c.num_layers = shape.layers;
  c.num_heads = shape.heads;
  c.num_kv_heads = shape.kv_heads;
  c.head_dim = shape.hidden / shape.heads;
  c.vocab_size = shape.vocab;
  c.max_positions = shape.positions;
  c.rms_norm_eps = shape.eps;
  c.tie_word_embeddings = shape.tied;
  c.attention_bias = shape.bias;
  c.rope_theta = shape.theta;
  if (shape.rope_factor > 0) {
    c.rope = RopeKind::llama3;
    c.rope_factor = shape.rope_factor;
    c.rope_low_freq_factor = 1;
    c.rope_high_freq_factor = 4;
    c.rope_original_max_positions = 8192;
  }
  return c;
}

}  // namespace

Result<DecoderConfig> shape_config(std::string_view name) {
  const std::string word = to_lower_ascii(name);
  std::vector<std::string> known;
  for (const NamedShape& shape : kShapes) {
    known.emplace_back(shape.name);
    if (shape.name == word) return config_of(shape);
  }
  return invalid(cat("unknown shape '", printable(name), "'; known are ", join(known, ", ")));
}

}  // namespace loom::core
