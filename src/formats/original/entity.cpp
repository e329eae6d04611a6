// ".entity" files of version 1 as networks: maps blobs to the weights of a layer, and a
// transformer's layers to a decoder; see original.hpp. The decoder's cells and paths are those of
// src/llm/decoder.hpp.
#include <algorithm>

#include "base/text.hpp"
#include "bridge/sample_size.hpp"
#include "dtype/codecs/loom1_codes.hpp"
#include "formats/original/blobs.hpp"

namespace loom::core {
namespace {

struct Keyed {
  std::string_view param;
  int key;
};
constexpr Keyed kQ4Keys[] = {{"q", 200},    {"k", 201},  {"v", 202},   {"o", 203},
                             {"gate", 100}, {"up", 101}, {"down", 102}};

struct Transformer {
  bool there = false, tied = false, final_norm = false;
  int64_t hidden = 0, vocab = 0, layers = 0;
  double eps = 0, rope_base = 0;
  std::string architecture, gate;
};

class EntityReader {
 public:
  EntityReader(Loom1Entity file, const std::string& where)
      : file_(std::move(file)), reader_(where, static_cast<int64_t>(kLoom1EntityStart)) {}
  Result<Loom1Network> read(const Loom1Options& options);

 private:
  Status check_header() const;
  Status read_transformer();
  Status check_record(const Loom1Layer& layer);
  Result<bool> weights(const Loom1Layer& layer, const std::vector<ParamSpec>& specs,
                       std::vector<float>& out);
  Status matrices(const Loom1Layer& layer, const std::vector<ParamSpec>& specs,
                  std::vector<float>& out);
  Status biases(const Loom1Layer& layer, uint64_t count, std::vector<float>& out);
  Status head_norm(const Loom1Layer& layer, const std::string& path, uint64_t width,
                   std::vector<float>& out);
  Result<Loom1Network> decoder(Loom1Grid& grid, const Loom1Options& options);
  Result<GridSpec> decoder_spec(Loom1Grid& grid);
  Status global(const std::string& name, const std::string& path, int64_t count,
                std::vector<Loom1Param>& out);

  Loom1Entity file_;
  Loom1Reader reader_;
  Transformer transformer_;
};

Status EntityReader::check_header() const {
  const JsonValue& header = file_.header();
  for (const auto& [key, value] : header.members()) {
    if (key != "format_version" && key != "network" && key != "transformer" && key != "blobs") {
      return reader_.bad(value, printable(key),
                         "unknown key; a header has format_version, network, transformer, blobs");
    }
  }
  const JsonValue* version = header.find("format_version");
  if (version != nullptr && (!version->is_int() || *version->as_int("") != 1))
    return reader_.bad(*version, "format_version", cat("expected 1, found ", version->describe()));
  if (header.find("network") == nullptr)
    return reader_.bad(header, "", "\"network\" is required, but absent");
  return {};
}

Status EntityReader::read_transformer() {
  const JsonValue* value = file_.header().find("transformer");
  if (value == nullptr || value->is_null()) return {};
  Transformer& t = transformer_;
  t.there = true;
  if (!value->is_object())
    return reader_.bad(*value, "transformer", cat("expected an object, found ", value->describe()));
  const JsonValue none = JsonValue::object();
  const JsonValue* dims = value->find("dims") != nullptr ? value->find("dims") : &none;
  const auto json_integer = [&](const JsonValue& from, const char* key) {
    const JsonValue* item = from.find(key);
    const Result<int64_t> number = item != nullptr ? item->as_int("") : Result<int64_t>(int64_t{0});
    return number.ok() ? *number : int64_t{-1};
  };
  const auto real = [&](const char* key) {
    const JsonValue* item = dims->find(key);
    const Result<double> number = item != nullptr ? item->as_double("") : Result<double>(0.0);
    return number.ok() ? *number : 0.0;
  };
  const auto flag = [&](const char* key) {
    const JsonValue* item = value->find(key);
    return item != nullptr && item->is_bool() && *item->as_bool("");
  };
  t.hidden = json_integer(*value, "hidden_size");
  t.vocab = json_integer(*value, "vocab_size");
  t.layers = json_integer(*dims, "num_layers");
  t.tied = flag("lm_head_tied");
  t.final_norm = flag("has_final_norm");
  t.eps = real("rms_norm_eps");
  t.rope_base = real("rope_freq_base");
  if (const JsonValue* name = value->find("architecture")) t.architecture = name->text();
  if (const JsonValue* name = dims->find("activation")) t.gate = to_lower_ascii(name->text());
  if (t.gate == "silu" || t.gate == "swish") t.gate.clear();
  constexpr int64_t kMax = int64_t{1} << 24, kMaxLayers = 1 << 16;
  if (t.hidden < 1 || t.hidden > kMax || t.vocab < 1 || t.vocab > kMax || t.layers < 1 ||
      t.layers > kMaxLayers) {
    return reader_.bad(*value, "transformer",
                       cat("hidden_size, vocab_size and dims.num_layers must be integers from "
                           "1 to ",
                           kMax));
  }
  if (t.architecture == "llama_style_decoder" && (t.gate.empty() || t.gate == "relu2")) return {};
  Error error = reader_.bad(
      *value, "transformer",
      cat("architecture '", printable(t.architecture), "' with activation '", printable(t.gate),
          "' is not known; llama_style_decoder with silu "
          "or relu2 is"));
  error.code = Code::unsupported;
  return error;
}

// ---- weights of a layer
// --------------------------------------------------------------------------

Status EntityReader::head_norm(const Loom1Layer& layer, const std::string& path, uint64_t width,
                               std::vector<float>& out) {
  const Loom1Blob* blob = file_.take(path);
  if (blob == nullptr) return reader_.bad(layer, "has one of q_norm and k_norm, not both");
  const uint64_t heads = blob->length / 4 / std::max<uint64_t>(width, 1);
  std::vector<float> all;
  LOOM_TRY(file_.plain(*blob, std::max<uint64_t>(heads, 1) * width, all));
  for (size_t i = width; i < all.size(); ++i) {
    if (all[i] != all[i % width])
      return reader_.lacking(layer, "the norms of q or k differ from head to head");
  }
  out.insert(out.end(), all.begin(), all.begin() + static_cast<std::ptrdiff_t>(width));
  return {};
}

Status EntityReader::biases(const Loom1Layer& layer, uint64_t count, std::vector<float>& out) {
  if (count == 0) return {};
  if (const Loom1Blob* blob = file_.take(layer.path + ".biases"))
    return file_.plain(*blob, count, out);
  reader_.note(layer.location,
               "no biases in the file, taken as 0 (the original drops them from INT4 files)");
  out.resize(out.size() + count);
  return {};
}

// One matrix at a time, in Q4_0 or BitNet, and the biases in one blob.
Status EntityReader::matrices(const Loom1Layer& layer, const std::vector<ParamSpec>& specs,
                              std::vector<float>& out) {
  uint64_t offset = 0, rest = 0;
  if (!specs[0].matrix()) return reader_.bad(layer, "no blob holds its weights");
  for (const ParamSpec& spec : specs) {
    const auto count = static_cast<uint64_t>(spec.shape.count());
    if (!spec.matrix()) {
      if (!spec.name.ends_with("_norm")) rest += count;
      continue;
    }
    const auto* key = std::find_if(std::begin(kQ4Keys), std::end(kQ4Keys),
                                   [&](const Keyed& k) { return k.param == spec.name; });
    const Loom1Blob* blob = nullptr;
    if (key != std::end(kQ4Keys)) blob = file_.take(cat(layer.path, ".q4_0.", key->key));
    const Loom1Blob* ternary =
        file_.take(cat(layer.path, ".bitnet_ternary.", uint64_t{10000} + offset));
    if ((blob == nullptr) == (ternary == nullptr)) {
      return reader_.bad(layer, cat(blob == nullptr ? "no blob holds " : "two blobs hold ",
                                    spec.name, " ", spec.shape.str()));
    }
    if (blob != nullptr) LOOM_TRY(file_.q4_0(*blob, count, out));
    if (ternary != nullptr) LOOM_TRY(file_.bitnet(*ternary, spec.shape, offset, out));
    offset += count;
  }
  return biases(layer, rest, out);
}

Result<bool> EntityReader::weights(const Loom1Layer& layer, const std::vector<ParamSpec>& specs,
                                   std::vector<float>& out) {
  LOOM_ASSIGN(const uint64_t total, loom1_count(reader_, layer, specs));
  if (total == 0) return false;
  uint64_t norms = 0;
  for (const ParamSpec& spec : specs) {
    if (spec.name.ends_with("_norm")) norms += static_cast<uint64_t>(spec.shape.count());
  }
  if (const Loom1Blob* blob = file_.take(layer.path)) {
    LOOM_TRY(file_.plain(*blob, total - norms, out));
    if (blob->native && blob->scale == 1.0 && loom1_scaled(*parse_dtype(blob->dtype))) {
      reader_.note(layer.location,
                   "scale is 1.0, which the original also writes when it had not computed one: "
                   "then all weights are too large by one factor, which the file does not tell");
    }
  } else {
    LOOM_TRY(matrices(layer, specs, out));
  }
  for (const ParamSpec& spec : specs) {
    const auto width = static_cast<uint64_t>(spec.shape.count());
    if (spec.name == "sub_norm") {
      LOOM_TRY(file_.plain(*file_.take(layer.path + ".inner_norm"), width, out));
    } else if (spec.name.ends_with("_norm")) {
      LOOM_TRY(head_norm(layer, cat(layer.path, ".", spec.name), width, out));
    }
  }
  return true;
}

// Checks fields that records must not have, and the number types of blobs.
Status EntityReader::check_record(const Loom1Layer& layer) {
  if (layer.record.weights != nullptr)
    return reader_.bad(layer, "weights are in the header; an entity holds them in blobs");
  const bool inner = layer.config.def->kind == LayerKind::multi_head_attention ||
                     layer.config.def->kind == LayerKind::swiglu;
  if (!inner && file_.has(layer.path + ".inner_norm"))
    return reader_.lacking(layer, "inner_norm, a norm inside a layer that has none in Loom");
  return {};
}

// ---- a transformer
// -------------------------------------------------------------------------------

Status EntityReader::global(const std::string& name, const std::string& path, int64_t count,
                            std::vector<Loom1Param>& out) {
  const Loom1Blob* blob = file_.take(name);
  if (blob == nullptr) return bad_file(cat("no blob \"", name, "\""), reader_.where());
  Loom1Param param{path, {}};
  LOOM_TRY(file_.plain(*blob, static_cast<uint64_t>(count), param.values));
  out.push_back(std::move(param));
  return {};
}

// Four layers of the file are one block: norm, attention, norm, SwiGLU.
Result<GridSpec> EntityReader::decoder_spec(Loom1Grid& grid) {
  constexpr LayerKind kSlots[] = {LayerKind::rms_norm, LayerKind::multi_head_attention,
                                  LayerKind::rms_norm, LayerKind::swiglu};
  const Transformer& t = transformer_;
  if (grid.layers.size() != static_cast<size_t>(t.layers) * 4) {
    return bad_file(cat(grid.layers.size(), " layers do not make ", t.layers, " blocks of four"),
                    reader_.where());
  }
  GridSpec spec(t.layers + 2, 1, 1, 2);
  const auto put = [&](const Coord& at, Result<LayerConfig> layer,
                       std::optional<Coord> shared = {}) -> Status {
    if (!layer.ok()) return layer.error();
    return spec.put(at, {std::move(*layer), shared});
  };
  LOOM_TRY(put({0, 0, 0, 0},
               make_layer(LayerKind::embedding, {{"vocab", t.vocab}, {"width", t.hidden}})));
  for (size_t i = 0; i < grid.layers.size(); i += 2) {
    for (size_t j = i; j < i + 2; ++j) {
      if (grid.layers[j].config.def->kind == kSlots[j % 4] && !grid.layers[j].config.disabled)
        continue;
      return reader_.lacking(grid.layers[j],
                             "a decoder's blocks are RMSNorm, MultiHeadAttention, RMSNorm, SwiGLU");
    }
    std::vector<LayerConfig> children = {grid.layers[i].config, grid.layers[i + 1].config};
    const auto block = static_cast<int64_t>(i / 4);
    LOOM_TRY(put({1 + block, 0, 0, static_cast<int64_t>(i % 4 / 2)},
                 make_layer(LayerKind::residual, {}, std::move(children))));
  }
  const double eps = t.eps > 0 ? t.eps : 1e-6;
  if (t.final_norm) {
    LOOM_TRY(put({t.layers + 1, 0, 0, 0},
                 make_layer(LayerKind::rms_norm, {{"width", t.hidden}, {"eps", eps}})));
  }
  LOOM_TRY(put({t.layers + 1, 0, 0, 1},
               make_layer(LayerKind::dense, {{"in", t.hidden}, {"out", t.vocab}, {"bias", false}}),
               t.tied ? std::optional<Coord>(Coord{}) : std::nullopt));
  return spec;
}

Result<Loom1Network> EntityReader::decoder(Loom1Grid& grid, const Loom1Options& options) {
  LOOM_ASSIGN(GridSpec spec, decoder_spec(grid));
  const Shape input = options.input.rank() > 0
                          ? options.input
                          : Shape{std::max<int64_t>(1, grid.layers[1].record.seq_length)};
  if (!sample_fits(input)) {
    return bad_file(cat("one sample of the input has more than ", kMaxSampleValues, " values"),
                    reader_.where());
  }
  const Result<Network> whole = Network::finalize(spec, input.after(1));
  if (!whole.ok()) return bad_file(whole.error().message, reader_.where());
  Loom1Network made{{std::move(spec), input}, {}, {}};
  const auto source = [&](const Loom1Layer& layer, const std::vector<ParamSpec>& specs,
                          std::vector<float>& out) { return weights(layer, specs, out); };
  for (size_t i = 0; i < grid.layers.size(); ++i) {
    const std::string path = cat("(", 1 + i / 4, ", 0, 0, ", i % 4 / 2, ")/", i % 2);
    LOOM_TRY(read_loom1_weights(reader_, grid.layers[i], path, source, made.params));
  }
  const Transformer& t = transformer_;
  const std::string last = cat("(", t.layers + 1, ", 0, 0, ");
  LOOM_TRY(
      global("transformer.embeddings", "(0, 0, 0, 0)/weight", t.vocab * t.hidden, made.params));
  if (t.final_norm)
    LOOM_TRY(global("transformer.final_norm", last + "0)/gamma", t.hidden, made.params));
  if (!t.tied)
    LOOM_TRY(global("transformer.lm_head", last + "1)/weight", t.vocab * t.hidden, made.params));
  if (t.eps <= 0) reader_.note("transformer", "rms_norm_eps absent, taken as 1e-6");
  made.notes = std::move(reader_.notes);
  return made;
}

Result<Loom1Network> EntityReader::read(const Loom1Options& options) {
  LOOM_TRY(check_header());
  LOOM_TRY(read_transformer());
  reader_.extras = [&](const std::string& path) {
    Loom1Extras extras;
    extras.qk_norm = file_.has(path + ".q_norm") || file_.has(path + ".k_norm");
    extras.inner_norm = file_.has(path + ".inner_norm");
    extras.norm_eps = transformer_.eps;
    extras.rope_freq_base = transformer_.rope_base;
    extras.gate = transformer_.gate;
    return extras;
  };
  LOOM_ASSIGN(Loom1Grid grid, reader_.grid(*file_.header().find("network")));
  const auto resolve_types = [&](auto& self, Loom1Layer& layer) -> Status {
    LOOM_TRY(check_record(layer));
    if (file_.has_below(layer.path + ".q4_0.")) layer.dtype = DType::f32;
    if (file_.has_below(layer.path + ".bitnet_ternary.")) layer.dtype = DType::ternary;
    for (Loom1Layer& child : layer.children) LOOM_TRY(self(self, child));
    return {};
  };
  for (Loom1Layer& layer : grid.layers) LOOM_TRY(resolve_types(resolve_types, layer));
  const auto source = [&](const Loom1Layer& layer, const std::vector<ParamSpec>& specs,
                          std::vector<float>& out) { return weights(layer, specs, out); };
  Result<Loom1Network> made =
      transformer_.there ? decoder(grid, options) : build_loom1(reader_, grid, options, source);
  if (!made.ok()) return made;
  LOOM_TRY(file_.check_all_taken());
  return made;
}

}  // namespace

Result<Loom1Network> parse_loom1_entity(std::span<const std::byte> bytes, const std::string& where,
                                        const Loom1Options& options) {
  LOOM_ASSIGN(Loom1Entity file, Loom1Entity::parse(bytes, where));
  return EntityReader(std::move(file), where).read(options);
}

}  // namespace loom::core
