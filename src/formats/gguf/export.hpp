// Writes a model of any source as a GGUF file that llama.cpp reads: the reverse of source.hpp.
//
// Vectors (norms, biases) are f32. A vocabulary matrix keeps at least 8 bits: q8_0 if the rest has
// fewer. A matrix whose rows are not a multiple of 32 is f16 if its type has blocks. A matrix
// already in the requested type is copied bit by bit.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "llm/model_source.hpp"

namespace loom::core {

struct GgufExportOptions {
  // f32, f16, bf16, q4_0, q8_0 or mxfp4; unset means each matrix as in the source.
  std::optional<DType> dtype;
  // Called after each tensor; false stops with `cancelled`, and no file appears.
  std::function<bool(int64_t done, int64_t total)> progress;
};

// Errors: unsupported (a type, an architecture or a tokenizer that GGUF cannot express), and those
// of the source and the file.
Status write_gguf(const std::string& path, const ModelSource& source,
                  const GgufExportOptions& options = {});

}  // namespace loom::core
