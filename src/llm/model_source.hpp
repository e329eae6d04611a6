// ModelSource: where the pieces of a language model come from, one class per kind of file: its
// configuration, its text (tokenizer, chat template) and, one parameter at a time, its weights.
// It reads what a file says and nothing more; LanguageModel builds and packs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "grid/network.hpp"
#include "io/hf_config.hpp"

namespace loom {

// One parameter of the decoder as a file has it.
struct SourceWeight {
  DType stored = DType::f32;  // what it is packed in when nobody asks for another type
  // Of what the scale of types that take one from mean magnitudes is the mean.
  ScaleScope mean_scope = ScaleScope::per_row;
  // Values as f32, rows ascending, maybe twice.
  Network::RowSource rows;
  // Packs row `row` of the parameter with the very codes and scales of the file into a matrix of
  // type `stored`. Null where rows() and packing lose nothing, or where the file has no such type.
  std::function<Status(int64_t row, const R16& matrix, std::byte* to)> place;
  // Hands the pages of the file back; the parameter is not read again.
  std::function<void()> release;
};

class ModelSource {
 public:
  virtual ~ModelSource() = default;
  // Of `param`, a parameter of decoder_grid(config). Errors: bad_file (absent, another shape).
  virtual Result<SourceWeight> weight(const Param& param) const = 0;

  std::string path;
  HfConfig config;
  std::string tokenizer_json;   // "" where there is none
  std::string tokenizer_where;  // for messages
  std::string chat_template;
  std::string bos, eos;  // as text, for the chat template
};

// A Hugging Face folder: config.json, model.safetensors (or an index), tokenizer.json and friends.
Result<std::unique_ptr<ModelSource>> open_hf_folder(const std::string& folder);

}  // namespace loom
