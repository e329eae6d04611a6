// Variants of products, from a search on the device to the file and the next engine.
#include <gmock/gmock.h>

#include <cstring>

#include "api/engine/gpu_cache.hpp"
#include "api/engine/impl.hpp"
#include "base/text.hpp"
#include "e2e/program.hpp"
#include "e2e/temp_folder.hpp"
#include "gpu/support.hpp"
#include "ops/recording/recorder.hpp"

namespace loom::core::test {
namespace {

using testing::HasSubstr;
using webgpu::Choice;

Result<Engine> forced(const std::string& cache) {
  EngineOptions options;
  options.threads = 1;
  options.device = loom::Device::gpu;
  options.gpu_library = gpu()->adapter().library;
  options.gpu_tuning = GpuTuning::force;
  options.gpu_cache = cache;
  return Engine::create(options);
}

// y = a . b of 512^3, large enough for a search.
std::vector<float> product(const Ops& ops) {
  constexpr int64_t kSide = 512, kCount = kSide * kSide;
  std::vector<float> memory(size_t{3} * kCount);
  for (size_t i = 0; i < memory.size(); ++i) {
    memory[i] = static_cast<float>(static_cast<int>(i * 37 % 101) - 50) * 0.02f;
  }
  const MemoryRange range{reinterpret_cast<const std::byte*>(memory.data()), 12 * kCount};
  const auto attached = Attached::attach(ops.device, {&range, 1}, MemoryUse::scratch, true);
  EXPECT_TRUE(attached.ok());
  const auto matrix = [&](int64_t i) {
    return f32_matrix(memory.data() + i * kCount, kSide, kSide);
  };
  Recorder recorder(ops, threads());
  // A command that waits when the search begins.
  EXPECT_TRUE(recorder.record(UnaryArgs{matrix(2), matrix(1)}).ok());
  EXPECT_TRUE(recorder.record(GemmArgs{matrix(0), matrix(1), matrix(2)}).ok());
  EXPECT_TRUE(recorder.flush().ok());
  EXPECT_TRUE(ops.device->download({&range, 1}).ok());
  return memory;
}

TEST(GpuVariants, ASearchChangesNoResultAndItsChoiceIsKept) {
  LOOM_NEEDS_GPU();
  const TempFolder folder;
  const std::string path = folder.path() + "/gpu.json";
  const std::vector<float> rule = product(gpu()->ops());
  std::vector<Choice> choices;
  {
    const Result<Engine> engine = forced(path);
    ASSERT_TRUE(engine.ok()) << engine.error().str();
    const webgpu::Backend& mine = *engine->impl().gpu;
    const std::vector<float> got = product(mine.ops());
    EXPECT_EQ(std::memcmp(got.data(), rule.data(), rule.size() * 4), 0);
    EXPECT_EQ(mine.counts().dispatches, 2) << "what is tried is not counted";
    choices = mine.choices();
    ASSERT_EQ(choices.size(), 1u);
    EXPECT_EQ(choices[0].product, "gemm f32 512x512x512");
    EXPECT_EQ(choices[0].variant, mine.last_variant());
  }
  EXPECT_EQ(read_gpu_choices(path, gpu()->adapter()).choices, choices);
  const Result<Engine> next = forced(path);
  ASSERT_TRUE(next.ok()) << next.error().str();
  EXPECT_EQ(next->impl().gpu->choices(), choices);
}

TEST(GpuVariants, AFileThatCannotBeUsedStopsNothing) {
  LOOM_NEEDS_GPU();
  const TempFolder folder;
  const std::string file = folder.write("damaged", "{");
  for (const std::string& path : {file, file + "/below", folder.path()}) {
    const Result<Engine> engine = forced(path);
    ASSERT_TRUE(engine.ok()) << path << ": " << engine.error().str();
    EXPECT_TRUE(engine->impl().gpu->choices().empty()) << path;
  }
}

TEST(GpuVariants, TheDoctorNamesTheFileAndCountsItsChoices) {
  LOOM_NEEDS_GPU();
  const TempFolder folder;
  const std::string path = folder.path() + "/gpu.json";
  const auto doctor = [&](const std::string& cache) {
    return run_loom(cat("doctor --gpu-library ", gpu()->adapter().library, " --gpu-cache ", cache))
        .out;
  };
  const std::vector<Choice> choices = {{"gemm f32 512x512x512", webgpu::variant_names()[0]},
                                       {"gemm f32 1024x512x512", "none of ours"}};
  ASSERT_TRUE(write_gpu_choices(path, gpu()->adapter(), choices).ok());
  EXPECT_THAT(doctor(path), HasSubstr(cat(path, " (choices for this GPU: 1)\n")));
  folder.write("gpu.json", "{");
  EXPECT_THAT(doctor(path), HasSubstr(cat(path, " (ignored: ")));
  EXPECT_THAT(doctor("none"), HasSubstr("gpu cache        none\n"));
}

}  // namespace
}  // namespace loom::core::test
