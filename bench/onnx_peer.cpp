// The Loom side of bench/onnx_peer.py. It writes one network as ONNX with the results of Loom, or
// runs one ONNX file in Loom. Inputs and outputs are bare values (f32, or i32 ids) in files.
//   loom_onnx_peer export NETWORK.json OUT.onnx OPSET BATCH X.bin Y.bin
//   loom_onnx_peer run MODEL.onnx BATCH X.bin Y.bin
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/threads/thread_pool.hpp"
#include "bridge/network_json.hpp"
#include "bridge/random_network.hpp"
#include "io/files/file.hpp"
#include "onnx/export/export.hpp"
#include "onnx/import/import.hpp"

namespace loom::core {
namespace {

Status write(const std::string& path, const std::vector<float>& values) {
  return write_file_atomic(path, std::as_bytes(std::span(values)));
}

Status export_case(char** args) {
  ThreadPool pool(2);
  LOOM_ASSIGN(const NetworkSpec spec, load_network(args[0]));
  LOOM_ASSIGN(Network network, Network::finalize(spec.grid, spec.input.after(std::atoll(args[3]))));
  LOOM_TRY(test::fill_random(network, pool, 11, DType::f32));
  OnnxExportOptions options;
  options.opset = std::atoi(args[2]);
  LOOM_TRY(write_onnx(args[1], network, spec.input, options));
  const std::vector<std::byte> x = test::random_input(network, Rng(5, 99));
  LOOM_TRY(write_file_atomic(args[4], x));
  LOOM_ASSIGN(const std::vector<float> y, test::run_bytes(network, pool, x, ActivationMode::q8));
  return write(args[5], y);
}

Status run_case(char** args) {
  ThreadPool pool(2);
  LOOM_ASSIGN(const ImportedNetwork imported, load_onnx(args[0]));
  LOOM_ASSIGN(
      Network network,
      Network::finalize(imported.network.grid, imported.network.input.after(std::atoll(args[1]))));
  LOOM_TRY(imported.fill(network, pool, DType::f32));
  LOOM_ASSIGN(const std::string read, read_file(args[2]));
  const std::span<const std::byte> bytes = std::as_bytes(std::span(read));
  const std::vector<std::byte> x(bytes.begin(), bytes.end());
  LOOM_ASSIGN(const std::vector<float> y, test::run_bytes(network, pool, x, ActivationMode::q8));
  return write(args[3], y);
}

}  // namespace
}  // namespace loom::core

int main(int argc, char** argv) {
  const std::string verb = argc > 1 ? argv[1] : "";
  loom::Status done = loom::core::invalid("usage: loom_onnx_peer export|run ...");
  if (verb == "export" && argc == 8) done = loom::core::export_case(argv + 2);
  if (verb == "run" && argc == 6) done = loom::core::run_case(argv + 2);
  if (!done.ok()) std::fprintf(stderr, "%s\n", done.error().str().c_str());
  return done.ok() ? 0 : 1;
}
