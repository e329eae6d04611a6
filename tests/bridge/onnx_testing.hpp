// Networks with random parameters, written as ONNX and read back; and one way to run a network.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backend/cpu/cpu.hpp"
#include "base/rng.hpp"
#include "base/text.hpp"
#include "bridge/network_json.hpp"
#include "bridge/onnx_export.hpp"
#include "bridge/onnx_import.hpp"
#include "grid/session.hpp"

namespace loom::testing {

// Every parameter is filled, biases too, so that none can be lost unseen.
inline void fill_random(Network& network, ThreadPool& pool, DType dtype = DType::f32) {
  for (int i = 0; i < static_cast<int>(network.params().size()); ++i) {
    const ParamSpec& spec = network.params()[static_cast<size_t>(i)].spec;
    const Rng rng(3, static_cast<uint64_t>(i));
    const int64_t cols = spec.matrix() ? spec.shape[1] : 1;
    const float base = spec.init == Init::ones ? 1.0f : 0.0f;
    const auto rows = [&](int64_t first, int64_t count, float* out) -> Status {
      for (int64_t n = 0; n < count * cols; ++n)
        out[n] = base + 0.8f * (rng.uniform(static_cast<uint64_t>(first * cols + n)) - 0.5f);
      return {};
    };
    const Status done = network.load_param(i, dtype, rows, pool);
    EXPECT_TRUE(done.ok()) << done.error().str();
  }
}

// What the network computes for bytes of its input (f32, or i32 ids).
inline std::vector<float> run_network(const Network& network, ThreadPool& pool,
                                      std::vector<std::byte> x) {
  SessionOptions options;
  options.sequences = network.input()[0];
  options.activations = ActivationMode::f32;
  auto session = Session::create(network, cpu_ops(best_isa()), pool, network.input(), options);
  EXPECT_TRUE(session.ok()) << session.error().str();
  if (!session.ok()) return {};
  Tensor t;
  t.dtype = network.vocab() > 0 ? DType::i32 : DType::f32;
  t.shape = network.input();
  t.row_stride = t.shape.last();
  t.data = x.data();
  EXPECT_EQ(x.size(), static_cast<size_t>(4 * t.shape.count()));
  const auto y = session->forward(t, 0, network.cells().size());
  EXPECT_TRUE(y.ok()) << y.error().str();
  if (!y.ok()) return {};
  return {y->f32(), y->f32() + y->shape.count()};
}

inline std::vector<std::byte> random_input(const Network& network) {
  std::vector<std::byte> out;
  const Rng rng(9, 1);
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

inline void expect_close(const std::vector<float>& got, const std::vector<float>& want,
                         float tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], want[i], tolerance * (1 + std::abs(want[i]))) << "at " << i;
}

}  // namespace loom::testing
