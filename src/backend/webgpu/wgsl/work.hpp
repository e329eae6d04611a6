// Work: a kernel with its arguments, as Call (frame.hpp) describes it, and the WGSL of one work or
// of several concurrent ones. Concurrent works share a dispatch: the first workgroups belong to the
// first work, and so on.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "backend/webgpu/runtime/gpu.hpp"
#include "backend/webgpu/runtime/memory.hpp"
#include "ops/recording/visit.hpp"

namespace loom::core::webgpu {

// A named kernel. The text must outlive all users (it is static).
struct Kernel {
  std::string_view name;
  std::string_view text;
};

// The numbering of invocations; see frame.hpp.
enum class Form : uint8_t { items, spread, rows, groups };

struct Operand {
  enum class View : uint8_t { absent, absent_ids, f32, i32, words, quads };
  std::string_view name;
  View view = View::f32;
  Access access = Access::read;
  BufferSlice slice;
  int64_t stride = 0;
  int binding = 0;
  bool alone = false;  // bound as vec4<u32>, its own range
  bool bound() const { return view > View::absent_ids; }
};

struct Value {
  std::string_view name;
  bool real = false;
  uint32_t bits = 0;
};

struct Work {
  static constexpr int kMaxOperands = 14, kMaxValues = 32, kMaxConstants = 32, kMaxTexts = 10;
  // A default constructor would let value-initialization clear the arrays each time.
  Work() {}  // NOLINT(modernize-use-equals-default)

  std::span<const Operand> all_operands() const {
    return {operands.data(), static_cast<size_t>(operand_count)};
  }
  std::span<const Value> all_values() const {
    return {values.data(), static_cast<size_t>(value_count)};
  }
  int64_t workgroups() const { return int64_t{groups[0]} * groups[1] * groups[2]; }
  // Words of the uniform block.
  int words() const;

  Kernel kernel;
  std::array<Operand, kMaxOperands> operands;
  std::array<Value, kMaxValues> values;
  std::array<std::pair<std::string_view, int64_t>, kMaxConstants> constants;
  std::array<std::string_view, kMaxTexts> texts;
  int operand_count = 0, value_count = 0, constant_count = 0, text_count = 0;
  int lanes = 64;
  bool any_lanes = false;  // when concurrent: takes the lanes of the others
  Form form = Form::groups;
  uint32_t groups[3] = {1, 1, 1};
  int64_t shared = -1;  // bytes of workgroup memory; -1 means that it runs alone
};

constexpr size_t kMaxBeside = 4;
// Words of the uniform block that each work has after its own: the number and layout of its
// workgroups.
constexpr int kPlaceWords = 3;

// Gives concurrent works one number of lanes.
void fix_lanes(std::span<Work> works);
// Whether `work` can join `others` within the device's limits. Does not check memory conflicts.
bool fits_beside(std::span<const Work> others, const Work& work, const AdapterReport& adapter);

// The identity of a pipeline: the addresses of its texts, and small numbers.
struct PipelineKey {
  std::array<uint64_t, 48 * kMaxBeside> words;
  size_t count = 0;
  PipelineKey() {}  // NOLINT(modernize-use-equals-default): as in Work
  void add(uint64_t word) { words[count++] = word; }
  bool operator==(const PipelineKey& other) const {
    return count == other.count &&
           std::equal(words.begin(), words.begin() + static_cast<ptrdiff_t>(count),
                      other.words.begin());
  }
};
struct PipelineKeyHash {
  size_t operator()(const PipelineKey& key) const {
    return hash_words({key.words.data(), key.count});
  }
};

// Assigns a binding to every operand. Every buffer is bound once, because WebGPU allows no second
// binding of written memory. Only quads have a binding of their own, if nothing writes their
// buffer. Errors: internal with too many buffers.
Status bind(std::span<Work> works, Signature& signature,
            std::array<Binding, Signature::kMax>& storage);
PipelineKey pipeline_key(std::span<const Work> works, const Signature& signature);
// Features that the WGSL of a device may use: adjacent lanes that exchange registers (1 means
// none); whether an enable directive is needed; bytes of parameters that need no buffer.
struct Dialect {
  int subgroup = 1;
  bool enable = true;
  int64_t immediates = 0;
};
std::string pipeline_wgsl(std::span<const Work> works, const Signature& signature,
                          const Dialect& dialect);
// The parameters: the bytes that a kernel sees of them, and their values; returns the word count.
int64_t parameter_bytes(std::span<const Work> works);
int parameters(std::span<const Work> works, std::span<uint32_t> words);

// `text` with prefixed names at module level and of its parameters: prefix + name.
std::string renamed(std::string_view text, std::string_view prefix);
// The functions of the WGSL library that `text` needs, directly or indirectly.
std::string library_for(std::string_view text, bool subgroups);

}  // namespace loom::core::webgpu
