// A network with random parameters, a random input, and a way to run it, for the tests of ONNX and
// bench/onnx_peer.cpp.
#pragma once

#include <string>
#include <vector>

#include "backend/cpu/cpu.hpp"
#include "base/numbers/rng.hpp"
#include "base/text.hpp"
#include "grid/session.hpp"

namespace loom::core::test {

// Every parameter is filled, biases too, so that no loss goes unnoticed.
inline Status fill_random(Network& network, ThreadPool& pool, uint64_t seed, DType dtype) {
  for (int i = 0; i < static_cast<int>(network.params().size()); ++i) {
    const ParamSpec& spec = network.params()[static_cast<size_t>(i)].spec;
    const Rng rng(seed, static_cast<uint64_t>(i));
    const int64_t cols = spec.matrix() ? spec.shape[1] : 1;
    const float base = spec.init == Init::ones ? 1.0f : 0.0f;
    const auto rows = [&](int64_t first, int64_t count, float* out) -> Status {
      for (int64_t n = 0; n < count * cols; ++n)
        out[n] = base + 0.8f * (rng.uniform(static_cast<uint64_t>(first * cols + n)) - 0.5f);
      return {};
    };
    LOOM_TRY(network.load_param(i, dtype, rows, pool));
  }
  return {};
}

// Values from -1 to 1 as f32, or ids as i32 if the network takes ids.
inline std::vector<std::byte> random_input(const Network& network, const Rng& rng) {
  std::vector<std::byte> out;
  for (int64_t i = 0; i < network.input().count(); ++i) {
    const float value = 2.0f * rng.uniform(static_cast<uint64_t>(i)) - 1.0f;
    const auto id =
        static_cast<int32_t>(rng.bits(static_cast<uint64_t>(i)) %
                             static_cast<uint32_t>(network.vocab() > 0 ? network.vocab() : 1));
    const auto* from = network.vocab() > 0 ? reinterpret_cast<const std::byte*>(&id)
                                           : reinterpret_cast<const std::byte*>(&value);
    out.insert(out.end(), from, from + 4);
  }
  return out;
}

// The output of the network for the bytes of its input.
inline Result<std::vector<float>> run_bytes(const Network& network, ThreadPool& pool,
                                            std::vector<std::byte> x, ActivationMode activations) {
  SessionOptions options;
  options.sequences = network.input()[0];
  options.activations = activations;
  LOOM_ASSIGN(Session session,
              Session::create(network, cpu_ops(best_isa()), pool, network.input(), options));
  Tensor t;
  t.dtype = network.vocab() > 0 ? DType::i32 : DType::f32;
  t.shape = network.input();
  t.row_stride = t.shape.last();
  t.data = x.data();
  if (x.size() != static_cast<size_t>(t.shape.count() * 4))
    return invalid(cat("the input has ", x.size(), " bytes, must have ", t.shape.count() * 4));
  LOOM_ASSIGN(const Tensor y, session.forward(t, 0, network.cells().size()));
  return std::vector<float>(y.f32(), y.f32() + y.shape.count());
}

}  // namespace loom::core::test
