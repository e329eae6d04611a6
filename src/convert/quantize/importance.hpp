// Importance matrices: how much a squared error of each column of a matrix costs. Read and written
// in the two formats of llama.cpp: its older .dat, and GGUF (general.type imatrix). There they have
// the names of GGUF tensors, here the paths of parameters.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "llm/model_source.hpp"

namespace loom::core {

struct Importance {
  // By path of the parameter: means of x^2, [cols], or of each expert, [experts][cols].
  std::unordered_map<std::string, std::vector<float>> means;
  int64_t rows = 0;     // inputs that were averaged
  int64_t windows = 0;  // chunks of the text
};

// Matrices without an entry have no means. Errors: bad_file (no such file, counts that do not fit),
// unsupported (a class that GGUF does not have, a build without GGUF).
Result<Importance> read_importance(const std::string& path, const ModelSource& source);
// A name that ends in .gguf is that format, every other the older one.
Status write_importance(const std::string& path, const Importance& importance,
                        const ModelSource& source);

}  // namespace loom::core
