// A checkpoint folder without its weights: configuration, tensors, tokenizer and chat template. For
// `loom info`, `loom tokenize`, and for helpful messages.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "formats/config/config.hpp"
#include "io/files/file_ref.hpp"
#include "io/weights/safetensors.hpp"
#include "jinja/chat_template.hpp"
#include "text/tokenizer.hpp"

namespace loom::core {

// Checks for a folder that could hold a model, or a GGUF file. The Error for another file, or for
// an incomplete folder, says what to give instead.
Status check_model_folder(const FileRef& folder);

struct Checkpoint {
  DecoderConfig config;  // for an encoder: the sizes that both kinds have
  SafeTensors tensors;
  std::optional<Tokenizer> tokenizer;
  bool has_chat_template = false;
  bool chat_template_readable = false;

  static Result<Checkpoint> open(const std::string& folder);
};

// The tokenizer of a folder or a GGUF file, or of a tokenizer.json.
Result<Tokenizer> load_tokenizer(const FileRef& path);

}  // namespace loom::core
