// `loom --device gpu` with a failing GPU: through a library that fails on demand
// (faulty/webgpu.cpp). Errors are one line; generation continues on the CPU, unless --strict.
#include <gmock/gmock.h>

#include <algorithm>

#include "api/engine/impl.hpp"
#include "base/text.hpp"
#include "e2e/program.hpp"
#include "gpu/support.hpp"
#include "ops/ops.hpp"
#include "support/paths.hpp"

namespace loom::core::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

const std::string kModel = loom_test::source_path("models/stories.entity");

// Library numbers differ between flavours; ours passes for the Dawn of 2025.
#define LOOM_NEEDS_FAULTS()                                                                 \
  LOOM_NEEDS_GPU();                                                                         \
  if (loom_test::faulty_webgpu_path().empty() || gpu()->adapter().flavour != "Dawn (2025)") \
  GTEST_SKIP() << "faults are made for the Dawn of 2025 on x86-64"

Ran run_with_fault(const std::string& fault, const std::string& more) {
  const std::string faulty =
      cat("--device gpu --gpu-library '", loom_test::faulty_webgpu_path(), "' ");
  const std::string before =
      cat("LOOM_FAULT=", fault, " LOOM_FAULTY_OF='", gpu()->adapter().library, "'");
  return run_loom(cat("run ", kModel,
                      " -p 'Once upon a time' --max-tokens 64 --threads 1 "
                      "--activations f32 --quiet ",  // no progress, which slow devices show
                      fault.empty() ? "" : faulty, more),
                  fault.empty() ? "" : before);
}

int lines(const std::string& text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

TEST(GpuFaults, ATextGoesOnOnTheCpuWhenTheDeviceIsLost) {
  LOOM_NEEDS_FAULTS();
  const Ran cpu = run_with_fault("", "");
  const Ran ran = run_with_fault("lose:4", "");
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out, cpu.out);
  EXPECT_THAT(ran.err, StartsWith("loom: note: the GPU failed, the CPU goes on: "));
  EXPECT_THAT(ran.err, HasSubstr("the GPU was lost"));
  EXPECT_EQ(lines(ran.err), 1) << ran.err;
}

TEST(GpuFaults, ATextThatIsDrawnGoesOnOnTheCpuToo) {
  LOOM_NEEDS_FAULTS();
  const std::string drawn = "--temperature 0.8 --top-k 40 --seed 3";
  const Ran cpu = run_with_fault("", drawn);
  for (const char* fault : {"lose:4", "lose:9"}) {
    const Ran ran = run_with_fault(fault, drawn);
    EXPECT_EQ(ran.code, 0);
    EXPECT_EQ(ran.out, cpu.out) << fault;
    EXPECT_THAT(ran.err, HasSubstr("the GPU was lost")) << fault;
    EXPECT_EQ(lines(ran.err), 1) << ran.err;
  }
}

TEST(GpuFaults, StrictlyALostDeviceIsOneLineAndTheTextSoFarStays) {
  LOOM_NEEDS_FAULTS();
  const Ran cpu = run_with_fault("", "");
  const Ran ran = run_with_fault("lose:8", "--strict");
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(cpu.out, StartsWith(ran.out));
  EXPECT_GT(ran.out.size(), std::string("Once upon a time").size());
  EXPECT_THAT(ran.err, AllOf(StartsWith("loom: "), HasSubstr("the GPU was lost")));
  EXPECT_EQ(lines(ran.err), 1) << ran.err;
}

TEST(GpuFaults, AKernelThatDoesNotCompile) {
  LOOM_NEEDS_FAULTS();
  const Ran strict = run_with_fault("shader:2", "--strict");
  EXPECT_EQ(strict.code, 1);
  EXPECT_THAT(strict.err, AllOf(HasSubstr("does not compile on "), StartsWith("loom: kernel ")));
  EXPECT_EQ(lines(strict.err), 1) << strict.err;
  const Ran ran = run_with_fault("shader:2", "");
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out, run_with_fault("", "").out);
  EXPECT_EQ(lines(ran.err), 1) << ran.err;
}

TEST(GpuFaults, MemoryThatIsNotThere) {
  LOOM_NEEDS_FAULTS();
  const Ran ran = run_with_fault("buffer:1000000", "");
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.out, IsEmpty());
  EXPECT_THAT(ran.err, HasSubstr(" bytes of GPU memory"));
  EXPECT_EQ(lines(ran.err), 1) << ran.err;
}

TEST(GpuFaults, AnAdapterBelowTheLimits) {
  LOOM_NEEDS_FAULTS();
  const Ran ran = run_with_fault("limits", "");
  EXPECT_EQ(ran.code, 4);
  EXPECT_THAT(ran.out, IsEmpty());
  EXPECT_THAT(ran.err, AllOf(HasSubstr("4 storage buffers"), HasSubstr("use the CPU")));
  EXPECT_EQ(lines(ran.err), 1) << ran.err;
}

// The same through the library's interface: the session continues, and can be rewound.
TEST(GpuFaults, ASessionGoesOnWhereItWas) {
  LOOM_NEEDS_GPU();
  const Result<Engine> engine = Engine::create(
      {.threads = 1, .device = loom::Device::gpu, .gpu_library = gpu()->adapter().library});
  ASSERT_TRUE(engine.ok()) << engine.error().str();
  const Result<Model> model = Model::load(*engine, kModel);
  ASSERT_TRUE(model.ok()) << model.error().str();
  std::vector<std::string> notes;
  ModelSessionOptions options;
  options.chunk = 8;
  options.activations = Activations::f32;
  options.device_failed = [&](const Error& why) { notes.push_back(why.str()); };
  Result<ModelSession> session = model->session(options), other = model->session();
  ASSERT_TRUE(session.ok()) << session.error().str();
  const auto ids = model->tokenize("Once upon a time there was a girl named Lily. She had a dog.");
  ASSERT_TRUE(ids.ok());
  const std::span<const TokenId> all = *ids;
  ASSERT_GT(all.size(), 14u);
  ASSERT_TRUE(session->feed(all.first(12)).ok());
  const std::vector<float> on_gpu(session->logits().begin(), session->logits().end());
  EXPECT_THAT(notes, IsEmpty());

  engine->impl().gpu->lose();
  EXPECT_FALSE(other->feed(all).ok()) << "the CPU was not requested";
  session->rewind(10);
  ASSERT_TRUE(session->feed(all.subspan(10, 2)).ok());
  EXPECT_EQ(notes.size(), 1u);
  EXPECT_LT(distance(on_gpu, session->logits()), 1e-4);
  EXPECT_EQ(session->position(), 12);
  ASSERT_TRUE(session->feed(all.subspan(12)).ok());
  EXPECT_EQ(notes.size(), 1u);
}

}  // namespace
}  // namespace loom::core::test
