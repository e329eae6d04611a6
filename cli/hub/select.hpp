// The files of a repository that a model needs. Plain data in, plain data out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "loom/result.hpp"
#include "name.hpp"

namespace loom::cli {

struct HubFile {
  std::string path;   // in the repository
  int64_t size = -1;  // bytes; -1 means unknown
  // Name of its blob: SHA-256 for files in LFS, else git's hash of a blob (SHA-1 over a header and
  // the bytes). Empty means unknown.
  std::string etag;
};

struct Selection {
  std::vector<HubFile> files;
  std::string note;  // the choice among several GGUF files, for people; empty if there was none
};

// Without a file in the name: the safetensors weights with the JSON and tokenizer files; if there
// are none, the GGUF file of Q4_K_M, or of the readable number type of the nearest size; if there
// are none, pytorch_model.bin in place of the safetensors weights. With one:
// that file, or all parts of the GGUF file of that quantization. Errors: not_found and
// invalid_argument, which list the files.
Result<Selection> select_files(const std::vector<HubFile>& all, const HubName& name);

// "Q4_K_M" for "model-Q4_K_M.gguf" or "q4_k_m/model-00001-of-00002.gguf"; empty if the name has
// none.
std::string quantisation_of(std::string_view path);

// The name of a GGUF file without the number of its part.
std::string gguf_group(std::string_view path);

bool is_gguf(std::string_view path);
// Weights of torch.save: pytorch_model.bin or a shard of it.
bool is_torch_weights(std::string_view path);
// Weights that are loaded with the other files of their folder.
bool is_folder_weights(std::string_view path);

}  // namespace loom::cli
