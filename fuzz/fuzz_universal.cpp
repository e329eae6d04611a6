// Any bytes as a safetensors file for the universal loader: refused in one line, or a network whose
// every parameter is filled from the file and whose report names every tensor once.
#include <string>

#include "base/threads/thread_pool.hpp"
#include "check.hpp"
#include "formats/universal/infer.hpp"
#include "safetensors_mutator.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string where = "f";
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  auto tensors = loom::core::SafeTensors::parse(bytes, where);
  if (!tensors.ok()) return 0;
  const loom::core::SafeTensorsFile file(std::move(*tensors));
  const auto made = loom::core::infer_network(file, where);
  if (!made.ok()) {
    CHECK(!made.error().message.empty());
    CHECK(made.error().str().find('\n') == std::string::npos);
    return 0;
  }
  CHECK(made->report.size() == file.entries().size());
  auto network = loom::core::Network::finalize(made->spec.grid, made->spec.input.after(1));
  CHECK(network.ok());
  static loom::core::ThreadPool pool(1);
  const auto loaded =
      loom::core::load_inferred(*made, file, *network, loom::core::DType::f32, pool);
  CHECK(loaded.ok() || network->has_links() || loaded.error().code != loom::Code::internal);
  return 0;
}
