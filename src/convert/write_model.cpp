// Writing a model in another format: see convert.hpp.
#include <algorithm>
#include <deque>

#include "base/text.hpp"
#include "bridge/network_checkpoint.hpp"
#include "bridge/network_json.hpp"
#include "convert/convert.hpp"
#include "formats/onnx/export.hpp"
#include "io/npy_write.hpp"
#include "io/safetensors_write.hpp"
#include "llm/decoder.hpp"
#include "llm/entity_model.hpp"
#include "llm/gguf_export.hpp"
#include "llm/hf_export.hpp"
#include "train_io/arrays_source.hpp"
#include "train_io/training_parts.hpp"

namespace loom::core {
namespace {

// Does `text` fit `pattern`, where * stands for any text? Linear in the product of their lengths.
bool fits(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

// The type that the options give a matrix; unset: they say nothing.
std::optional<DType> ruled(const Param& param, const ConvertOptions& options) {
  for (const ConvertRule& rule : options.rules) {
    if (fits(rule.pattern, param.path)) return rule.dtype;
  }
  return {};
}

PackPolicy policy_of(const ConvertOptions& options) {
  PackPolicy policy;
  policy.report = options.report;
  policy.adjust = options.adjust;
  if (options.per_tensor) policy.scope = [](const Param&) { return ScaleScope::per_tensor; };
  return policy;
}

Status write_decoder_entity(const std::string& path, const ModelSource& source,
                            const ConvertOptions& options, ThreadPool& pool) {
  SaveModelOptions save;
  save.policy = policy_of(options);
  save.policy.dtype = [&](const Param& param, DType stored) {
    if (const std::optional<DType> dtype = ruled(param, options)) return *dtype;
    return options.dtype ? decoder_dtype(param, source.config, *options.dtype) : stored;
  };
  save.dtype = options.dtype;
  save.progress.report = options.progress;
  return save_model(path, source, save, pool);
}

PackPolicy network_policy(const ConvertOptions& options) {
  PackPolicy policy = policy_of(options);
  policy.dtype = [&](const Param& param, DType stored) {
    if (const std::optional<DType> dtype = ruled(param, options)) return *dtype;
    return options.dtype.value_or(stored);
  };
  return policy;
}

Status write_network_entity(const FileRef& path, const NetworkSource& source,
                            const ConvertOptions& options, ThreadPool& pool) {
  SaveNetworkOptions save;
  save.policy = network_policy(options);
  save.progress.report = options.progress;
  return save_network(path, source, save, pool);
}

// The parameters of a network as f32, one at a time in memory.
class Unpacker {
 public:
  static Result<Unpacker> create(const NetworkSource& source, const ConvertOptions& options) {
    LOOM_ASSIGN(Network network, Network::finalize(source.spec.grid, source.spec.input.after(1)));
    return Unpacker(source, options, std::move(network));
  }
  const std::vector<Param>& params() const { return network_.params(); }
  // Good until the next call.
  Result<std::span<const std::byte>> values(size_t index) {
    const Param& param = params()[index];
    LOOM_ASSIGN(const SourceWeight weight, source_->weight(param));
    values_.resize(static_cast<size_t>(param.spec.shape.count()));
    const int64_t rows = param.spec.matrix() ? param.spec.shape[0] : param.spec.shape.count();
    LOOM_TRY(weight.rows(0, rows, values_.data()));
    if (weight.release) weight.release();
    done_ += values_.size() * sizeof(float);
    const uint64_t total = static_cast<uint64_t>(network_.param_count()) * sizeof(float);
    if (options_->progress && !options_->progress(std::min(done_, total), total))
      return make_error(Code::cancelled, "writing was stopped");
    return std::as_bytes(std::span(values_));
  }

 private:
  Unpacker(const WeightSource& source, const ConvertOptions& options, Network network)
      : source_(&source), options_(&options), network_(std::move(network)) {}

  const WeightSource* source_;
  const ConvertOptions* options_;
  Network network_;
  std::vector<float> values_;
  uint64_t done_ = 0;  // bytes
};

std::vector<int64_t> extents_of(const Shape& shape) {
  std::vector<int64_t> extents;
  for (int axis = 0; axis < shape.rank(); ++axis) extents.push_back(shape[axis]);
  return extents;
}

// Blobs of `folder` as tensors without it; their bytes are kept in `memory`.
Status add_blobs(const NetworkSource& source, std::string_view folder, bool strip,
                 std::deque<std::string>& memory, std::vector<SafeOutput>& tensors) {
  for (const EntityOutput& blob : source.blobs) {
    if (!blob.path.starts_with(folder)) continue;
    LOOM_ASSIGN(const std::span<const std::byte> bytes, blob.data());
    memory.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    SafeOutput out;
    out.name = strip ? blob.path.substr(folder.size()) : blob.path;
    out.dtype = blob.dtype == DType::u8 ? SafeDType::u8 : SafeDType::f32;
    out.data = std::as_bytes(std::span(memory.back()));
    out.shape = extents_of(blob.shape);
    tensors.push_back(std::move(out));
  }
  return {};
}

// Weights that `loom eval` takes, or with the section "training" a checkpoint that `loom train
// --resume` takes: see training_files.hpp.
Status write_network_safetensors(const FileRef& path, const NetworkSource& source,
                                 const ConvertOptions& options) {
  const JsonValue* training = source.sections.find("training");
  LOOM_ASSIGN(const TrainedModel model, model_of(source));
  SafeMetadata metadata = model_metadata(model, training == nullptr ? "weights 1" : "checkpoint 1");
  std::vector<SafeOutput> tensors;
  std::deque<std::string> memory;
  LOOM_TRY(add_blobs(source, "input/", false, memory, tensors));
  if (training != nullptr) {
    for (const auto& [key, value] : training->members()) metadata.emplace_back(key, value.text());
    LOOM_TRY(add_blobs(source, "state/", true, memory, tensors));
    return write_safetensors(path, std::move(tensors), metadata);
  }
  LOOM_ASSIGN(Unpacker unpacker, Unpacker::create(source, options));
  for (size_t i = 0; i < unpacker.params().size(); ++i) {
    const Param& param = unpacker.params()[i];
    tensors.push_back(
        {param.path, SafeDType::f32, extents_of(param.spec.shape), {}, [&unpacker, i] {
           return unpacker.values(i);
         }});
  }
  return write_safetensors(path, std::move(tensors), metadata);
}

Status write_network_onnx(const FileRef& path, const NetworkSource& source, ThreadPool& pool) {
  LOOM_ASSIGN(Network network, Network::finalize(source.spec.grid, source.spec.input.after(1)));
  for (size_t i = 0; i < network.params().size(); ++i) {
    LOOM_ASSIGN(const SourceWeight weight, source.weight(network.params()[i]));
    LOOM_TRY(load_weight(network, static_cast<int>(i), weight.stored, weight, pool));
  }
  OnnxExportOptions options;
  LOOM_ASSIGN(options.normalization, normalization_of(source));
  if (const JsonValue* model = source.sections.find("model")) {
    JsonValue kept = JsonValue::object();
    for (const auto& [key, value] : model->members()) {
      if (key != "dtype") kept.add(key, value);  // the weights are written as float
    }
    options.metadata = {{std::string(kOnnxTrainedFor), dump_json(kept)}};
  }
  return write_onnx(path, network, source.spec.input, options);
}

NpyOutput text_array(std::string name, const std::string& text) {
  return {std::move(name),
          ElementType::u8,
          {static_cast<int64_t>(text.size())},
          std::as_bytes(std::span(text))};
}

// The parameters by path. loom/network and loom/model (text as bytes), input/shift and input/scale
// say what they belong to, so that the file can be opened again.
Status write_network_npz(const FileRef& path, const NetworkSource& source,
                         const ConvertOptions& options) {
  LOOM_ASSIGN(Unpacker unpacker, Unpacker::create(source, options));
  LOOM_ASSIGN(const Normalization normalization, normalization_of(source));
  std::vector<NpyOutput> arrays;
  const std::string network = write_network(source.spec);
  const JsonValue* section = source.sections.find("model");
  const std::string model = section == nullptr ? "" : dump_json(*section);
  arrays.push_back(text_array(std::string(kNpzNetwork), network));
  if (section != nullptr) arrays.push_back(text_array(std::string(kNpzModel), model));
  for (const auto& [name, values] : {std::pair("input/shift", &normalization.shift),
                                     std::pair("input/scale", &normalization.scale)}) {
    if (values->empty()) continue;
    arrays.push_back({name,
                      ElementType::f32,
                      {static_cast<int64_t>(values->size())},
                      std::as_bytes(std::span(*values))});
  }
  for (size_t i = 0; i < unpacker.params().size(); ++i) {
    const Param& param = unpacker.params()[i];
    arrays.push_back(
        {param.path, ElementType::f32, extents_of(param.spec.shape), {}, [&unpacker, i] {
           return unpacker.values(i);
         }});
  }
  return write_npz(path, arrays);
}

Status write_decoder_gguf(const std::string& path, const ModelSource& source,
                          const ConvertOptions& options) {
  if (!options.rules.empty() || options.per_tensor || options.report || options.adjust) {
    return unsupported("rules, calibration and reports are for .entity files; GGUF takes --dtype",
                       path);
  }
  GgufExportOptions gguf;
  gguf.dtype = options.dtype;
  gguf.progress = [&](int64_t done, int64_t total) {
    return !options.progress ||
           options.progress(static_cast<uint64_t>(done), static_cast<uint64_t>(total));
  };
  return write_gguf(path, source, gguf);
}

Status write_text(const FileRef& path, const std::string& text) {
  return write_file_atomic(path, std::as_bytes(std::span(text)));
}

Status write_network_description(const FileRef& path, const OpenedModel& model) {
  if (model.network != nullptr) return write_text(path, write_network(model.network->spec));
  LOOM_ASSIGN(GridSpec grid, decoder_grid(model.decoder->config));
  return write_text(path, write_network({std::move(grid), Shape{1}}));
}

std::string extension_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  const size_t dot = path.rfind('.');
  if (dot == std::string::npos || (slash != std::string::npos && dot < slash)) return "";
  return to_lower_ascii(path.substr(dot));
}

// What a network may have, a letter each, and how to say it.
struct Part {
  char letter;
  std::string_view name;
};
constexpr Part kParts[] = {{'d', "the description of the network"},
                           {'w', "the weights"},
                           {'m', "the loss and the names of classes"},
                           {'n', "the normalization of inputs"},
                           {'t', "the state of training"}};

struct FormatParts {
  std::string_view extension, letters;
};
constexpr FormatParts kHolds[] = {{".entity", "dwmnt"}, {".safetensors", "dwmnt"},
                                  {".onnx", "dwmn"},    {".npz", "dwmn"},
                                  {".json", "d"},       {".json with weights", "dwmn"}};

std::string parts_of(const NetworkSource& source) {
  std::string letters = source.fresh ? "d" : "dw";
  if (source.sections.find("model") != nullptr) letters += 'm';
  const auto under = [&](std::string_view folder) {
    return std::ranges::any_of(source.blobs, [=](const EntityOutput& blob) {
      return std::string_view(blob.path).starts_with(folder);
    });
  };
  if (under("input/")) letters += 'n';
  if (under("state/") || source.sections.find("training") != nullptr) letters += 't';
  return letters;
}

}  // namespace

std::vector<std::string> left_out(const std::string& path, const OpenedModel& model,
                                  const ConvertOptions& options) {
  const std::string extension = extension_of(path);
  if (model.network == nullptr) return {};
  const bool full = extension == ".json" && options.with_weights;
  const std::string format = full ? ".json with weights" : extension;
  const auto row = std::ranges::find(kHolds, format, &FormatParts::extension);
  if (row == std::end(kHolds)) return {};
  const std::string has = parts_of(*model.network);
  std::vector<std::string> names;
  for (const Part& part : kParts) {
    if (has.find(part.letter) != std::string::npos &&
        row->letters.find(part.letter) == std::string_view::npos)
      names.emplace_back(part.name);
  }
  if (names.empty()) return {};
  const bool bare = extension == ".json" && !full;
  return {cat("left out, as ", extension, bare ? " without --with-weights" : "",
              " has no place for it: ", join(names, ", "))};
}

Status write_model(const FileRef& path, const OpenedModel& model, const ConvertOptions& options,
                   ThreadPool& pool) {
  const std::string extension = extension_of(path);
  const bool decoder = model.decoder != nullptr;
  if (extension == ".entity") {
    return decoder ? write_decoder_entity(path, *model.decoder, options, pool)
                   : write_network_entity(path, *model.network, options, pool);
  }
  if (extension == ".json" && options.with_weights && !decoder) {
    LOOM_ASSIGN(const std::string text,
                write_network_checkpoint(*model.network, network_policy(options), pool));
    return write_text(path, text);
  }
  if (extension == ".json") return write_network_description(path, model);
  if (decoder && extension == ".gguf") return write_decoder_gguf(path, *model.decoder, options);
  if (decoder && extension.empty()) return write_hf_folder(path, *model.decoder, options.dtype);
  if (!decoder && extension == ".safetensors")
    return write_network_safetensors(path, *model.network, options);
  if (!decoder && extension == ".onnx") return write_network_onnx(path, *model.network, pool);
  if (!decoder && extension == ".npz") return write_network_npz(path, *model.network, options);
  return unsupported(cat("cannot write ", decoder ? "a language model" : "a network", " as '",
                         extension, "'; choose .entity, .json, ",
                         decoder ? ".gguf, or a folder (a name without an extension)"
                                 : ".safetensors, .onnx, .npz"),
                     path);
}

}  // namespace loom::core
