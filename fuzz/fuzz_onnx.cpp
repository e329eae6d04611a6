// Any bytes as an ONNX file. It is refused in one line, or is a model that is written and read back
// to the same bytes. As a network, it is refused in one line, or has parameters of the sizes of the
// grid.
#include <algorithm>
#include <string>

#include "check.hpp"
#include "onnx/import/import.hpp"

namespace {

void check_error(const loom::Error& error, size_t size) {
  CHECK(!error.message.empty());
  CHECK(error.str().find('\n') == std::string::npos);
  CHECK(error.offset >= -1 && error.offset <= static_cast<int64_t>(size));
}

void check_network(const loom::core::ImportedNetwork& made) {
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
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto model = loom::core::parse_onnx(bytes, where);
  if (!model.ok()) {
    check_error(model.error(), size);
    return 0;
  }
  const auto written = loom::core::onnx_bytes(*model);
  CHECK(written.ok());
  const auto again = loom::core::parse_onnx(std::as_bytes(std::span(*written)), where);
  CHECK(again.ok());
  const auto twice = loom::core::onnx_bytes(*again);
  CHECK(twice.ok() && *twice == *written);
  const auto network = loom::core::import_onnx(*model, where, {8});
  if (network.ok()) {
    check_network(*network);
  } else {
    check_error(network.error(), size);
  }
  return 0;
}
