// Downloads while the device continues.
#include <gtest/gtest.h>

#include "ops/recording/device.hpp"
#include "tensor/tensor.hpp"
#include "webgpu/gpu.hpp"

namespace loom::core::test {
namespace {

// A second instance of the adapter, with a pending download.
struct UnderWay {
  UnderWay() {
    webgpu::OpenOptions options;
    options.library = gpu()->adapter().library;
    auto opened = webgpu::Backend::open(options);
    EXPECT_TRUE(opened.ok()) << opened.error().str();
    if (!opened.ok()) return;
    backend = std::move(*opened);
    auto made = Attached::attach(backend.get(), {&all, 1}, MemoryUse::state, true);
    EXPECT_TRUE(made.ok());
    if (made.ok()) attached = std::move(*made);
    ticket = backend->begin_download({&all, 1});
    EXPECT_TRUE(ticket.ok());
  }

  std::vector<float> memory = std::vector<float>(300);
  MemoryRange all{reinterpret_cast<const std::byte*>(memory.data()), 1200};
  std::unique_ptr<webgpu::Backend> backend;
  Attached attached;
  Result<int64_t> ticket = 0;
};

TEST(GpuDownloads, ThatAreBegunBringWhatWasThereThen) {
  if (gpu() == nullptr) GTEST_SKIP() << no_gpu();
  Device& device = *gpu();
  std::vector<float> memory(300);
  const MemoryRange all{reinterpret_cast<const std::byte*>(memory.data()), 1200};
  const auto attached = Attached::attach(&device, {&all, 1}, MemoryUse::state, false);
  ASSERT_TRUE(attached.ok());
  std::vector<int64_t> tickets;
  for (int i = 0; i < 3; ++i) {
    memory.assign(300, static_cast<float>(i + 1));
    ASSERT_TRUE(device.upload(all.begin, all.bytes).ok());
    // A part, which begins and ends anywhere.
    const MemoryRange part{all.begin + 40, 800 - 4 * i};
    const auto ticket = device.begin_download({&part, 1});
    ASSERT_TRUE(ticket.ok()) << ticket.error().str();
    tickets.push_back(*ticket);
  }
  for (const int i : {1, 0, 2}) {
    memory.assign(300, 0.0f);
    ASSERT_TRUE(device.end_download(tickets[static_cast<size_t>(i)]).ok());
    const auto value = static_cast<float>(i + 1);
    EXPECT_EQ(memory[9], 0.0f);
    EXPECT_EQ(memory[10], value);
    EXPECT_EQ(memory[static_cast<size_t>(209 - i)], value);
    EXPECT_EQ(memory[static_cast<size_t>(210 - i)], 0.0f);
  }
  EXPECT_FALSE(device.end_download(tickets[0]).ok()) << "ended twice";
}

TEST(GpuDownloads, MayBeUnderWayWhenTheDeviceIsClosed) {
  if (gpu() == nullptr) GTEST_SKIP() << no_gpu();
  const UnderWay one;
  ASSERT_NE(one.backend, nullptr);
}

TEST(GpuDownloads, OfALostDeviceAreOneLine) {
  if (gpu() == nullptr) GTEST_SKIP() << no_gpu();
  const UnderWay one;
  ASSERT_TRUE(one.backend != nullptr && one.ticket.ok());
  one.backend->lose();
  const Status status = one.backend->end_download(*one.ticket);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find("the GPU was lost"), std::string::npos);
  EXPECT_EQ(status.error().message.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace loom::core::test
