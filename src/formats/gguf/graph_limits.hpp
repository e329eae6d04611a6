// Requirements of llama.cpp's graphs on the tensors of an architecture. Loom reads more, but users
// do not want a GGUF file that llama.cpp refuses or computes differently.
#pragma once

#include <string>
#include <vector>

#include "formats/gguf/names.hpp"

namespace loom::core {

// Errors: unsupported, naming the field: llama.cpp reads no file of this architecture with it.
Status check_gguf_graph(const DecoderConfig& config, const DecoderFamily& family);

// Cases in which llama.cpp computes other numbers than the source: lines for people.
std::vector<std::string> gguf_graph_notes(const DecoderConfig& config);

}  // namespace loom::core
