// safetensors: Loom's weights and checkpoints, and bare tensors from which a network is inferred.
#include <deque>
#include <unordered_map>

#include "base/text.hpp"
#include "convert/formats/formats.hpp"

#ifndef LOOM_WITHOUT_ARRAYS
#include "convert/unpacker.hpp"
#include "formats/universal/infer.hpp"
#include "io/weights/torch_file.hpp"
#include "train_io/weights/training_parts.hpp"
#include "train_io/weights/weights_source.hpp"
#endif

namespace loom::core {
namespace {

#ifdef LOOM_WITHOUT_ARRAYS
// Eight bytes of length, then a JSON object.
bool is_safetensors(const Probe& file) {
  return file.bytes.size() > 8 && file.bytes[8] == std::byte{'{'};
}
#else
bool is_any(const Probe&) {
  return true;
}

// A file of tensors without a configuration: notes list what each became.
class InferredSource : public NetworkSource {
 public:
  InferredSource(InferredNetwork inferred, std::unique_ptr<TensorFile> file)
      : NetworkSource(std::move(inferred.spec)), file_(std::move(file)) {
    for (InferredParam& p : inferred.params) pieces_[p.path] = std::move(p.pieces);
  }
  Result<SourceWeight> weight(const Param& param) const override;

 private:
  std::unique_ptr<TensorFile> file_;
  std::unordered_map<std::string, std::vector<InferredPiece> > pieces_;
};

Result<SourceWeight> InferredSource::weight(const Param& param) const {
  const auto found = pieces_.find(param.path);
  if (found == pieces_.end()) return bad_file(cat("has no tensor for ", param.path), path);
  SourceWeight weight;
  weight.tensor = file_->entries()[found->second.front().tensor].name;
  const int64_t cols = param.spec.matrix() ? param.spec.shape[1] : 1;
  weight.rows = [this, cols, &pieces = found->second](int64_t first, int64_t count,
                                                      float* out) -> Status {
    const int64_t n = count * cols;
    std::vector<float> more(pieces.size() > 1 ? static_cast<size_t>(n) : 0);
    for (size_t i = 0; i < pieces.size(); ++i) {
      float* to = i == 0 ? out : more.data();
      LOOM_TRY(file_->to_f32(pieces[i].tensor, pieces[i].first + first * cols, n, to));
      for (int64_t j = 0; i > 0 && j < n; ++j) out[j] += more[static_cast<size_t>(j)];
    }
    return {};
  };
  return weight;
}

Result<OpenedModel> open_tensors(const FileRef& path, const InferOptions& how) {
  LOOM_ASSIGN(std::unique_ptr<TensorFile> file, SafeTensorsFile::open(path));
  LOOM_ASSIGN(InferredNetwork inferred, infer_network(*file, path, how));
  OpenedModel model;
  model.format = "tensors without a configuration";
  model.guessed = true;
  for (const InferredTensor& t : inferred.report) {
    model.notes.push_back(cat(printable(t.tensor), " -> ", t.became, ", ",
                              confidence_name(t.confidence), ": ", t.why));
  }
  for (const std::string& assumption : inferred.assumptions)
    model.notes.push_back(cat("assumed: ", assumption));
  auto source = std::make_unique<InferredSource>(std::move(inferred), std::move(file));
  source->path = path;
  model.network = std::move(source);
  return model;
}

// The last row, which gets all files without another format.
Result<OpenedModel> open_safetensors(const Probe& file) {
  const FileRef& path = file.path;
  const Result<WeightsFile> weights = open_weights(path);
  if (!weights.ok()) {
    if (weights.error().code != Code::bad_file) return weights.error();
    const bool named = path.name().ends_with(".safetensors");
    if (named || is_torch_file(file.bytes)) return weights.error();
    return bad_file(
        "is not a model that can be opened: neither .entity, GGUF, ONNX (by its name), a "
        "description nor safetensors; export the model to one of these",
        path);
  }
  if (!weights->text("loom").ok()) return open_tensors(path, file.options.infer);
  OpenedModel model;
  model.format = "trained weights";
  LOOM_ASSIGN(model.network, open_trained_weights(path));
  return model;
}

// Blobs of `folder` as tensors without the folder name; `memory` keeps their bytes.
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

// Weights for `loom eval`, or with the section "training" a checkpoint for `loom train --resume`:
// see training_files.hpp.
Status write_network_safetensors(const WriteRequest& out) {
  const FileRef& path = out.path;
  const NetworkSource& source = *out.model.network;
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
  LOOM_ASSIGN(Unpacker unpacker, Unpacker::create(source, out.options));
  for (size_t i = 0; i < unpacker.params().size(); ++i) {
    const Param& param = unpacker.params()[i];
    tensors.push_back(
        {param.path, SafeDType::f32, extents_of(param.spec.shape), {}, [&unpacker, i] {
           return unpacker.values(i);
         }});
  }
  return write_safetensors(path, std::move(tensors), metadata);
}
#endif

}  // namespace

#ifndef LOOM_WITHOUT_ARRAYS
const Format kSafetensorsFormat = {.files = ".safetensors files",
                                   .is = is_any,
                                   .open = open_safetensors,
                                   .extension = ".safetensors",
                                   .holds = "dwmnt",
                                   .write_network = write_network_safetensors,
                                   .networks = true};
#else
const Format kSafetensorsFormat = {.files = ".safetensors files",
                                   .how = LOOM_BUILD_WITH("LOOM_ARRAYS=ON"),
                                   .left_out = true,
                                   .is = is_safetensors,
                                   .extension = ".safetensors",
                                   .networks = true};
#endif

}  // namespace loom::core
