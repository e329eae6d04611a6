// See source.hpp.
#include "formats/hf/source.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "formats/config/encoder.hpp"
#include "formats/config/text.hpp"
#include "formats/config/text_config.hpp"
#include "formats/hf/config_notes.hpp"
#include "formats/hf/encoder_names.hpp"
#include "formats/hf/folder_check.hpp"
#include "formats/hf/mxfp4.hpp"
#include "formats/hf/names.hpp"
#include "formats/hf/ternary.hpp"
#include "io/files/file.hpp"
#include "io/json/json.hpp"
#include "io/weights/safetensors.hpp"
#include "llm/decoder.hpp"

namespace loom::core {
namespace {

Status check_shape(const SafeTensor& tensor, const Shape& want, const std::string& claim,
                   const std::string& where) {
  bool same = static_cast<int>(tensor.shape.size()) == want.rank();
  for (int i = 0; same && i < want.rank(); ++i)
    same = tensor.shape[static_cast<size_t>(i)] == want[i];
  if (same) return {};
  std::string got = "[";
  for (size_t i = 0; i < tensor.shape.size(); ++i) got += cat(i > 0 ? ", " : "", tensor.shape[i]);
  return bad_file(
      cat(tensor.name, " has shape ", got, "], config.json asks for ", want.str(), claim), where,
      static_cast<int64_t>(tensor.file_offset));
}

// The checkpoint's dtype of a tensor, as a Loom type.
DType stored_dtype(const SafeTensor& tensor) {
  for (const DTypeInfo& info : dtype_table()) {
    const bool direct = info.scale == ScaleRule::none;
    if (direct && info.safetensors == safe_dtype_name(tensor.dtype)) return info.dtype;
  }
  return DType::f32;
}

// A parameter that the network has but the class lacks.
SourceWeight zeros() {
  SourceWeight weight;
  weight.rows = [](int64_t, int64_t count, float* out) -> Status {
    std::fill(out, out + count, 0.0f);
    return {};
  };
  return weight;
}

// The same from a transposed tensor: a part of each column at a time.
Status read_columns(const SafeTensor& tensor, const TensorPart& part, int64_t cols, int64_t first,
                    int64_t count, float* out) {
  std::vector<float> column;
  for (int64_t done = 0; done < count;) {
    // As many rows as are in one matrix of a stack.
    const int64_t from = part.transposed_index(part.row(first + done), 0, cols);
    int64_t last = from, rows = 0;
    for (; done + rows < count; ++rows) {
      const int64_t at = part.transposed_index(part.row(first + done + rows), 0, cols);
      if (at < last || at - from >= part.rows) break;
      last = at;
    }
    column.resize(static_cast<size_t>(last - from + 1));
    for (int64_t c = 0; c < cols; ++c) {
      const int64_t start = part.transposed_index(part.row(first + done), c, cols);
      LOOM_TRY(SafeTensors::to_f32(tensor, start, last - from + 1, column.data()));
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t at = part.transposed_index(part.row(first + done + r), 0, cols) - from;
        out[(done + r) * cols + c] = column[static_cast<size_t>(at)];
      }
    }
    done += rows;
  }
  return {};
}

// Reads rows of a parameter from its part of the tensor.
Status read_rows(const SafeTensor& tensor, const TensorPart& part, int64_t cols, int64_t first,
                 int64_t count, float* out) {
  if (part.transposed) return read_columns(tensor, part, cols, first, count, out);
  if (!part.scattered())
    return SafeTensors::to_f32(tensor, part.row(first) * cols, count * cols, out);
  for (int64_t r = 0; r < count; ++r)
    LOOM_TRY(SafeTensors::to_f32(tensor, part.row(first + r) * cols, cols, out + r * cols));
  return {};
}

// The same for a parameter of several tensors.
Status read_all(const std::vector<const SafeTensor*>& tensors, const TensorPart& part, int64_t cols,
                int64_t first, int64_t count, float* out) {
  if (part.tensors == 0) return read_rows(*tensors.front(), part, cols, first, count, out);
  for (int64_t done = 0; done < count;) {
    const int64_t row = (first + done) % part.rows, left = part.rows - row;
    const int64_t rows = std::min(left, count - done);
    const SafeTensor& tensor = *tensors[static_cast<size_t>((first + done) / part.rows)];
    LOOM_TRY(read_rows(tensor, part, cols, row, rows, out + done * cols));
    done += rows;
  }
  return {};
}

class HfSource : public ModelSource {
 public:
  Status open(const std::string& folder);
  Result<SourceWeight> weight(const Param& param) const override;

 private:
  // The possible names of a tensor, the current one first.
  std::vector<std::string> names_of(const std::string& name) const;
  Result<const SafeTensor*> find(const std::string& name, const std::string& claim) const;
  TensorPart part_of(const Param& param) const;
  // The tensors of a parameter, with the shapes that the part requires.
  Result<std::vector<const SafeTensor*>> tensors_of(const Param& param,
                                                    const TensorPart& part) const;
  bool is_ternary(const Param& param) const;
  // Whether the tensor of a part is packed as MXFP4 (mxfp4.hpp).
  bool is_mxfp4(const TensorPart& part) const {
    return part.stacked > 0 && tensors_.find(cat(part.name, kMxfp4Blocks)) != nullptr &&
           tensors_.find(part.name) == nullptr;
  }
  Result<SourceWeight> mxfp4_weight(const Param& param, const TensorPart& part) const;
  Status use(const Param& param, TensorUses& uses) const;
  Status check_tensors();
  const std::string& file_of(const SafeTensor& tensor) const {
    return tensors_.files()[tensor.file].path();
  }

  SafeTensors tensors_;
  bool multimodal_ = false;  // the folder has more than the language model
};

Status HfSource::open(const std::string& folder) {
  path = folder;
  const std::string config_path = folder + "/config.json";
  LOOM_ASSIGN(const std::string text, read_file(config_path));
  config_json = text_config_json(text);
  multimodal_ = config_json != text;
  LOOM_ASSIGN(generation_json, read_if_there(folder + "/generation_config.json"));
  LOOM_TRY(read_model_config(config_path, *this));
  LOOM_TRY(read_hf_text(folder, *this));
  LOOM_ASSIGN(embedding, read_sentence_folder(folder));
  LOOM_ASSIGN(tensors_, SafeTensors::open(folder));
  LOOM_TRY(check_hf_sizes(*this));
  notes = hf_config_notes(*this);
  if (multimodal_)
    notes.push_back(cat("only the language model is read, as ", config.architecture));
  const std::string index = "model.safetensors.index.json";
  if (tensors_.files().size() == 1 && file_exists(folder + "/model.safetensors") &&
      file_exists(cat(folder, "/", index)))
    notes.push_back(cat(index, " is not used: model.safetensors is there"));
  return check_tensors();
}

// Models with a head have a prefix before the names of the body, and the first checkpoints call the
// parts of norms gamma and beta.
std::vector<std::string> HfSource::names_of(const std::string& name) const {
  std::vector<std::string> names = {name};
  if (!encoder) {
    const std::string other = hf_other_name(name, config);
    if (!other.empty()) names.push_back(other);
    if (!multimodal_) return names;
    const bool body = name.starts_with("model.");
    if (body) names.push_back(cat("model.language_model.", name.substr(6)));
    names.push_back(cat("language_model.", name));
    return names;
  }
  names.push_back(hf_encoder_prefix(*encoder) + name);
  const bool bias = name.ends_with(".bias");
  for (size_t i = 0; i < 2; ++i) {
    const std::string known = names[i];
    names.push_back(known.substr(0, known.rfind('.')) + (bias ? ".beta" : ".gamma"));
  }
  return names;
}

// `claim`: the field that requires it, for the message.
Result<const SafeTensor*> HfSource::find(const std::string& name, const std::string& claim) const {
  for (const std::string& known : names_of(name))
    if (const SafeTensor* tensor = tensors_.find(known)) return tensor;
  return bad_file(cat("tensor ", name, " is missing", claim), path);
}

// Experts are separate tensors, or those of a block are one.
TensorPart HfSource::part_of(const Param& param) const {
  if (encoder) return hf_encoder_tensor(param, *encoder);
  TensorPart part = hf_tensor(param, config);
  if (part.tensors == 0 || tensors_.find(numbered_name(part, 0)) != nullptr) return part;
  const TensorPart stacked = hf_stacked_tensor(param, config);
  return tensors_.find(stacked.name) != nullptr ? stacked : part;
}

Result<std::vector<const SafeTensor*>> HfSource::tensors_of(const Param& param,
                                                            const TensorPart& part) const {
  std::string presence, sizes;
  if (!encoder) {
    const DecoderRole role = decoder_piece(param, config).role;
    if (tensors_.find(numbered_name(part, 0)) == nullptr) presence = presence_claim(*this, role);
    sizes = shape_claim(*this, role);
  }
  std::vector<const SafeTensor*> found;
  for (int64_t i = 0; i < std::max<int64_t>(part.tensors, 1); ++i) {
    LOOM_ASSIGN(const SafeTensor* tensor, find(numbered_name(part, i), presence));
    // Ternary matrices have a form of their own.
    const bool codes = is_ternary(param) && config.ternary_weights != TernaryWeights::online;
    if (!codes)
      LOOM_TRY(check_shape(*tensor, tensor_shape(part, param.spec.shape), sizes, file_of(*tensor)));
    found.push_back(tensor);
  }
  return found;
}

bool HfSource::is_ternary(const Param& param) const {
  return !encoder && config.ternary_weights != TernaryWeights::none && param.spec.matrix() &&
         !is_vocabulary_matrix(param, config.vocab_size);
}

// Adds the tensors of a parameter to `uses`. Errors: those of weight(), and two names for one.
Status HfSource::use(const Param& param, TensorUses& uses) const {
  const TensorPart part = part_of(param);
  if (part.name.empty()) return {};
  if (is_mxfp4(part)) {
    for (const std::string_view end : {kMxfp4Blocks, kMxfp4Scales})
      uses.emplace(cat(part.name, end), std::nullopt);
    LOOM_TRY(weight(param));
    return {};
  }
  const bool ternary = is_ternary(param);
  const bool online = config.ternary_weights == TernaryWeights::online;
  if (!ternary || !online) LOOM_TRY(weight(param));  // weight() of the others would read all values
  std::optional<DecoderRole> role;
  if (!encoder) role = decoder_piece(param, config).role;
  for (int64_t i = 0; i < std::max<int64_t>(part.tensors, 1); ++i) {
    const std::string* first = nullptr;
    const std::vector<std::string> names = names_of(numbered_name(part, i));
    for (const std::string& name : names) {
      if (tensors_.find(name) == nullptr) continue;
      if (first != nullptr) {
        return bad_file(
            cat("tensors ", *first, " and ", name, " are the same parameter; remove one"), path);
      }
      first = &name;
      uses.emplace(name, role);
    }
  }
  if (ternary && !online) uses.emplace(ternary_scale_name(part.name), std::nullopt);
  return {};
}

Status HfSource::check_tensors() {
  // Such a folder lacks tensors, and loading names the first: no network of that size is created.
  if (static_cast<uint64_t>(config.num_layers) > tensors_.tensors().size()) return {};
  LOOM_ASSIGN(const GridSpec grid, model_grid(*this));
  TensorUses uses;
  Status status;
  each_decoder_param(grid, [&](const Param& param) {
    if (status.ok()) status = use(param, uses);
  });
  LOOM_TRY(status);
  LOOM_ASSIGN(std::vector<std::string> unused, check_hf_tensors(*this, tensors_, uses));
  notes.insert(notes.end(), unused.begin(), unused.end());
  return {};
}

Result<SourceWeight> HfSource::mxfp4_weight(const Param& param, const TensorPart& part) const {
  const SafeTensor* blocks = tensors_.find(cat(part.name, kMxfp4Blocks));
  LOOM_ASSIGN(const SafeTensor* scales, find(cat(part.name, kMxfp4Scales), ""));
  const int64_t cols = param.spec.shape[1];
  LOOM_ASSIGN(
      const Mxfp4Matrix matrix,
      Mxfp4Matrix::open(*blocks, *scales, Shape{part.stacked, part.rows / part.stacked, cols},
                        file_of(*blocks)));
  SourceWeight weight;
  weight.tensor = blocks->name;
  weight.stored = DType::mxfp4;
  weight.release = [this, blocks] { tensors_.release(*blocks); };
  weight.rows = [matrix, part, cols](int64_t first, int64_t count, float* out) -> Status {
    for (int64_t r = 0; r < count; ++r) matrix.row(part.row(first + r), out + r * cols);
    return {};
  };
  weight.copy_row = [matrix, part](int64_t row, const R16& to, std::byte* out) {
    return matrix.pack(part.row(row), to, row, out);
  };
  return weight;
}

Result<SourceWeight> HfSource::weight(const Param& param) const {
  const TensorPart part = part_of(param);
  if (part.name.empty()) return zeros();
  if (is_mxfp4(part)) return mxfp4_weight(param, part);
  LOOM_ASSIGN(const std::vector<const SafeTensor*> tensors, tensors_of(param, part));
  const SafeTensor* tensor = tensors.front();
  SourceWeight weight;
  weight.tensor = tensor->name;
  weight.release = [this, tensors] {
    for (const SafeTensor* one : tensors) tensors_.release(*one);
  };
  const bool ternary = is_ternary(param);
  if (ternary && config.ternary_weights != TernaryWeights::online) {
    LOOM_ASSIGN(const SafeTensor* scale, find(ternary_scale_name(part.name), ""));
    const Shape whole =
        param.spec.matrix() ? Shape{part.rows, param.spec.shape[1]} : Shape{part.rows};
    LOOM_ASSIGN(
        const TernaryMatrix matrix,
        TernaryMatrix::open(*tensor, *scale, whole, config.ternary_weights, file_of(*tensor)));
    weight.stored = DType::ternary;
    weight.rows = [matrix, part](int64_t first, int64_t count, float* out) {
      return matrix.rows(part.first_row + first, count, out);
    };
    return weight;
  }
  const int64_t cols = param.spec.matrix() ? param.spec.shape[1] : 1;
  const float offset = config.unit_offset_norms && param.spec.init == Init::ones ? 1.0f : 0.0f;
  weight.stored = stored_dtype(*tensor);
  weight.rows = [tensors, part, cols, offset](int64_t first, int64_t count, float* out) -> Status {
    LOOM_TRY(read_all(tensors, part, cols, first, count, out));
    for (int64_t i = 0; offset != 0.0f && i < count * cols; ++i) out[i] = offset + out[i];
    return {};
  };
  if (config.sub_norms) weight.mean_scope = ScaleScope::per_tensor;
  if (!ternary) return weight;
  LOOM_ASSIGN(const float mean, mean_magnitude(weight.rows, param.spec.shape));
  weight.stored = DType::ternary;
  weight.rows = [full = weight.rows, mean, cols](int64_t first, int64_t count,
                                                 float* out) -> Status {
    LOOM_TRY(full(first, count, out));
    to_ternary(mean, count * cols, out);
    return {};
  };
  return weight;
}

}  // namespace

Result<std::unique_ptr<ModelSource>> open_hf_folder(const std::string& folder) {
  auto source = std::make_unique<HfSource>();
  LOOM_TRY(source->open(folder));
  return std::unique_ptr<ModelSource>(std::move(source));
}

}  // namespace loom::core
