#include "ops/ops.hpp"

#include <vector>

namespace loom::core {

std::string_view op_name(OpId id) {
  static constexpr std::string_view kOpNames[] = {
#define LOOM_OP(name, Args) #name,
#include "ops/ops.def"
#undef LOOM_OP
  };
  return kOpNames[static_cast<size_t>(id)];
}

MemoryRange range_of(const Tensor& t) {
  return {t.data, t.empty() ? 0 : t.end() - t.data};
}
MemoryRange range_of(const Buffer& buffer) {
  return {buffer.data(), buffer.size()};
}

Status to_device(const Ops& ops, const Tensor& t) {
  if (ops.device == nullptr || t.empty()) return {};
  const MemoryRange range = range_of(t);
  return ops.device->upload(range.begin, range.bytes);
}

Status to_host(const Ops& ops, std::span<const Tensor> tensors) {
  if (ops.device == nullptr) return {};
  std::vector<MemoryRange> ranges;
  for (const Tensor& t : tensors) ranges.push_back(range_of(t));
  return ops.device->download(ranges);
}

Result<Buffer> allocate_for(const Ops& ops, int64_t bytes) {
  return ops.device == nullptr ? Buffer::allocate(bytes) : Buffer::reserve(bytes);
}

int64_t attention_scratch(int64_t positions) {
  // Up to four score rows, padded to whole groups of 64 positions.
  return 4 * round_up(positions + 64, 64) * static_cast<int64_t>(sizeof(float));
}

int64_t attend_scratch(int64_t positions) {
  return 4 * round_up(positions, 16) * static_cast<int64_t>(sizeof(double)) + 4096;
}

int64_t attend_dx_scratch(int64_t positions, bool capped) {
  // Kernels that process whole heads keep two matrices of weights besides the needs of a product. A
  // cap adds one of slopes.
  constexpr int64_t kWholeHead = 2048;
  if (positions > kWholeHead) return attend_scratch(positions);
  return kMatmulScratch +
         (capped ? 3 : 2) * positions * round_up(positions, 32) * int64_t{sizeof(float)};
}

bool has_body(const Ops& ops, OpId op) {
  switch (op) {
#define LOOM_OP(name, Args) \
  case OpId::name:          \
    return ops.name != nullptr;
#include "ops/ops.def"
#undef LOOM_OP
  }
  return false;
}

namespace {

using Runner = void (*)(const Ops&, const std::byte*, const Lane&);

constexpr Runner kRunners[] = {
#define LOOM_OP(name, Args)                                     \
  [](const Ops& ops, const std::byte* args, const Lane& lane) { \
    static_assert(sizeof(Args) <= Command::kMaxArgs);           \
    static_assert(std::is_trivially_copyable_v<Args>);          \
    ops.name(*reinterpret_cast<const Args*>(args), lane);       \
  },
#include "ops/ops.def"
#undef LOOM_OP
};

}  // namespace

void run_command(const Ops& ops, const Command& command, const Lane& lane) {
  kRunners[static_cast<size_t>(command.op)](ops, command.args, lane);
}

}  // namespace loom::core
