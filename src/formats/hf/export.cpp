#include "formats/hf/export.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "base/text.hpp"
#include "bridge/finite_weight.hpp"
#include "bridge/weight_source.hpp"
#include "dtype/codecs/codec.hpp"
#include "formats/config/config.hpp"
#include "formats/config/text.hpp"
#include "formats/hf/names.hpp"
#include "io/files/atomic_folder.hpp"
#include "io/files/file.hpp"
#include "io/json/json.hpp"
#include "io/weights/safetensors_write.hpp"
#include "llm/decoder.hpp"

namespace loom::core {
namespace {

// A tensor of the file and the parameters that are its rows (several where projections are fused).
struct Parts {
  int64_t rows = 0, cols = 1, split = 0;
  bool split_axis = false;
  bool matrix = false, transposed = false;
  int64_t stacked = 0;    // as in TensorPart
  int64_t first_row = 0;  // of the parameter, if it is several tensors
  SafeDType dtype = SafeDType::f32;
  std::vector<std::pair<const Param*, TensorPart>> params;
  // The rows of a parameter in this tensor.
  int64_t rows_of(const Param& param, const TensorPart& part) const {
    if (part.tensors > 0) return part.rows;
    return matrix ? param.spec.shape[0] : param.spec.shape.count();
  }
};

Result<SafeDType> file_type(DType stored, std::optional<DType> requested,
                            const std::string& where) {
  const DType dtype = requested.value_or(stored);
  if (dtype == DType::f32) return SafeDType::f32;
  if (dtype == DType::f16) return SafeDType::f16;
  if (dtype == DType::bf16) return SafeDType::bf16;
  if (!requested) return SafeDType::f32;
  return unsupported(cat("a Hugging Face folder has no type ", dtype_name(dtype),
                         "; choose float32, float16 or bfloat16, or write a .gguf or .entity file"),
                     where);
}

class HfExporter {
 public:
  HfExporter(const ModelSource& source, std::optional<DType> dtype, const std::string& path)
      : source_(source), dtype_(dtype), path_(path) {}
  Status prepare();
  Status write(const std::string& path);
  SafeDType type() const;  // of the matrices, which config.json names

 private:
  Result<std::span<const std::byte>> values(const Parts& parts);
  void put_rows(const Parts& parts, const TensorPart& part, int64_t rows);

  const ModelSource& source_;
  std::optional<DType> dtype_;
  const std::string& path_;
  std::unique_ptr<Network> network_;
  std::map<std::string, Parts> tensors_;
  std::vector<float> floats_, rows_;
  std::vector<std::byte> bytes_;
};

Status HfExporter::prepare() {
  if (source_.encoder)
    return unsupported("encoders are not written as Hugging Face folders; write an .entity file",
                       source_.path);
  LOOM_ASSIGN(const GridSpec grid, decoder_grid(source_.config));
  LOOM_ASSIGN(Network network, Network::finalize(grid, Shape{1, 1}));
  network_ = std::make_unique<Network>(std::move(network));
  for (const Param& param : network_->params()) {
    const TensorPart part = hf_tensor(param, source_.config);
    LOOM_ASSIGN(const SourceWeight weight, finite_weight(source_, param));
    for (int64_t i = 0; i < std::max<int64_t>(part.tensors, 1); ++i) {
      Parts& parts = tensors_[numbered_name(part, i)];
      parts.rows = part.rows;
      parts.first_row = i * part.rows;
      parts.stacked = part.stacked;
      parts.matrix = param.spec.matrix();
      parts.transposed = part.transposed;
      parts.split = part.split;
      parts.split_axis = part.split_axis;
      if (parts.matrix) parts.cols = param.spec.shape[1];
      LOOM_ASSIGN(parts.dtype, file_type(weight.stored, dtype_, path_));
      parts.params.emplace_back(&param, part);
    }
  }
  return {};
}

SafeDType HfExporter::type() const {
  const auto matrix = std::ranges::find_if(tensors_, [](const auto& t) { return t.second.matrix; });
  return matrix == tensors_.end() ? SafeDType::f32 : matrix->second.dtype;
}

// Copies rows of a parameter to their location in the tensor.
void HfExporter::put_rows(const Parts& parts, const TensorPart& part, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* from = rows_.data() + r * parts.cols;
    const int64_t at = part.row(r);
    for (int64_t c = 0; c < parts.cols; ++c) {
      const int64_t to = parts.transposed ? c * parts.rows + at : at * parts.cols + c;
      floats_[static_cast<size_t>(to)] = from[c];
    }
  }
}

// All rows of a tensor in its type; those that no parameter has are zeros.
Result<std::span<const std::byte>> HfExporter::values(const Parts& parts) {
  floats_.assign(static_cast<size_t>(parts.rows * parts.cols), 0.0f);
  for (const auto& [param, part] : parts.params) {
    LOOM_ASSIGN(const SourceWeight weight, finite_weight(source_, *param));
    const int64_t rows = parts.rows_of(*param, part);
    rows_.resize(static_cast<size_t>(rows * parts.cols));
    LOOM_TRY(weight.rows(part.tensors > 0 ? parts.first_row : 0, rows, rows_.data()));
    const bool offset = source_.config.unit_offset_norms && param->spec.init == Init::ones;
    for (float& value : rows_) value -= offset ? 1.0f : 0.0f;
    put_rows(parts, part, rows);
    if (weight.release) weight.release();
  }
  if (parts.dtype == SafeDType::f32) return std::as_bytes(std::span(floats_));
  bytes_.resize(floats_.size() * 2);
  const bool half = parts.dtype == SafeDType::f16;
  for (size_t i = 0; i < floats_.size(); ++i) {
    const uint16_t code = half ? f16_from_f32(floats_[i]) : bf16_from_f32(floats_[i]);
    const uint16_t infinity = half ? 0x7c00 : 0x7f80;
    if ((code & 0x7fff) == infinity && std::isfinite(floats_[i]) && !source_.allow_nonfinite)
      return too_large(parts.params.front().first->path, parts.matrix ? parts.cols : 0,
                       static_cast<int64_t>(i), safe_dtype_name(parts.dtype), source_.path);
    bytes_[2 * i] = static_cast<std::byte>(code & 0xff);
    bytes_[2 * i + 1] = static_cast<std::byte>(code >> 8);
  }
  return std::span<const std::byte>(bytes_);
}

Status HfExporter::write(const std::string& path) {
  std::vector<SafeOutput> outputs;
  for (const auto& [name, parts] : tensors_) {
    SafeOutput out;
    out.name = name;
    out.dtype = parts.dtype;
    out.shape = {parts.rows};
    if (parts.split > 0) out.shape = {parts.rows / parts.split, parts.split};
    if (parts.split_axis) out.shape.insert(out.shape.begin() + 1, 1);
    if (parts.matrix)
      out.shape.insert(parts.transposed ? out.shape.begin() : out.shape.end(), parts.cols);
    if (parts.stacked > 0) out.shape = {parts.stacked, parts.rows / parts.stacked, parts.cols};
    out.produce = [this, &kept = parts] { return values(kept); };
    outputs.push_back(std::move(out));
  }
  return write_safetensors(path, std::move(outputs), {{"format", "pt"}});
}

Status write_text(const std::string& path, const std::string& text) {
  if (text.empty()) return {};
  return write_file_atomic(path, std::as_bytes(std::span(text)));
}

std::string tokenizer_config(const ModelSource& source) {
  if (source.bos.empty() && source.eos.empty()) return {};
  JsonValue out = JsonValue::object();
  if (!source.bos.empty()) out.add("bos_token", JsonValue::string(source.bos));
  if (!source.eos.empty()) out.add("eos_token", JsonValue::string(source.eos));
  return dump_json(out, 2) + "\n";
}

// Whether a file of a model folder has weights, a tokenizer or a configuration: such a file, left
// next to files of another model, would be read with them. Loom's unfinished files count too.
bool is_model_file(std::string_view name) {
  constexpr std::string_view kNames[] = {"config.json",
                                         "generation_config.json",
                                         "tokenizer.json",
                                         "added_tokens.json",
                                         "special_tokens_map.json",
                                         "tokenizer_config.json",
                                         "vocab.json",
                                         "vocab.txt",
                                         "merges.txt",
                                         "chat_template.json",
                                         "chat_template.jinja",
                                         "adapter_config.json"};
  constexpr std::string_view kEndings[] = {
      ".safetensors", ".safetensors.index.json", ".bin", ".bin.index.json", ".pth", ".pt", ".model",
      ".tiktoken"};
  if (name.starts_with('.')) return name.find(".tmp-") != std::string_view::npos;
  return std::ranges::find(kNames, name) != std::end(kNames) ||
         std::ranges::any_of(kEndings, [=](std::string_view e) { return name.ends_with(e); });
}

// The text of config.json with the type of the written weights, if it names one.
std::string with_type(const std::string& text, SafeDType dtype) {
  const Result<JsonValue> json = parse_json(text, "config.json");
  if (!json.ok()) return text;
  const std::string name(dtype == SafeDType::f16    ? "float16"
                         : dtype == SafeDType::bf16 ? "bfloat16"
                                                    : "float32");
  JsonValue out = JsonValue::object();
  bool changed = false;
  for (const auto& [key, value] : json->members()) {
    const bool named = (key == "dtype" || key == "torch_dtype") && value.is_string();
    changed |= named && value.text() != name;
    out.add(key, named ? JsonValue::string(name) : value);
  }
  return changed ? dump_json(out, 2) + "\n" : text;
}

Status write_files(HfExporter& exporter, const std::string& folder, const ModelSource& source) {
  LOOM_TRY(exporter.write(folder + "/model.safetensors"));
  LOOM_TRY(write_text(folder + "/tokenizer.json", tokenizer_text(source)));
  LOOM_TRY(write_text(folder + "/tokenizer_config.json", tokenizer_config(source)));
  LOOM_TRY(write_text(folder + "/chat_template.jinja", source.chat_template));
  LOOM_TRY(write_text(folder + "/generation_config.json", source.generation_json));
  // Codes and scales of packed ternary checkpoints are values here.
  const bool plain = source.config.ternary_weights == TernaryWeights::none;
  const std::string config = plain ? config_text(source) : hf_config_json(source.config);
  return write_text(folder + "/config.json", with_type(config, exporter.type()));
}

}  // namespace

Status write_hf_folder(const std::string& path, const ModelSource& source,
                       std::optional<DType> dtype) {
  HfExporter exporter(source, dtype, path);
  LOOM_TRY(exporter.prepare());
  LOOM_ASSIGN(AtomicFolder folder, AtomicFolder::create(path, is_model_file));
  const Status written = write_files(exporter, folder.temporary(), source);
  return written.ok() ? folder.commit() : Status(folder.renamed(written.error()));
}

}  // namespace loom::core
