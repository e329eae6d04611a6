// Without a GPU, or after losing it, the user sees one line, and the CPU continues.
#include <sys/wait.h>
#include <unistd.h>

#include "backend/cpu/cpu.hpp"
#include "base/text.hpp"
#include "gpu/support.hpp"
#include "grid/init.hpp"
#include "grid/session.hpp"
#include "lab/training_hash.hpp"
#include "loom/engine.hpp"

namespace loom::core::test {
namespace {

TEST(GpuErrors, ALibraryThatDoesNotExistIsNamed) {
  const auto gpu = webgpu::Backend::open({.library = "/nowhere/libwebgpu.so"});
  ASSERT_FALSE(gpu.ok());
  EXPECT_EQ(gpu.error().code, Code::unsupported);
  EXPECT_NE(gpu.error().message.find("/nowhere/libwebgpu.so"), std::string::npos);
  EXPECT_EQ(gpu.error().message.find('\n'), std::string::npos);
}

TEST(GpuErrors, ALibraryWithoutWebGpuIsRefused) {
  const auto gpu = webgpu::Backend::open({.library = "libm.so.6"});
  ASSERT_FALSE(gpu.ok());
  EXPECT_EQ(gpu.error().code, Code::unsupported);
  EXPECT_EQ(
      gpu.error().message,
      "libm.so.6: no function wgpuCreateInstance; it is not a webgpu.h library, or an old one");
}

TEST(GpuErrors, ALostDeviceIsOneLineAndTheModelGoesOnOnTheCpu) {
  LOOM_NEEDS_GPU();
  webgpu::OpenOptions options;
  options.library = gpu()->adapter().library;
  auto opened = webgpu::Backend::open(options);
  ASSERT_TRUE(opened.ok()) << opened.error().str();
  webgpu::Backend& mine = **opened;
  const KindNetwork& kind = kind_networks()[0];
  auto network = Network::finalize(kind.network.grid, kind.network.input.after(1));
  ASSERT_TRUE(init_params(*network, DType::f32, 7, threads()).ok());
  auto on_gpu = Session::create(*network, mine.ops(), threads(), network->input(), {});
  ASSERT_TRUE(on_gpu.ok()) << on_gpu.error().str();
  std::vector<float> values(static_cast<size_t>(network->input().count()), 0.5f);
  Tensor x = f32_matrix(values.data(), 1, static_cast<int64_t>(values.size()));
  x.shape = network->input();
  ASSERT_TRUE(on_gpu->forward(x, 0, network->cells().size()).ok());

  mine.lose();
  for (int i = 0; i < 2; ++i) {
    const auto y = on_gpu->forward(x, 0, network->cells().size());
    ASSERT_FALSE(y.ok());
    EXPECT_NE(y.error().message.find("the GPU was lost"), std::string::npos) << y.error().message;
    EXPECT_EQ(y.error().message.find('\n'), std::string::npos);
  }
  auto on_cpu = Session::create(*network, cpu_ops(best_isa()), threads(), network->input(), {});
  EXPECT_TRUE(on_cpu->forward(x, 0, network->cells().size()).ok());
}

// A library's threads, which may hold its mutexes, do not exist in a child.
TEST(GpuErrors, AChildProcessIsRefusedAtOnceAndComputesOnTheCpu) {
  LOOM_NEEDS_GPU();
  webgpu::OpenOptions options;
  options.library = gpu()->adapter().library;
  const KindNetwork& kind = kind_networks()[0];
  auto network = Network::finalize(kind.network.grid, kind.network.input.after(1));
  ASSERT_TRUE(init_params(*network, DType::f32, 7, threads()).ok());
  std::vector<float> values(static_cast<size_t>(network->input().count()), 0.5f);
  Tensor x = f32_matrix(values.data(), 1, static_cast<int64_t>(values.size()));
  x.shape = network->input();
  const auto runs = [&](const Ops& ops) -> Status {
    LOOM_ASSIGN(Session session, Session::create(*network, ops, threads(), network->input(), {}));
    const auto y = session.forward(x, 0, network->cells().size());
    return y.ok() ? Status{} : y.error();
  };
  auto on_gpu = Session::create(*network, gpu()->ops(), threads(), network->input(), {});
  ASSERT_TRUE(on_gpu.ok()) << on_gpu.error().str();
  ASSERT_TRUE(on_gpu->forward(x, 0, network->cells().size()).ok());

  const auto refused = [](const Error& error) {
    return error.code == Code::unsupported &&
           error.message.find("has forked this one; use the CPU") != std::string::npos;
  };
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    const auto y = on_gpu->forward(x, 0, network->cells().size());
    const auto opened = webgpu::Backend::open(options);
    const Status anew = runs(gpu()->ops());
    int wrong = y.ok() || !refused(y.error()) ? 1 : 0;
    if (opened.ok() || !refused(opened.error())) wrong |= 2;
    if (anew.ok() || !refused(anew.error())) wrong |= 4;
    if (!runs(cpu_ops(best_isa())).ok()) wrong |= 8;
    { const auto ended = std::move(on_gpu); }
    _exit(wrong);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(on_gpu->forward(x, 0, network->cells().size()).ok());
}

TEST(GpuErrors, MemoryThatIsNotThereIsOneLineAndTheDeviceGoesOn) {
  LOOM_NEEDS_GPU();
  std::vector<std::byte> something(64);
  const MemoryRange huge{something.data(), int64_t{1} << 45};
  const auto id = gpu()->attach({&huge, 1}, MemoryUse::scratch, false);
  ASSERT_FALSE(id.ok());
  EXPECT_NE(id.error().message.find("is larger than"), std::string::npos) << id.error().message;
  const MemoryRange small{something.data(), 64};
  const auto again = gpu()->attach({&small, 1}, MemoryUse::scratch, true);
  ASSERT_TRUE(again.ok()) << again.error().str();
  gpu()->detach(*again);
}

}  // namespace
}  // namespace loom::core::test
