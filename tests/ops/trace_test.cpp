#include "ops/recording/trace.hpp"

#include <gtest/gtest.h>

#include "backend/cpu/cpu.hpp"
#include "ops/recording/program.hpp"

namespace loom::core {
namespace {

TEST(Trace, ATensorIsFoundByAnyAddressInsideOfIt) {
  Trace trace(DType::f32);
  const Tensor a = trace.fresh(Shape{4, 8});
  const Tensor b = trace.fresh(Shape{2});
  EXPECT_EQ(trace.find(a.data), 0);
  EXPECT_EQ(trace.find(a.data + 4 * 8 * 4 - 1), 0);
  EXPECT_EQ(trace.find(b.data), 1);
  EXPECT_EQ(trace.find(b.data + 4096), -1);
  EXPECT_TRUE(trace.named().ok());
}

TEST(Trace, NamesDoNotWrapWhereTheyRunOut) {
  Trace trace(DType::f32, false, 4096);
  const Tensor fits = trace.fresh(Shape{16, 16});
  EXPECT_TRUE(trace.named().ok());
  trace.fresh(Shape{1 << 20});
  const Status status = trace.named();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::out_of_memory);
  EXPECT_EQ(status.error().message,
            "activations of more than 4 kB before they share memory, more than this machine can "
            "name; take a smaller batch");
  EXPECT_EQ(trace.find(fits.data), 0);
}

TEST(Trace, NoProgramIsMadeOfOneWhoseNamesRanOut) {
  Trace trace(DType::f32, false, 64);
  trace.fresh(Shape{1024});
  ThreadPool pool(1);
  const Result<core::Program> program =
      core::Program::compile(std::move(trace), {}, cpu_ops(best_isa()), pool);
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().code, Code::out_of_memory);
}

}  // namespace
}  // namespace loom::core
