// See source.hpp.
#include "formats/hf/source.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "formats/config/encoder.hpp"
#include "formats/config/text.hpp"
#include "formats/hf/encoder_names.hpp"
#include "formats/hf/names.hpp"
#include "formats/hf/ternary.hpp"
#include "io/file.hpp"
#include "io/json.hpp"
#include "io/safetensors.hpp"
#include "llm/decoder.hpp"

namespace loom::core {
namespace {

Status check_shape(const SafeTensor& tensor, const Shape& want, const std::string& where) {
  bool same = static_cast<int>(tensor.shape.size()) == want.rank();
  for (int i = 0; same && i < want.rank(); ++i)
    same = tensor.shape[static_cast<size_t>(i)] == want[i];
  if (same) return {};
  std::string got = "[";
  for (size_t i = 0; i < tensor.shape.size(); ++i) got += cat(i > 0 ? ", " : "", tensor.shape[i]);
  return bad_file(cat(tensor.name, " has shape ", got, "], config.json asks for ", want.str()),
                  where, static_cast<int64_t>(tensor.file_offset));
}

// The dtype weights have in the checkpoint, as one of ours.
DType stored_dtype(const SafeTensor& tensor) {
  for (const DTypeInfo& info : dtype_table()) {
    const bool direct = info.scale == ScaleRule::none;
    if (direct && info.safetensors == safe_dtype_name(tensor.dtype)) return info.dtype;
  }
  return DType::f32;
}

// A parameter that the network has and the class has not.
SourceWeight zeros() {
  SourceWeight weight;
  weight.rows = [](int64_t, int64_t count, float* out) -> Status {
    std::fill(out, out + count, 0.0f);
    return {};
  };
  return weight;
}

// Rows of a parameter, from where they lie in the tensor.
Status read_rows(const SafeTensor& tensor, const TensorPart& part, int64_t cols, int64_t first,
                 int64_t count, float* out) {
  if (part.transposed) {
    std::vector<float> column(static_cast<size_t>(count));
    for (int64_t c = 0; c < cols; ++c) {
      LOOM_TRY(SafeTensors::to_f32(tensor, c * part.rows + part.row(first), count, column.data()));
      for (int64_t r = 0; r < count; ++r) out[r * cols + c] = column[static_cast<size_t>(r)];
    }
    return {};
  }
  if (part.run == 0) return SafeTensors::to_f32(tensor, part.row(first) * cols, count * cols, out);
  for (int64_t r = 0; r < count; ++r)
    LOOM_TRY(SafeTensors::to_f32(tensor, part.row(first + r) * cols, cols, out + r * cols));
  return {};
}

class HfSource : public ModelSource {
 public:
  Status open(const std::string& folder);
  Result<SourceWeight> weight(const Param& param) const override;

 private:
  Result<const SafeTensor*> find(const std::string& name) const;
  const SafeTensor* find_of_encoder(const std::string& name) const;
  const std::string& file_of(const SafeTensor& tensor) const {
    return tensors_.files()[tensor.file].path();
  }

  SafeTensors tensors_;
};

Status HfSource::open(const std::string& folder) {
  path = folder;
  const std::string config_path = folder + "/config.json";
  LOOM_ASSIGN(config_json, read_file(config_path));
  LOOM_ASSIGN(generation_json, read_if_there(folder + "/generation_config.json"));
  LOOM_TRY(read_model_config(config_path, *this));
  LOOM_TRY(read_hf_text(folder, *this));
  LOOM_ASSIGN(embedding, read_sentence_folder(folder));
  LOOM_ASSIGN(tensors_, SafeTensors::open(folder));
  return {};
}

// Models with a head have a prefix before the names of what is below it, and the first checkpoints
// call the parts of norms gamma and beta.
const SafeTensor* HfSource::find_of_encoder(const std::string& name) const {
  const std::string longer = hf_encoder_prefix(*encoder) + name;
  if (const SafeTensor* tensor = tensors_.find(longer)) return tensor;
  const bool bias = name.ends_with(".bias");
  for (const std::string& known : {name, longer}) {
    const size_t dot = known.rfind('.');
    const std::string old = known.substr(0, dot) + (bias ? ".beta" : ".gamma");
    if (const SafeTensor* tensor = tensors_.find(old)) return tensor;
  }
  return nullptr;
}

Result<const SafeTensor*> HfSource::find(const std::string& name) const {
  const SafeTensor* tensor = tensors_.find(name);
  if (tensor == nullptr && encoder) tensor = find_of_encoder(name);
  if (tensor == nullptr && !encoder) tensor = tensors_.find(hf_other_name(name, config));
  if (tensor == nullptr) return bad_file(cat("tensor ", name, " is missing"), path);
  return tensor;
}

Result<SourceWeight> HfSource::weight(const Param& param) const {
  const TensorPart part = encoder ? hf_encoder_tensor(param, *encoder) : hf_tensor(param, config);
  if (part.name.empty()) return zeros();
  LOOM_ASSIGN(const SafeTensor* tensor, find(part.name));
  SourceWeight weight;
  weight.tensor = part.name;
  weight.release = [this, tensor] { tensors_.release(*tensor); };
  const bool ternary = !encoder && config.ternary_weights != TernaryWeights::none &&
                       param.spec.matrix() && !is_vocabulary_matrix(param, config.vocab_size);
  const Shape whole =
      param.spec.matrix() ? Shape{part.rows, param.spec.shape[1]} : Shape{part.rows};
  if (ternary && config.ternary_weights != TernaryWeights::online) {
    LOOM_ASSIGN(const SafeTensor* scale, find(ternary_scale_name(part.name)));
    LOOM_ASSIGN(
        const TernaryMatrix matrix,
        TernaryMatrix::open(*tensor, *scale, whole, config.ternary_weights, file_of(*tensor)));
    weight.stored = DType::ternary;
    weight.rows = [matrix, part](int64_t first, int64_t count, float* out) {
      return matrix.rows(part.first_row + first, count, out);
    };
    return weight;
  }
  const Shape stored = part.transposed ? Shape{whole[1], whole[0]} : whole;
  LOOM_TRY(check_shape(*tensor, stored, file_of(*tensor)));
  const int64_t cols = param.spec.matrix() ? param.spec.shape[1] : 1;
  const float offset = config.unit_offset_norms && param.spec.init == Init::ones ? 1.0f : 0.0f;
  weight.stored = stored_dtype(*tensor);
  weight.rows = [tensor, part, cols, offset](int64_t first, int64_t count, float* out) -> Status {
    LOOM_TRY(read_rows(*tensor, part, cols, first, count, out));
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
