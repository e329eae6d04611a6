// Tensors stay in the map of the file; a parameter is read a few rows at a time. Types that R16 has
// too (r16_blocks.hpp) are copied bit by bit.
#include "formats/gguf/source.hpp"

#include <unordered_set>

#include "base/text.hpp"
#include "dtype/r16/r16_blocks.hpp"
#include "formats/gguf/config.hpp"
#include "formats/gguf/experts.hpp"
#include "formats/gguf/file.hpp"
#include "formats/gguf/names.hpp"
#include "formats/gguf/tokenizer/tokenizer.hpp"
#include "llm/decoder.hpp"

namespace loom::core {
namespace {

class GgufSource : public ModelSource {
 public:
  explicit GgufSource(Gguf gguf) : gguf_(std::move(gguf)) { path = gguf_.where(); }
  Status read();
  Result<SourceWeight> weight(const Param& param) const override;

 private:
  Status check_whole() const;
  Status check_tensors() const;
  Status read_text();
  Result<std::string> token_text(std::string_view key) const;

  Gguf gguf_;
  const DecoderFamily* family_ = nullptr;
};

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += cat(i > 0 ? ", " : "", shape[i]);
  return text + "]";
}

// llama.cpp splits large models into files, each with its number and the total.
Status GgufSource::check_whole() const {
  const GgufValue* count = gguf_.find_value("split.count");
  const GgufValue* number = gguf_.find_value("split.no");
  if (count == nullptr || count->count() != 1 || count->number(0) <= 1) return {};
  const double part = number != nullptr && number->count() == 1 ? number->number(0) + 1 : 1;
  return unsupported(cat("is part ", part, " of ", count->number(0),
                         " of a model; join them first: llama-gguf-split --merge FIRST_PART OUT"),
                     path);
}

Status GgufSource::read() {
  LOOM_TRY(check_whole());
  LOOM_ASSIGN(const std::string_view name, gguf_.string("general.architecture"));
  family_ = find_family_of_gguf(name, has_gguf_experts(gguf_, name));
  if (family_ == nullptr) {
    std::vector<std::string> known;
    for (const DecoderFamily* row : decoder_families())
      if (!row->gguf.name.empty() && !row->gguf.shared_name) known.emplace_back(row->gguf.name);
    Error error = gguf_.key_error("general.architecture", cat("is '", printable(name),
                                                              "', which is not "
                                                              "supported; these are: ",
                                                              join(known, ", ")));
    error.code = Code::unsupported;
    return error;
  }
  LOOM_ASSIGN(config, read_gguf_config(gguf_, *family_));
  LOOM_TRY(check_tensors());
  return read_text();
}

// An ignored tensor would silently change the model.
Status GgufSource::check_tensors() const {
  LOOM_ASSIGN(const GridSpec grid, decoder_grid(config));
  std::unordered_set<std::string> read = {"rope_freqs.weight"};
  each_decoder_param(grid, [&](const Param& param) {
    read.insert(gguf_tensor(param, config, family_->gguf).name);
  });
  for (const TensorEntry& entry : gguf_.entries()) {
    if (read.contains(entry.name)) continue;
    Error error = bad_file(cat("tensor '", printable(entry.name), "' has no place in a decoder of ",
                               config.num_layers, " blocks of '", family_->gguf.name, "'"),
                           path, static_cast<int64_t>(entry.offset));
    error.code = Code::unsupported;
    return error;
  }
  return {};
}

Result<std::string> GgufSource::token_text(std::string_view key) const {
  constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
  if (!gguf_.has(key) || !gguf_.has(kTokens)) return std::string();
  LOOM_ASSIGN(const uint32_t id, gguf_.u32(key));
  LOOM_ASSIGN(const GgufValue* tokens, gguf_.array(kTokens, GgufType::string));
  if (id >= tokens->strings.size()) {
    return gguf_.key_error(key, cat("is ", id, ", there are ", tokens->strings.size(), " tokens"));
  }
  return std::string(tokens->strings[id]);
}

Status GgufSource::read_text() {
  LOOM_ASSIGN(tokenizer, read_gguf_tokenizer(gguf_));
  LOOM_ASSIGN(bos, token_text("tokenizer.ggml.bos_token_id"));
  LOOM_ASSIGN(eos, token_text("tokenizer.ggml.eos_token_id"));
  constexpr std::string_view kChat = "tokenizer.chat_template";
  if (!gguf_.has(kChat)) return {};
  LOOM_ASSIGN(const std::string_view chat, gguf_.string(kChat));
  chat_template = std::string(chat);
  return {};
}

Result<SourceWeight> GgufSource::weight(const Param& param) const {
  const TensorPart part = gguf_tensor(param, config, family_->gguf);
  const std::string& name = part.name;
  const int64_t found = gguf_.find_tensor(name);
  if (found < 0) return bad_file(cat("tensor ", name, " is missing"), path);
  const auto index = static_cast<size_t>(found);
  const TensorEntry& entry = gguf_.entries()[index];
  const Shape want = gguf_shape(param, part);
  bool same = static_cast<int>(entry.shape.size()) == want.rank();
  for (int i = 0; same && i < want.rank(); ++i)
    same = entry.shape[static_cast<size_t>(i)] == want[i];
  if (!same) {
    return bad_file(
        cat(name, " has shape ", shape_text(entry.shape), ", the metadata asks for ", want.str()),
        path, static_cast<int64_t>(entry.offset));
  }
  const int64_t cols = param.spec.matrix() ? param.spec.shape[1] : 1;
  const int64_t head = has_paired_rows(param, family_->gguf) ? config.head_dim : 0;
  SourceWeight weight;
  weight.tensor = name;
  weight.stored = dtype_of_ggml(gguf_.type(index));
  weight.rows = [this, index, cols, head, skip = part.first_row](int64_t first, int64_t count,
                                                                 float* out) -> Status {
    first += skip;
    if (head == 0) return gguf_.to_f32(index, first * cols, count * cols, out);
    for (int64_t row = first; row < first + count; ++row, out += cols)
      LOOM_TRY(gguf_.to_f32(index, paired_row(row, head) * cols, cols, out));
    return {};
  };
  weight.release = [this, index] { gguf_.release(index); };
  const int64_t block = gguf_block_bytes(weight.stored);
  if (block == 0 || ggml_of_dtype(weight.stored) != &gguf_.type(index)) return weight;
  const int64_t row_bytes = cols / gguf_block_values(weight.stored) * block;
  weight.copy_row = [this, index, head, row_bytes, skip = part.first_row](
                        int64_t row, const R16& matrix, std::byte* to) -> Status {
    const int64_t at = skip + (head == 0 ? row : paired_row(row, head));
    const std::byte* blocks = gguf_.bytes(index).data() + at * row_bytes;
    if (r16_put_blocks(matrix, blocks, row, to)) return {};
    return bad_file(cat("tensor ", gguf_.entries()[index].name, " has a block whose scale is NaN"),
                    path, static_cast<int64_t>(gguf_.entries()[index].offset));
  };
  return weight;
}

}  // namespace

Result<std::unique_ptr<ModelSource>> open_gguf(const FileRef& path) {
  LOOM_ASSIGN(Gguf gguf, Gguf::open(path));
  auto source = std::make_unique<GgufSource>(std::move(gguf));
  LOOM_TRY(source->read());
  return std::unique_ptr<ModelSource>(std::move(source));
}

}  // namespace loom::core
