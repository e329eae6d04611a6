#include "backend/webgpu/tuning/fma_rate.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include "backend/webgpu/wgsl/frame.hpp"
#include "tensor/tensor.hpp"

namespace loom::core::webgpu {
namespace {

constexpr int64_t kInvocations = 1 << 20;
constexpr int64_t kFlopPerTurn = 8 * 4 * 2;  // of an invocation
constexpr int64_t kMaxTurns = 1 << 24;

// Eight independent chains of four. Their values stay finite.
constexpr Kernel kFmaRate{"fma_rate", R"(
fn run(i: u32) {
  var a: array<vec4<f32>, 8>;
  for (var j = 0u; j < 8u; j++) { a[j] = vec4<f32>(f32(i + j)); }
  for (var t = 0u; t < p.turns; t++) {
    for (var j = 0u; j < 8u; j++) { a[j] = fma(a[j], vec4<f32>(p.factor), vec4<f32>(p.term)); }
  }
  var sum = vec4<f32>();
  for (var j = 0u; j < 8u; j++) { sum += a[j]; }
  out_set(i, (sum.x + sum.y) + (sum.z + sum.w));
}
)"};

class FmaRate {
 public:
  explicit FmaRate(Gpu& gpu) : gpu_(&gpu) {}
  ~FmaRate() { static_cast<void>(gpu_->wait()); }
  FmaRate(const FmaRate&) = delete;
  FmaRate& operator=(const FmaRate&) = delete;

  Status prepare() {
    LOOM_ASSIGN(host_, Buffer::reserve(kInvocations * 4));
    const MemoryRange range = range_of(host_);
    const Result<int64_t> id = memory_.attach({&range, 1}, MemoryUse::scratch, false);
    return id.ok() ? Status{} : id.error();
  }

  // Seconds that `turns` turns take.
  Result<double> run(int64_t turns) {
    using Clock = std::chrono::steady_clock;
    LOOM_TRY(gpu_->wait());
    const auto start = Clock::now();
    Status status = Call(frame_, kFmaRate)
                        .floats("out", reinterpret_cast<const float*>(host_.data()), Access::write)
                        .value("turns", turns)
                        .value("factor", 0.5f)
                        .value("term", 1.0f)
                        .lanes(256)
                        .items(kInvocations);
    if (status.ok()) status = frame_.flush();
    if (status.ok()) status = gpu_->wait();
    if (!status.ok()) {
      frame_.drop();
      return status.error();
    }
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

 private:
  Gpu* gpu_;
  Counts counts_;
  Memory memory_{*gpu_};
  Frame frame_{*gpu_, memory_, counts_};
  Buffer host_;
};

}  // namespace

Result<double> fma_rate(Gpu& gpu, double seconds) {
  FmaRate rate(gpu);
  LOOM_TRY(rate.prepare());
  constexpr int kRuns = 7;
  int64_t turns = 1;
  LOOM_ASSIGN(double once, rate.run(turns));  // compiles
  while (turns < kMaxTurns) {
    LOOM_ASSIGN(once, rate.run(turns));
    if (once >= seconds / kRuns / 2) break;
    turns *= 2;
  }
  std::vector<double> rates;
  for (int i = 0; i < kRuns; ++i) {
    LOOM_ASSIGN(once, rate.run(turns));
    rates.push_back(static_cast<double>(kInvocations * kFlopPerTurn * turns) / once);
  }
  std::sort(rates.begin(), rates.end());
  return rates[kRuns / 2];
}

}  // namespace loom::core::webgpu
