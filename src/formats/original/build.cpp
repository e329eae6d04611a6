// Converts layers of the original project to a network: links, residuals, the input shape, and the
// flat weights of each layer, split into its parameters; see reader.hpp.
#include <algorithm>
#include <map>

#include "base/numbers/checked.hpp"
#include "base/text.hpp"
#include "bridge/sample_size.hpp"
#include "formats/original/reader.hpp"
#include "layers/core/field_tables.hpp"

namespace loom::core {
namespace {

constexpr uint64_t kMaxWeights = uint64_t{1} << 40;  // of one layer

bool is(const Loom1Layer& layer, LayerKind kind) {
  return layer.config.def->kind == kind;
}

bool bare_residual(const Loom1Layer& layer) {
  return is(layer, LayerKind::residual) && layer.children.empty() && !layer.config.disabled;
}

// In the original a residual with nothing before it passes its input on.
void skip_residual(Loom1Reader& reader, Loom1Layer& layer) {
  reader.note(layer.location, "nothing comes before this Residual, so it passes its input on");
  layer.config.disabled = true;
}

void settle_children(Loom1Reader& reader, Loom1Layer& layer) {
  bool first = true;
  for (Loom1Layer& child : layer.children) {
    const bool branch = is(layer, LayerKind::parallel);
    if (branch && child.config.disabled)
      reader.note(child.location, "a disabled branch is the identity; the original ran it");
    if ((branch || first) && bare_residual(child)) skip_residual(reader, child);
    if (!child.config.disabled) first = false;
    settle_children(reader, child);
  }
}

std::optional<DType> common_dtype(const Loom1Layer& layer) {
  std::optional<DType> found;
  if (layer.config.def->params != nullptr) found = layer.dtype;
  for (const Loom1Layer& child : layer.children) {
    const std::optional<DType> one = common_dtype(child);
    if (one.has_value() && found.has_value() && *one != *found) return DType::f32;
    if (one.has_value()) found = one;
  }
  return found;
}

// ---- the shape of the input
// ----------------------------------------------------------------------

Shape of(std::initializer_list<int64_t> extents) {
  for (const int64_t e : extents) {
    if (e < 1) return {};
  }
  return Shape(extents);
}

int64_t steps(const Loom1Layer& layer) {
  return std::max<int64_t>(layer.record.seq_length, 1);
}

bool sees_time(const Loom1Layer& layer) {
  return is(layer, LayerKind::multi_head_attention) || is(layer, LayerKind::rnn) ||
         is(layer, LayerKind::lstm);
}

// The input shape of one sample for this layer; rank 0 if it does not define it.
Shape sample_of(const Loom1Layer& layer) {
  if (layer.config.disabled) return {};
  const Loom1Record& r = layer.record;
  const auto either = [](int64_t a, int64_t b) { return a > 0 ? a : b; };
  const int64_t c = r.input_channels, h = r.input_height, w = either(r.input_width, h);
  if (is(layer, LayerKind::dense) || is(layer, LayerKind::swiglu) || is(layer, LayerKind::kmeans))
    return of({h});
  if (is(layer, LayerKind::rms_norm)) return of({layer.config.integer(fields::rms_norm::kWidth)});
  if (is(layer, LayerKind::layer_norm))
    return of({layer.config.integer(fields::layer_norm::kWidth)});
  if (is(layer, LayerKind::multi_head_attention)) return of({steps(layer), r.d_model});
  if (sees_time(layer)) return of({steps(layer), h});
  if (is(layer, LayerKind::embedding)) return of({steps(layer)});
  if (is(layer, LayerKind::cnn1)) return of({c, h});
  if (is(layer, LayerKind::conv_transposed1)) return of({c, r.input_width});
  if (is(layer, LayerKind::cnn2) || is(layer, LayerKind::conv_transposed2)) return of({c, h, w});
  if (is(layer, LayerKind::cnn3) || is(layer, LayerKind::conv_transposed3))
    return of({c, either(r.input_depth, h), h, w});
  for (const Loom1Layer& child : layer.children) {
    const Shape shape = sample_of(child);
    if (shape.rank() > 0) return shape;
  }
  return {};
}

// The layers in the order they see the input, containers opened.
void flatten(const Loom1Layer& layer, std::vector<const Loom1Layer*>& out) {
  if (layer.config.disabled) return;
  if (!layer.config.def->container) out.push_back(&layer);
  for (const Loom1Layer& child : layer.children) flatten(child, out);
}

Result<Shape> sample_shape(const Loom1Reader& reader, const std::vector<Loom1Layer*>& cells) {
  Shape shape;
  std::vector<const Loom1Layer*> all;
  for (const Loom1Layer* cell : cells) {
    if (shape.rank() == 0) shape = sample_of(*cell);
    flatten(*cell, all);
  }
  if (shape.rank() == 0 || all.empty()) {
    return unsupported("no layer says how large the input is; give the shape of one sample",
                       reader.where());
  }
  if (shape.rank() > 1) return shape;
  // Later layers with a time axis define its length.
  const bool ids = is(*all[0], LayerKind::embedding);
  for (size_t i = 1; i < all.size(); ++i) {
    if (sees_time(*all[i])) return ids ? Shape{steps(*all[i])} : Shape{steps(*all[i]), shape[0]};
  }
  // So does a dense layer that takes all steps of an embedding at once.
  if (ids && all.size() > 1 && is(*all[1], LayerKind::dense) && all[0]->record.seq_length <= 0) {
    const int64_t in = all[1]->record.input_height, width = all[0]->record.embedding_dim;
    if (in > 0 && in % width == 0) return Shape{in / width};
  }
  return shape;
}

// ---- cells
// ---------------------------------------------------------------------------------------

Coord coord_of(const Loom1Layer& layer) {
  return {layer.record.z, layer.record.y, layer.record.x, layer.record.l};
}

Status add_link(Loom1Reader& reader, const Loom1Layer& layer, const GridSpec& spec, Cell& cell) {
  if (!layer.record.is_remote_link) return {};
  const Loom1Record& r = layer.record;
  const Coord from{r.target_z, r.target_y, r.target_x, r.target_l};
  const Result<int64_t> source = spec.index(from);
  if (!source.ok()) return reader.bad(layer, source.error().message);
  const bool feedback = *source >= *spec.index(coord_of(layer));
  cell.link = Link{from, feedback};
  reader.note(layer.location, cat("takes its input from ", from.str(),
                                  "; the original ignored the link outside its step mesh"));
  return {};
}

}  // namespace

LayerConfig whole_loom1_layer(const Loom1Layer& layer) {
  LayerConfig whole = layer.config;
  for (const Loom1Layer& child : layer.children) whole.children.push_back(whole_loom1_layer(child));
  return whole;
}

Result<NetworkSpec> assemble_loom1(Loom1Reader& reader, Loom1Grid& grid,
                                   const Loom1Options& options) {
  GridSpec spec(grid.depth, grid.rows, grid.cols, grid.layers_per_cell);
  std::vector<Loom1Layer*> order(static_cast<size_t>(spec.size()));
  for (Loom1Layer& layer : grid.layers) {
    LOOM_ASSIGN(const int64_t at, spec.index(coord_of(layer)));
    Loom1Layer*& location = order[static_cast<size_t>(at)];
    if (location != nullptr) {
      return reader.bad(layer, cat("is at ", coord_of(layer).str(), " like ", location->location));
    }
    location = &layer;
  }
  order.erase(std::remove(order.begin(), order.end(), nullptr), order.end());
  if (static_cast<int64_t>(order.size()) < spec.size()) {
    reader.note("layers", cat(spec.size() - static_cast<int64_t>(order.size()),
                              " cells have no layer; they are empty"));
  }
  bool first = true;
  for (Loom1Layer* layer : order) {
    settle_children(reader, *layer);
    if (bare_residual(*layer)) {
      if (first) {
        skip_residual(reader, *layer);
      } else {
        reader.note(layer->location,
                    "adds the input of the layer before it; the original passes its input on");
      }
    }
    if (!layer->config.disabled) first = false;
    Cell cell{whole_loom1_layer(*layer)};
    cell.dtype = common_dtype(*layer);
    LOOM_TRY(add_link(reader, *layer, spec, cell));
    LOOM_TRY(spec.put(coord_of(*layer), std::move(cell)));
  }
  Shape input = options.input;
  if (input.rank() == 0) {
    LOOM_ASSIGN(input, sample_shape(reader, order));
  }
  if (!sample_fits(input)) {
    return bad_file(cat("one sample of the input has more than ", kMaxSampleValues, " values"),
                    reader.where());
  }
  const Result<Network> whole = Network::finalize(spec, input.after(1));
  if (!whole.ok()) return bad_file(whole.error().message, reader.where());
  return NetworkSpec{std::move(spec), input};
}

// ---- weights
// -------------------------------------------------------------------------------------

Result<uint64_t> loom1_count(const Loom1Reader& reader, const Loom1Layer& layer,
                             const std::vector<ParamSpec>& specs) {
  uint64_t total = 0;
  for (const ParamSpec& spec : specs) {
    uint64_t count = 1;
    bool fits = true;
    for (int i = 0; i < spec.shape.rank(); ++i)
      fits = fits && checked_mul(count, static_cast<uint64_t>(spec.shape[i]), count);
    if (!fits || count > kMaxWeights || (total += count) > kMaxWeights)
      return reader.bad(layer, cat("has more than ", kMaxWeights, " weights"));
  }
  return total;
}

namespace {

// Flat weights of an LSTM: a block per gate, each Wih, Whh, b. Loom's layout: all gates of each
// together.
void spread_lstm(const std::vector<float>& flat, std::vector<Loom1Param>& to) {
  const size_t block = flat.size() / 4;
  for (size_t gate = 0; gate < 4; ++gate) {
    auto from = flat.begin() + static_cast<std::ptrdiff_t>(gate * block);
    for (Loom1Param& p : to) {
      const size_t part = p.values.size() / 4;
      std::copy_n(from, part, p.values.begin() + static_cast<std::ptrdiff_t>(gate * part));
      from += static_cast<std::ptrdiff_t>(part);
    }
  }
}

// [filters][channels][taps] to [channels][filters][taps].
void spread_transposed(const std::vector<float>& flat, size_t filters, size_t channels,
                       Loom1Param& to) {
  const size_t taps = flat.size() / (filters * channels);
  for (size_t f = 0; f < filters; ++f) {
    for (size_t c = 0; c < channels; ++c) {
      std::copy_n(flat.begin() + static_cast<std::ptrdiff_t>((f * channels + c) * taps), taps,
                  to.values.begin() + static_cast<std::ptrdiff_t>((c * filters + f) * taps));
    }
  }
}

bool is_transposed(const Loom1Layer& layer) {
  return is(layer, LayerKind::conv_transposed1) || is(layer, LayerKind::conv_transposed2) ||
         is(layer, LayerKind::conv_transposed3);
}

void spread(const Loom1Layer& layer, const std::vector<float>& flat, std::vector<Loom1Param>& to) {
  if (is(layer, LayerKind::lstm)) return spread_lstm(flat, to);
  if (is_transposed(layer)) {
    return spread_transposed(flat, static_cast<size_t>(layer.record.filters),
                             static_cast<size_t>(layer.record.input_channels), to[0]);
  }
  auto from = flat.begin();
  for (Loom1Param& p : to) {
    std::copy_n(from, p.values.size(), p.values.begin());
    from += static_cast<std::ptrdiff_t>(p.values.size());
  }
}

}  // namespace

Status read_loom1_weights(Loom1Reader& reader, const Loom1Layer& layer, const std::string& path,
                          const Loom1Weights& weights, std::vector<Loom1Param>& out) {
  for (size_t i = 0; i < layer.children.size(); ++i)
    LOOM_TRY(read_loom1_weights(reader, layer.children[i], cat(path, "/", i), weights, out));
  std::vector<ParamSpec> specs;
  if (layer.config.def->params != nullptr) layer.config.def->params(layer.config, specs);
  std::vector<float> flat;
  LOOM_ASSIGN(const bool there, weights(layer, specs, flat));
  if (!there || specs.empty()) return {};
  std::vector<Loom1Param> params;
  for (const ParamSpec& spec : specs) {
    params.push_back(
        {cat(path, "/", spec.name), std::vector<float>(static_cast<size_t>(spec.shape.count()))});
  }
  spread(layer, flat, params);
  const int64_t odd =
      std::count_if(flat.begin(), flat.end(), [](float v) { return !(v - v == 0.0f); });
  if (odd > 0) reader.note(layer.location, cat(odd, " weights are not finite"));
  for (Loom1Param& p : params) out.push_back(std::move(p));
  return {};
}

Result<Loom1Network> build_loom1(Loom1Reader& reader, Loom1Grid& grid, const Loom1Options& options,
                                 const Loom1Weights& weights) {
  LOOM_ASSIGN(NetworkSpec spec, assemble_loom1(reader, grid, options));
  Loom1Network made{std::move(spec), {}, {}};
  for (const Loom1Layer& layer : grid.layers) {
    LOOM_TRY(read_loom1_weights(reader, layer, coord_of(layer).str(), weights, made.params));
  }
  made.notes = std::move(reader.notes);
  return made;
}

const Loom1Param* Loom1Network::find(std::string_view path) const {
  for (const Loom1Param& p : params) {
    if (p.path == path) return &p;
  }
  return nullptr;
}

Status load_loom1(const Loom1Network& file, Network& network, DType dtype, ThreadPool& pool) {
  std::map<std::string_view, const Loom1Param*> values;
  for (const Loom1Param& p : file.params) values.emplace(p.path, &p);
  for (int i = 0; i < static_cast<int>(network.params().size()); ++i) {
    const Param& p = network.params()[static_cast<size_t>(i)];
    const auto at = values.find(p.path);
    if (at == values.end()) continue;
    const Loom1Param* from = at->second;
    if (static_cast<int64_t>(from->values.size()) != p.spec.shape.count())
      return invalid(cat("the file's ", p.path, " has ", from->values.size(), " values, the ",
                         "network's ", p.spec.shape.count()));
    const int64_t cols = p.spec.matrix() ? p.spec.shape[1] : 1;
    const auto rows = [&](int64_t first, int64_t count, float* out) -> Status {
      std::copy_n(from->values.begin() + first * cols, count * cols, out);
      return {};
    };
    // The original has one scale per tensor, so its values are reproduced.
    LOOM_TRY(network.load_param(i, p.dtype.value_or(dtype), rows, pool, ScaleScope::per_tensor));
  }
  return {};
}

}  // namespace loom::core
