// Any bytes as a TFLite file. It is refused in one line, or is a graph of ONNX. As a network, for
// use and for training, it is refused in one line, or has parameters of the sizes of the grid.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "check.hpp"
#include "formats/tflite/import.hpp"

namespace {

void check_tflite_error(const loom::Error& error) {
  CHECK(!error.message.empty());
  CHECK(error.str().find('\n') == std::string::npos);
}

void check_tflite_network(const loom::core::ImportedNetwork& made) {
  const auto network =
      loom::core::Network::finalize(made.network.grid, made.network.input.after(1));
  CHECK(network.ok());
  for (const loom::core::Param& want : network->params()) {
    const auto have = std::find_if(made.params.begin(), made.params.end(),
                                   [&](const auto& p) { return p.path == want.path; });
    CHECK(have != made.params.end());
    CHECK(have->shape == want.spec.shape);
    CHECK(have->values.size() == static_cast<size_t>(want.spec.shape.count()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string where = "f";
  std::vector<uint64_t> words((size + 7) / 8);  // files begin at a page
  if (size > 0) std::memcpy(words.data(), data, size);
  const auto bytes = std::as_bytes(std::span(words)).first(size);
  const auto read = loom::core::parse_tflite(bytes, where);
  if (!read.ok()) {
    check_tflite_error(read.error());
    CHECK(read.error().offset >= -1 && read.error().offset <= 4);
    return 0;
  }
  for (const bool training : {false, true}) {
    const auto network =
        loom::core::import_tflite(bytes, where, {.open_extent = 4, .for_training = training});
    if (network.ok()) {
      check_tflite_network(*network);
    } else {
      check_tflite_error(network.error());
    }
  }
  return 0;
}
