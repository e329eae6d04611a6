// Work: a kernel with all it is given, as Call (frame.hpp) describes it, and the WGSL of one or of
// several side by side. Works that run side by side share a dispatch: the first workgroups are
// those of the first, and so on.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "backend/webgpu/runtime/gpu.hpp"
#include "backend/webgpu/runtime/memory.hpp"
#include "ops/visit.hpp"

namespace loom::core::webgpu {

// A kernel by name; the text must live as long as the program.
struct Kernel {
  std::string_view name;
  std::string_view text;
};

// How invocations are numbered; see frame.hpp.
enum class Form : uint8_t { items, spread, rows, groups };

struct Operand {
  enum class View : uint8_t { absent, absent_ids, f32, i32, words, quads };
  std::string_view name;
  View view = View::f32;
  Access access = Access::read;
  BufferSlice place;
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
  // Not defaulted: value-initialization would clear the arrays each time.
  Work() {}  // NOLINT(modernize-use-equals-default)

  std::span<const Operand> all_operands() const {
    return {operands.data(), static_cast<size_t>(operand_count)};
  }
  std::span<const Value> all_values() const {
    return {values.data(), static_cast<size_t>(value_count)};
  }
  int64_t workgroups() const { return int64_t{groups[0]} * groups[1] * groups[2]; }
  // Of the uniform block.
  int words() const;

  Kernel kernel;
  std::array<Operand, kMaxOperands> operands;
  std::array<Value, kMaxValues> values;
  std::array<std::pair<std::string_view, int64_t>, kMaxConstants> constants;
  std::array<std::string_view, kMaxTexts> texts;
  int operand_count = 0, value_count = 0, constant_count = 0, text_count = 0;
  int lanes = 64;
  bool any_lanes = false;  // beside others: as many as they have
  Form form = Form::groups;
  uint32_t groups[3] = {1, 1, 1};
  int64_t shared = -1;  // bytes of workgroup memory; -1: it does not run beside others
};

constexpr size_t kMostBeside = 4;
// Words of the uniform block that each of them has after its own: how many workgroups, and how they
// lie.
constexpr int kPlaceWords = 3;

// Gives works that run side by side one number of lanes.
void fix_lanes(std::span<Work> works);
// Whether `work` can run beside `others`: as far as the device's limits go, whatever they touch.
bool fits_beside(std::span<const Work> others, const Work& work, const AdapterReport& adapter);

// What makes a pipeline another one: the addresses of its texts, and small numbers.
struct PipelineKey {
  std::array<uint64_t, 48 * kMostBeside> words;
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

// Gives every operand its binding. Every buffer is bound once: WebGPU allows no second binding of
// what is written. Only quads have a binding of their own, and only where nothing writes their
// buffer. Errors: internal with too many buffers.
Status bind(std::span<Work> works, Signature& signature,
            std::array<Binding, Signature::kMax>& storage);
PipelineKey pipeline_key(std::span<const Work> works, const Signature& signature);
// What the WGSL of a device may use: lanes in a row that swap values in registers (1: none),
// whether that has to be enabled, and how many bytes of parameters need no buffer.
struct Dialect {
  int subgroup = 1;
  bool enable = true;
  int64_t immediates = 0;
};
std::string pipeline_wgsl(std::span<const Work> works, const Signature& signature,
                          const Dialect& dialect);
// The parameters: how many bytes a kernel sees of them, and what they are; returns how many words.
int64_t parameter_bytes(std::span<const Work> works);
int parameters(std::span<const Work> works, std::span<uint32_t> words);

// `text` with its names at module level and those of its parameters changed: prefix + name.
std::string renamed(std::string_view text, std::string_view prefix);
// The functions of the WGSL library that `text` calls, and those they call.
std::string library_for(std::string_view text, bool subgroups);

}  // namespace loom::core::webgpu
