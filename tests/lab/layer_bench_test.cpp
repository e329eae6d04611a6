// The cases of `loom bench layers`: a time of a network that gives nothing but 0 says nothing.
#include "lab/layer_bench.hpp"

#include <gtest/gtest.h>

#include "backend/cpu/cpu.hpp"
#include "base/threads/thread_pool.hpp"

namespace loom::core::test {
namespace {

TEST(LayerBench, EveryNetworkOfSuiteEGivesSomething) {
  ThreadPool pool(1);
  const Ops& ops = cpu_ops(best_isa());
  int seen = 0;
  for (const LayerCase& c : layer_cases()) {
    if (c.suite != "E") continue;
    Result<LayerRun> run = LayerRun::create(c, DType::f32, ActivationMode::f32, ops, pool);
    ASSERT_TRUE(run.ok()) << c.name << ": " << run.error().str();
    ASSERT_TRUE(run->run().ok()) << c.name;
    EXPECT_GT(run->output_magnitude().value(), 0) << c.name;
    ++seen;
  }
  EXPECT_GT(seen, 20);
}

}  // namespace
}  // namespace loom::core::test
