// Shared parts of both tables of bad network descriptions.
#pragma once

#include <string>
#include <vector>

#include "bridge/network_json.hpp"
#include "io/io_testing.hpp"
#include "layers/blocks/blocks.hpp"

namespace loom::core::test {

// A description and the one line of its refusal, without the file's name; "" means a long list of
// names.
struct BadNetwork {
  std::string text, message;
};

// The end of lists of layers: unreleased kinds, and blocks.
inline std::string unreleased_layers() {
  std::string names;
  for (const LayerDef* def : layer_table()) {
    if (!released(def->kind)) names += ", " + std::string(def->name);
  }
  for (const LayerDef* def : block_table()) names += ", " + std::string(def->name);
  return names;
}

inline const std::string kDense = R"("type":"Dense","in":3,"out":3)";

inline void expect_refused(const std::string& text, const std::string& message) {
  SCOPED_TRACE(text.substr(0, 300));
  const Result<NetworkSpec> read = parse_network(text, "net");
  const std::string any = read.ok() ? "" : read.error().str();
  expect_error(read, Code::bad_file, message.empty() ? any : "net: " + message);
}

}  // namespace loom::core::test
