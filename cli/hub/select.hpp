// Which files of a repository a model needs. Plain data in, plain data out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "loom/result.hpp"
#include "name.hpp"

namespace loom::cli {

struct HubFile {
  std::string path;   // below the repository
  int64_t size = -1;  // bytes; -1: not known yet
  // Name of its blob: SHA-256 of files in LFS, else the hash that git gives a blob (SHA-1 over a
  // header and the bytes). "": not known yet.
  std::string etag;
};

// Without a file in the name: the safetensors weights with the JSON and the tokenizer beside them;
// where there are none, the GGUF file if there is one alone. With one: that file, or the GGUF file
// of that quantisation, in all its parts. Errors: not_found and invalid_argument, with what there
// is.
Result<std::vector<HubFile>> select_files(const std::vector<HubFile>& all, const HubName& name);

// "Q4_K_M" of "model-Q4_K_M.gguf" or of "q4_k_m/model-00001-of-00002.gguf"; "": none is in the
// name.
std::string quantisation_of(std::string_view path);

// What a GGUF file is called, without the number of its part.
std::string gguf_group(std::string_view path);

bool is_gguf(std::string_view path);

}  // namespace loom::cli
