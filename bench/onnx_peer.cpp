// What bench/onnx_peer.py drives: one network written as ONNX with what Loom computes for it, or
// one ONNX file run by Loom. Inputs and outputs are bare values (f32, or i32 ids) in files.
//   loom_onnx_peer export NETWORK.json OUT.onnx OPSET BATCH X.bin Y.bin
//   loom_onnx_peer run MODEL.onnx BATCH X.bin Y.bin
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "backend/cpu/cpu.hpp"
#include "base/rng.hpp"
#include "base/text.hpp"
#include "bridge/network_json.hpp"
#include "bridge/onnx_export.hpp"
#include "bridge/onnx_import.hpp"
#include "grid/session.hpp"
#include "io/file.hpp"

namespace loom {
namespace {

Status fill_random(Network& network, ThreadPool& pool) {
  for (int i = 0; i < static_cast<int>(network.params().size()); ++i) {
    const ParamSpec& spec = network.params()[static_cast<size_t>(i)].spec;
    const Rng rng(11, static_cast<uint64_t>(i));
    const int64_t cols = spec.matrix() ? spec.shape[1] : 1;
    const float base = spec.init == Init::ones ? 1.0f : 0.0f;
    const auto rows = [&](int64_t first, int64_t count, float* out) -> Status {
      for (int64_t n = 0; n < count * cols; ++n)
        out[n] = base + 0.8f * (rng.uniform(static_cast<uint64_t>(first * cols + n)) - 0.5f);
      return {};
    };
    LOOM_TRY(network.load_param(i, DType::f32, rows, pool));
  }
  return {};
}

// Runs the network on `x`, the bytes of its input.
Result<std::vector<float>> run(const Network& network, ThreadPool& pool, std::string& x) {
  SessionOptions options;
  options.sequences = network.input()[0];
  LOOM_ASSIGN(Session session,
              Session::create(network, cpu_ops(best_isa()), pool, network.input(), options));
  Tensor t;
  t.dtype = network.vocab() > 0 ? DType::i32 : DType::f32;
  t.shape = network.input();
  t.row_stride = t.shape.last();
  t.data = reinterpret_cast<std::byte*>(x.data());
  if (x.size() != static_cast<size_t>(t.shape.count() * 4))
    return invalid(cat("the input has ", x.size(), " bytes, must have ", t.shape.count() * 4));
  LOOM_ASSIGN(const Tensor y, session.forward(t, 0, network.cells().size()));
  return std::vector<float>(y.f32(), y.f32() + y.shape.count());
}

Status write(const std::string& path, const std::vector<float>& values) {
  return write_file_atomic(path, std::as_bytes(std::span(values)));
}

Status export_case(char** args) {
  ThreadPool pool(2);
  LOOM_ASSIGN(const NetworkSpec spec, load_network(args[0]));
  LOOM_ASSIGN(Network network, Network::finalize(spec.grid, spec.input.after(std::atoll(args[3]))));
  LOOM_TRY(fill_random(network, pool));
  OnnxExportOptions options;
  options.opset = std::atoi(args[2]);
  LOOM_TRY(write_onnx(args[1], network, spec.input, options));
  const Rng rng(5, 99);
  std::string x;
  for (int64_t i = 0; i < network.input().count(); ++i) {
    const float value = 2.0f * rng.uniform(static_cast<uint64_t>(i)) - 1.0f;
    const auto id =
        static_cast<int32_t>(rng.bits(static_cast<uint64_t>(i)) %
                             static_cast<uint32_t>(std::max<int64_t>(network.vocab(), 1)));
    x.append(network.vocab() > 0 ? reinterpret_cast<const char*>(&id)
                                 : reinterpret_cast<const char*>(&value),
             4);
  }
  LOOM_TRY(write_file_atomic(args[4], std::as_bytes(std::span(x))));
  LOOM_ASSIGN(const std::vector<float> y, run(network, pool, x));
  return write(args[5], y);
}

Status run_case(char** args) {
  ThreadPool pool(2);
  LOOM_ASSIGN(const ImportedNetwork imported, load_onnx(args[0]));
  LOOM_ASSIGN(
      Network network,
      Network::finalize(imported.network.grid, imported.network.input.after(std::atoll(args[1]))));
  LOOM_TRY(imported.fill(network, pool, DType::f32));
  LOOM_ASSIGN(std::string x, read_file(args[2]));
  LOOM_ASSIGN(const std::vector<float> y, run(network, pool, x));
  return write(args[3], y);
}

}  // namespace
}  // namespace loom

int main(int argc, char** argv) {
  const std::string verb = argc > 1 ? argv[1] : "";
  loom::Status done = loom::invalid("usage: loom_onnx_peer export|run ...");
  if (verb == "export" && argc == 8) done = loom::export_case(argv + 2);
  if (verb == "run" && argc == 6) done = loom::run_case(argv + 2);
  if (!done.ok()) std::fprintf(stderr, "%s\n", done.error().str().c_str());
  return done.ok() ? 0 : 1;
}
