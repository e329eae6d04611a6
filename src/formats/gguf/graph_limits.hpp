// What llama.cpp's graphs ask of the tensors of an architecture. Loom reads more than that, but a
// GGUF file that llama.cpp refuses, or computes in another way, is not what the user asked for.
#pragma once

#include <string>
#include <vector>

#include "formats/gguf/names.hpp"

namespace loom::core {

// Errors: unsupported, by the field: llama.cpp reads no file of this architecture with it.
Status check_gguf_graph(const DecoderConfig& config, const GgufArchitecture& architecture);

// Where llama.cpp computes other numbers than the source: lines for a person.
std::vector<std::string> gguf_graph_notes(const DecoderConfig& config);

}  // namespace loom::core
