#include "convert/network_decoder.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "bridge/network_json.hpp"
#include "families/family.hpp"
#include "formats/config/config.hpp"
#include "formats/config/text.hpp"
#include "grid/rope_table.hpp"
#include "io/files/file.hpp"
#include "layers/core/fields.hpp"
#include "llm/decoder.hpp"
#include "llm/decoder_role.hpp"

namespace loom::core {
namespace {

Error no_decoder(std::string_view what) {
  return make_error(Code::unsupported,
                    cat("its network is not a decoder of a language model: ", what));
}

double number(const LayerConfig& layer, std::string_view name) {
  const int field = field_index(layer, name);
  return field < 0 ? 0 : layer.real(field);
}
int64_t integer_field(const LayerConfig& layer, std::string_view name) {
  return static_cast<int64_t>(number(layer, name));
}
std::string words(const LayerConfig& layer, std::string_view name) {
  const int field = field_index(layer, name);
  return field < 0 ? std::string() : std::string(layer.text(field));
}

// The layer at a cell, if it is of that kind.
Result<const LayerConfig*> layer_at(const GridSpec& grid, const Coord& at, LayerKind kind) {
  const Cell* cell = grid.find(at);
  if (cell != nullptr && cell->layer.def->kind == kind) return &cell->layer;
  return no_decoder(cat("cell ", at.str(), cell == nullptr ? " is empty" : " is a ",
                        cell == nullptr ? "" : cell->layer.def->name, "; it must be a ",
                        layer_def(kind).name));
}

// Child 1 of the residual of a block.
Result<const LayerConfig*> inner_at(const GridSpec& grid, const Coord& at, LayerKind kind) {
  LOOM_ASSIGN(const LayerConfig* residual, layer_at(grid, at, LayerKind::residual));
  if (residual->children.size() >= 2 && residual->children[1].def->kind == kind)
    return &residual->children[1];
  return no_decoder(cat("cell ", at.str(), " must hold an RMSNorm and a ", layer_def(kind).name));
}

DecoderLayer own_of(const LayerConfig& attention) {
  DecoderLayer own;
  own.window = integer_field(attention, "window");
  own.rope = number(attention, "rope") != 0;
  return own;
}

void take_attention(const LayerConfig& a, DecoderConfig& c) {
  c.num_heads = integer_field(a, "heads");
  c.num_kv_heads = integer_field(a, "kv_heads");
  c.head_dim = integer_field(a, "head_dim");
  c.attention_bias = number(a, "bias") != 0;
  c.attention_out_bias = number(a, "out_bias") != 0;
  c.qk_norm = number(a, "qk_norm") != 0;
  c.sub_norms = number(a, "sub_norm") != 0;
  c.attention_scale = number(a, "scale");
  c.attention_soft_cap = number(a, "soft_cap");
  for (size_t i = 0; i < std::size(kQkNormForms); ++i) {
    if (words(a, "qk_norm_form") == kQkNormForms[i]) c.qk_norm_form = static_cast<QkNormForm>(i);
  }
  c.qk_norm_after_rope = number(a, "qk_norm_after_rope") != 0;
  c.clip_qkv = number(a, "clip");
  c.alibi = number(a, "alibi");
  c.alibi_scale = number(a, "alibi_scale");
  c.sinks = number(a, "sinks") != 0;
  c.rope_width = integer_field(a, "rope_width");
  c.rope_theta = number(a, "rope_theta");
  const std::string scaling = words(a, "rope_scaling");
  for (size_t i = 2; i < std::size(kRopeKinds); ++i)
    if (scaling == kRopeKinds[i]) c.rope = static_cast<RopeKind>(i);
  c.rope_factor = number(a, "rope_factor");
  c.rope_low_freq_factor = number(a, "rope_low_freq");
  c.rope_high_freq_factor = number(a, "rope_high_freq");
  c.rope_original_max_positions = integer_field(a, "rope_original");
  c.rope_attention = number(a, "rope_attention");
  c.rope_beta_fast = number(a, "rope_beta_fast");
  c.rope_beta_slow = number(a, "rope_beta_slow");
  c.rope_truncate = number(a, "rope_truncate") != 0;
  c.rope_short = rope_factors(words(a, "rope_short")).value_or(std::vector<double>());
  c.rope_long = rope_factors(words(a, "rope_long")).value_or(std::vector<double>());
}

void take_mlp(const LayerConfig& m, DecoderConfig& c) {
  c.intermediate_size = integer_field(m, "inner");
  c.mlp_bias = number(m, "bias") != 0;
  c.hidden_act = words(m, "activation");
  if (c.hidden_act == "gelu_erf") c.hidden_act = "gelu";
  if (c.hidden_act == "gelu_tanh") c.hidden_act = "gelu_pytorch_tanh";
}

// Reads the settings from the cells; the caller checks that their decoder equals this grid.
Result<DecoderConfig> read_cells(const GridSpec& grid, int64_t positions) {
  DecoderConfig c;
  c.max_positions = positions;
  c.num_layers = grid.depth() - 2;
  if (c.num_layers < 1 || grid.rows() != 1 || grid.cols() != 1 || grid.layers() != 2)
    return no_decoder(cat("its grid is ", grid.extents(), "; it must be blocks + 2 x 1 x 1 x 2"));
  LOOM_ASSIGN(const LayerConfig* table, layer_at(grid, {0, 0, 0, 0}, LayerKind::embedding));
  c.vocab_size = integer_field(*table, "vocab");
  c.hidden_size = integer_field(*table, "width");
  c.embedding_scale = number(*table, "scale");
  for (int64_t b = 0; b < c.num_layers; ++b) {
    LOOM_ASSIGN(const LayerConfig* attention,
                inner_at(grid, {1 + b, 0, 0, 0}, LayerKind::multi_head_attention));
    LOOM_ASSIGN(const LayerConfig* mlp, inner_at(grid, {1 + b, 0, 0, 1}, LayerKind::swiglu));
    if (b == 0) take_attention(*attention, c);
    if (b == 0) take_mlp(*mlp, c);
    c.layers.push_back(own_of(*attention));
  }
  const LayerConfig& block = grid.find({1, 0, 0, 0})->layer;
  c.post_norms = block.children.size() == 3;
  c.residual_scale = number(block, "scale");
  const Coord norm_at{grid.depth() - 1, 0, 0, 0}, head_at{grid.depth() - 1, 0, 0, 1};
  LOOM_ASSIGN(const LayerConfig* norm, layer_at(grid, norm_at, LayerKind::rms_norm));
  c.rms_norm_eps = number(*norm, "eps");
  LOOM_ASSIGN(const LayerConfig* head, layer_at(grid, head_at, LayerKind::dense));
  c.final_soft_cap = number(*head, "soft_cap");
  c.logit_scale = number(*head, "scale");
  c.tie_word_embeddings = grid.find(head_at)->shared_with.has_value();
  return c;
}

void set_default(LayerConfig& layer, std::string_view name) {
  const int index = field_index(layer, name);
  if (index < 0) return;
  const auto field = static_cast<size_t>(index);
  layer.values[field] = FieldValue(layer.def->fields[field].default_number);
}

// Clears fields of absent features.
void drop_idle_fields(LayerConfig& layer) {
  const bool attention = layer.def->kind == LayerKind::multi_head_attention;
  if (attention || layer.def->kind == LayerKind::swiglu) {
    if (number(layer, "sub_norm") == 0) set_default(layer, "sub_norm_eps");
  }
  if (attention && number(layer, "qk_norm") == 0) set_default(layer, "qk_norm_eps");
  if (attention && words(layer, "rope_scaling").empty()) {
    for (const char* name : {"rope_factor", "rope_low_freq", "rope_high_freq", "rope_original"})
      set_default(layer, name);
  }
  for (LayerConfig& child : layer.children) drop_idle_fields(child);
}

// The grid without cell number types, which do not change the function.
Result<GridSpec> plain_grid(const GridSpec& grid) {
  GridSpec plain(grid.depth(), grid.rows(), grid.cols(), grid.layers());
  for (int64_t i = 0; i < grid.size(); ++i) {
    if (grid.cell(i) == nullptr) continue;
    Cell cell = *grid.cell(i);
    cell.dtype.reset();
    drop_idle_fields(cell.layer);
    LOOM_TRY(plain.put(grid.coord(i), std::move(cell)));
  }
  return plain;
}

bool same_field(const LayerConfig& a, const LayerConfig& b, size_t field) {
  const auto i = static_cast<int>(field);
  const FieldType type = a.def->fields[field].type;
  if (type == FieldType::text) return a.text(i) == b.text(i);
  return type == FieldType::list ? a.list(i) == b.list(i) : a.real(i) == b.real(i);
}

// Lists differences, as "soft_cap of MultiHeadAttention", children included.
void add_differences(const LayerConfig& a, const LayerConfig& b, std::vector<std::string>& all) {
  if (a.def != b.def || a.disabled != b.disabled || a.children.size() != b.children.size()) {
    all.push_back(cat("the layers of ", a.def->name));
    return;
  }
  for (size_t i = 0; i < a.values.size(); ++i)
    if (!same_field(a, b, i)) all.push_back(cat(a.def->fields[i].name, " of ", a.def->name));
  for (size_t i = 0; i < a.children.size(); ++i) add_differences(a.children[i], b.children[i], all);
}

std::vector<std::string> differences(const GridSpec& a, const GridSpec& b) {
  std::vector<std::string> all;
  for (int64_t i = 0; i < a.size(); ++i) {
    const Cell *mine = a.cell(i), *theirs = b.find(a.coord(i));
    if (mine == nullptr && theirs == nullptr) continue;
    const std::string at = cat(" in cell ", a.coord(i).str());
    if (mine == nullptr || theirs == nullptr) {
      all.push_back(cat("the layer", at));
      continue;
    }
    const size_t before = all.size();
    add_differences(mine->layer, theirs->layer, all);
    if (mine->link.has_value()) all.emplace_back("the link");
    if (mine->shared_with != theirs->shared_with) all.emplace_back("shared_with");
    if (!mine->frozen.empty()) all.emplace_back("frozen");
    for (size_t n = before; n < all.size(); ++n) all[n] += at;
  }
  return all;
}

// The id of a special token, by its text; -1 if there is none.
int64_t special_id(const TokenizerSpec& tokenizer, const std::string& text) {
  for (const text::AddedTokenSpec& token : tokenizer.added)
    if (!text.empty() && token.content == text) return token.id;
  return -1;
}

// The end tokens of a reply: from the folder's generation settings, or from the tokenizer.
Status take_tokens(const std::string& folder, ModelSource& source) {
  if (!folder.empty()) {
    LOOM_ASSIGN(source.generation_json, read_if_there(folder + "/generation_config.json"));
  }
  LOOM_ASSIGN(const TokenizerSpec tokenizer,
              parse_tokenizer_json(source.tokenizer_json, source.tokenizer_where));
  source.config.bos_token_id = special_id(tokenizer, source.bos);
  const int64_t eos = special_id(tokenizer, source.eos);
  if (eos >= 0) source.config.eos_token_ids.push_back(eos);
  source.config_json = hf_config_json(source.config);
  LOOM_ASSIGN(source.config,
              parse_hf_config(source.config_json, source.generation_json, source.path));
  return {};
}

// Which biases of a decoder have a non-zero value.
struct Biases {
  bool qkv = false, out = false, mlp = false;
};

Result<bool> any_value(const NetworkSource& source, const Param& param) {
  LOOM_ASSIGN(const SourceWeight weight, source.weight(param));
  std::vector<float> values(static_cast<size_t>(param.spec.shape.count()));
  LOOM_TRY(weight.rows(0, param.spec.shape.count(), values.data()));
  return std::any_of(values.begin(), values.end(), [](float v) { return v != 0.0f; });
}

Result<Biases> biases_of(const NetworkSource& source, const DecoderConfig& config) {
  using enum DecoderRole;
  Biases found;
  LOOM_ASSIGN(const Network network, Network::finalize(source.spec.grid, Shape{1, 1}));
  for (const Param& param : network.params()) {
    const DecoderRole role = decoder_piece(param, config).role;
    const bool qkv = role == q_bias || role == k_bias || role == v_bias;
    const bool mlp = role == gate_bias || role == up_bias || role == down_bias;
    if (!qkv && !mlp && role != o_bias) continue;
    LOOM_ASSIGN(const bool any, any_value(source, param));
    (qkv ? found.qkv : mlp ? found.mlp : found.out) |= any;
  }
  return found;
}

void clear_flag(LayerConfig& layer, std::string_view name) {
  const int field = field_index(layer, name);
  if (field >= 0) layer.values[static_cast<size_t>(field)] = FieldValue(0);
}

// Files of the original project have zero biases if their source model had none, and most classes
// cannot express biases.
Status drop_zero_biases(const DecoderConfig& config, NetworkSource& source) {
  LOOM_ASSIGN(const Biases kept, biases_of(source, config));
  GridSpec grid = source.spec.grid;
  for (int64_t i = 0; i < grid.size(); ++i) {
    if (grid.cell(i) == nullptr) continue;
    Cell cell = *grid.cell(i);
    for (LayerConfig& child : cell.layer.children) {
      const bool attention = child.def->kind == LayerKind::multi_head_attention;
      const bool mlp = child.def->kind == LayerKind::swiglu;
      if (attention && !kept.qkv) clear_flag(child, "bias");
      if (attention && !kept.out) clear_flag(child, "out_bias");
      if (mlp && !kept.mlp) clear_flag(child, "bias");
    }
    LOOM_TRY(grid.put(grid.coord(i), std::move(cell)));
  }
  source.spec.grid = std::move(grid);
  return {};
}

// A network read as a decoder, with the parameter paths of a decoder.
class NetworkDecoder : public ModelSource {
 public:
  explicit NetworkDecoder(std::unique_ptr<NetworkSource> network) : network_(std::move(network)) {
    path = network_->path;
  }
  Result<SourceWeight> weight(const Param& param) const override { return network_->weight(param); }

 private:
  std::unique_ptr<NetworkSource> network_;
};

}  // namespace

Result<DecoderConfig> decoder_config_of(const GridSpec& grid, int64_t positions) {
  LOOM_ASSIGN(DecoderConfig c, read_cells(grid, positions));
  LOOM_ASSIGN(const GridSpec want, plain_grid(grid));
  std::vector<std::string> fewest;
  std::string nearest, why;  // why: the first class's error
  for (const DecoderFamily* family : network_families()) {
    const std::string name(family->hf_class);
    c.architecture = name;
    c.model_type = family->model_type;
    const Result<DecoderConfig> back = parse_hf_config(hf_config_json(c), "", name);
    const Result<GridSpec> again = back.ok() ? decoder_grid(*back) : Result<GridSpec>(back.error());
    if (!again.ok()) {
      if (why.empty()) why = again.error().message;
      continue;
    }
    LOOM_ASSIGN(const GridSpec made, plain_grid(*again));
    std::vector<std::string> differ = differences(want, made);
    if (differ.empty()) return *back;
    if (!nearest.empty() && differ.size() >= fewest.size()) continue;
    fewest = std::move(differ);
    nearest = name;
  }
  return no_decoder(nearest.empty() ? cat("no class of decoders has such cells: ", why)
                                    : cat("no class of decoders has this ", fewest[0],
                                          "; the nearest is ", nearest));
}

Result<std::unique_ptr<ModelSource>> decoder_of_network(std::unique_ptr<NetworkSource> network,
                                                        const std::string& text,
                                                        int64_t positions) {
  // Checks the shape first: roles mean nothing in another network.
  const Result<DecoderConfig> cells = read_cells(network->spec.grid, positions);
  if (cells.ok()) LOOM_TRY(drop_zero_biases(*cells, *network));
  Result<DecoderConfig> config = decoder_config_of(network->spec.grid, positions);
  if (!config.ok()) {
    Error error = config.error();
    error.where = network->path;
    return error;
  }
  auto source = std::make_unique<NetworkDecoder>(std::move(network));
  source->config = std::move(*config);
  if (is_directory(text)) {
    LOOM_TRY(read_hf_text(text, *source));
  } else {
    source->tokenizer_where = text;
    LOOM_ASSIGN(source->tokenizer_json, read_file(text));
  }
  if (source->tokenizer_json.empty())
    return make_error(Code::not_found, "holds no tokenizer.json", text);
  LOOM_TRY(take_tokens(is_directory(text) ? text : std::string(), *source));
  return std::unique_ptr<ModelSource>(std::move(source));
}

}  // namespace loom::core
