// Networks with random parameters, written as ONNX and read back; and one way to run a network.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/text.hpp"
#include "bridge/network_json.hpp"
#include "bridge/random_network.hpp"
#include "onnx/export/export.hpp"
#include "onnx/import/import.hpp"

namespace loom::core::test {

inline void fill_random(Network& network, ThreadPool& pool, DType dtype = DType::f32) {
  const Status done = fill_random(network, pool, 3, dtype);
  EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().str());
}

// The output of the network for bytes of its input; empty after a failure.
inline std::vector<float> run_network(const Network& network, ThreadPool& pool,
                                      std::vector<std::byte> x) {
  auto y = run_bytes(network, pool, std::move(x), ActivationMode::f32);
  EXPECT_TRUE(y.ok()) << (y.ok() ? "" : y.error().str());
  return y.ok() ? std::move(*y) : std::vector<float>();
}

inline std::vector<std::byte> random_input(const Network& network) {
  return random_input(network, Rng(9, 1));
}

inline void expect_close(const std::vector<float>& got, const std::vector<float>& want,
                         float tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], want[i], tolerance * (1 + std::abs(want[i]))) << "at " << i;
}

}  // namespace loom::core::test
