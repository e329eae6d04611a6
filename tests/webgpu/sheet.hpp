// Command lists on the GPU against the reference; compares all memory and counts dispatches.
#pragma once

#include "backend/reference/reference.hpp"
#include "conformance/support.hpp"
#include "ops/recording/recorder.hpp"
#include "webgpu/gpu.hpp"

namespace loom::core::test {

// Memory for the tensors of a list, with the same contents each time.
class Sheet {
 public:
  explicit Sheet(const Ops& ops, size_t values) : recorder_(ops, pool()), memory_(values) {
    for (size_t i = 0; i < memory_.size(); ++i) {
      memory_[i] = static_cast<float>(static_cast<int>(i * 37 % 101) - 50) * 0.02f;
    }
    const MemoryRange range{reinterpret_cast<const std::byte*>(memory_.data()), bytes()};
    auto attached = Attached::attach(ops.device, {&range, 1}, MemoryUse::scratch, true);
    EXPECT_TRUE(attached.ok());
    attached_ = std::move(*attached);
  }
  Recorder& ops() { return recorder_; }
  Tensor matrix(int64_t rows, int64_t cols) {
    const Tensor t = f32_matrix(memory_.data() + next_, rows, cols);
    next_ += rows * cols;
    return t;
  }
  Tensor ids(int64_t n, int64_t classes) {
    Tensor t = matrix(1, n);
    t.dtype = DType::i32;
    t.shape = Shape{n};
    for (int64_t i = 0; i < n; ++i) t.i32()[i] = static_cast<int32_t>(i * 5 % classes);
    return t;
  }
  Tensor packed(int64_t rows, int64_t cols) {
    const R16 g = r16_geometry(DType::f32, rows, cols);
    next_ = (next_ + 15) / 16 * 16;
    const Tensor t = r16_tensor(g, reinterpret_cast<std::byte*>(memory_.data() + next_));
    next_ += g.bytes() / 4;
    std::fill_n(reinterpret_cast<float*>(t.data), g.bytes() / 4, 0.0f);
    return t;
  }
  // Runs the list `times` times; returns the memory.
  std::vector<float> run(int times = 1) {
    return around([&] {
      for (int i = 0; i < times; ++i) {
        const Status status = recorder_.run();
        EXPECT_TRUE(status.ok()) << status.error().str();
      }
    });
  }
  // Runs it once and starts a new list, from the first tensor; memory is unchanged.
  std::vector<float> run_and_forget() {
    next_ = 0;
    return around([&] { EXPECT_TRUE(recorder_.flush().ok()); });
  }

 private:
  template <class F>
  std::vector<float> around(F run) {
    Device* device = recorder_.ops().device;
    const MemoryRange range{reinterpret_cast<const std::byte*>(memory_.data()), bytes()};
    if (device != nullptr) {
      EXPECT_TRUE(device->upload(range.begin, range.bytes).ok());
    }
    run();
    if (device != nullptr) {
      EXPECT_TRUE(device->download({&range, 1}).ok());
    }
    return memory_;
  }

  static ThreadPool& pool() {
    static ThreadPool one(1);
    return one;
  }
  int64_t bytes() const { return static_cast<int64_t>(memory_.size()) * 4; }
  Recorder recorder_;
  std::vector<float> memory_;
  Attached attached_;
  int64_t next_ = 0;
};

inline void expect_near(const std::string& what, const std::vector<float>& a,
                        const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_NEAR(a[i], b[i], 2e-6 * std::max(1.0f, std::abs(a[i]))) << what << ", value " << i;
  }
}

// Records with `list` for both, and compares all memory; `dispatches` are expected. values: the
// number of floats that the list may use.
template <class List>
void check(const std::string& what, int64_t dispatches, List list, size_t values = 8192) {
  if (gpu() == nullptr) GTEST_SKIP() << no_gpu();
  Sheet expected(reference_ops(), values), got(gpu()->ops(), values);
  ASSERT_TRUE(list(expected).ok()) << what;
  ASSERT_TRUE(list(got).ok()) << what;
  const std::vector<float> a = expected.run();
  const int64_t before = gpu()->counts().dispatches;
  const std::vector<float> b = got.run();
  EXPECT_EQ(gpu()->counts().dispatches - before, dispatches) << what;
  expect_near(what, a, b);
}

}  // namespace loom::core::test
