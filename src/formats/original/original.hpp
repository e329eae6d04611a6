// Files of the original project ("loom1"): JSON with or without weights, and binary ".entity" of
// version 1. They become a NetworkSpec, with f32 weights by parameter path. If the original
// computes something else than it documents, the documentation wins and a note says so. Missing
// data gives a note or an Error, never a guess.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grid/builders.hpp"
#include "grid/network.hpp"
#include "ops/families/fwd.hpp"

namespace loom::core {

struct Loom1Param {
  std::string path;  // as in Param::path: "(0, 0, 1, 0)/2/weight"
  std::vector<float> values;
};

struct Loom1Network {
  NetworkSpec spec;
  std::vector<Loom1Param> params;  // empty for an architecture
  std::vector<std::string> notes;  // "layers[0]: seq_length absent, taken as 1"

  const Loom1Param* find(std::string_view path) const;
};

struct Loom1Options {
  // The input shape of one sample, for files whose first layer does not define it; rank 0 means
  // that the layers define it.
  Shape input;
};

// Network::finalize checks it as a whole. Errors name `where`, the byte and the layer.
//   bad_file: violates the format; unsupported: a function that Loom does not have, or that the
//   file stores incompletely (mixture gates, metacognition, links inside containers).
Result<Loom1Network> parse_loom1_json(std::string_view text, const std::string& where,
                                      const Loom1Options& options = {});
Result<Loom1Network> parse_loom1_entity(std::span<const std::byte> bytes, const std::string& where,
                                        const Loom1Options& options = {});

// Detects a file by its start: an object with "layers_per_cell", or the magic and version 1. It is
// here so that a build without this reader still detects its files.
inline bool is_loom1_json(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{' &&
         text.substr(0, 4096).find("\"layers_per_cell\"") != std::string_view::npos;
}
inline bool is_loom1_entity(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return text.size() > 10 && text.starts_with(std::string_view("ENTITY\0\0\1\0", 10));
}

// Packs the values of `file` into the parameters of `network`, which is the finalized file.spec.
// Cells without a number type take `dtype`. Parameters without values stay empty (init_params fills
// them).
Status load_loom1(const Loom1Network& file, Network& network, DType dtype, ThreadPool& pool);

}  // namespace loom::core
