#include "backend/webgpu/wgsl/subgroup.hpp"

#include <bit>
#include <vector>

namespace loom::core::webgpu {
namespace {

constexpr int kLanes = 256, kBits = 7, kMax = 1 << kBits;

constexpr Kernel kProbe{"swap_lanes", R"(
fn run(row: u32, lane: u32) {
  for (var bit = 0u; (1u << bit) < subgroup; bit++) {
    got_set(bit * lanes + lane, swap_lanes(f32(lane), 1u << bit));
  }
}
)"};

// The largest subgroup size, up to the requested one, in which lanes exchange correctly.
Result<int> largest_subgroup(Gpu& gpu, Memory& memory, Frame& frame) {
  std::vector<float> got(kBits * kLanes, -1.0f);
  const MemoryRange range{reinterpret_cast<const std::byte*>(got.data()),
                          static_cast<int64_t>(got.size() * sizeof(float))};
  LOOM_ASSIGN(const int64_t id, memory.attach({&range, 1}, MemoryUse::scratch, true));
  Status status =
      Call(frame, kProbe).floats("got", got.data(), Access::write).lanes(kLanes).rows(1);
  if (status.ok()) status = frame.flush();
  if (status.ok()) {
    const BufferSlice slice = memory.find(range.begin);
    const Gpu::Read read{slice.buffer, slice.offset, got.data(), range.bytes};
    status = gpu.read({&read, 1});
  }
  memory.detach(id);
  LOOM_TRY(std::move(status));
  int subgroup = 1;
  for (size_t bit = 0; subgroup < gpu.report().subgroup; ++bit, subgroup *= 2) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const float value = got[bit * kLanes + static_cast<size_t>(lane)];
      if (value != static_cast<float>(lane ^ subgroup)) return subgroup;
    }
  }
  return subgroup;
}

// The subgroup size to request from an adapter; 1 means none.
int likely_subgroup(const AdapterReport& report) {
  if (!report.subgroups) return 1;
  // wgpu-native reports no sizes. Drivers that compute on the CPU have a constant size.
  if (report.subgroup_max == 0) return report.software ? kMax : 1;
  const uint32_t size = report.subgroup_min;
  return size == report.subgroup_max && size <= kMax && std::has_single_bit(size)
             ? static_cast<int>(size)
             : 1;
}

}  // namespace

Status find_subgroup(Gpu& gpu, Memory& memory, Frame& frame) {
  const int likely = likely_subgroup(gpu.report());
  if (likely == 1) return {};
  gpu.set_subgroup(likely);
  const Result<int> subgroup = largest_subgroup(gpu, memory, frame);
  const bool is_reported = gpu.report().subgroup_max != 0;
  gpu.set_subgroup(subgroup.ok() && (!is_reported || *subgroup == likely) ? *subgroup : 1);
  if (subgroup.ok()) return {};
  frame.drop();
  // A compiler that refuses the kernel does not disqualify the device. A lost device does.
  return gpu.check();
}

}  // namespace loom::core::webgpu
