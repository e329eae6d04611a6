// Frame: the dispatches of one list of commands, on their way to one submission. Call: one
// dispatch, described by the code of an op: a kernel's text, the tensors it names, numbers.
//
// The text of a kernel is WGSL that sees, for a tensor bound as `x`,
//   x_at(i) -> f32 (i32 for tensors of i32)  its value i, counted from its first
//   x_set(i, v)                              where it is written
//   p.x_s                                    elements between its rows
//   has_x                                    false for an absent tensor, which reads as 0
// for words() also x_word(i) and x_put(i, v), for quads() x_quad(i); for value("n", ..) p.n; for
// constant("c", ..) a const c. It defines one of
//   fn run(i: u32)              for items(): one invocation per item
//   the same                    for spread(): one invocation for `each` items, of which the j-th is
//                               spot(i, j); it counts where here(i, j)
//   fn run(row: u32, lane: u32) for rows(): a workgroup of `lanes` invocations per row
//   a whole fn main             for groups(): `lanes` is the workgroup size it should have
// Functions of wgsl_library.cpp are added where the text calls them.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "backend/webgpu/gpu.hpp"
#include "backend/webgpu/memory.hpp"
#include "backend/webgpu/profile.hpp"
#include "ops/visit.hpp"

namespace loom::webgpu {

// A kernel by name; the text must live as long as the program.
struct Kernel {
  std::string_view name;
  std::string_view text;
};

class Frame {
 public:
  Frame(Gpu& gpu, Memory& memory, Counts& counts)
      : gpu_(&gpu), memory_(&memory), counts_(&counts) {}
  ~Frame();
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  // A copy behind the dispatches so far, in whole words.
  void copy(const Place& from, const Place& to, int64_t bytes) {
    copies_.push_back({from, to, bytes, dispatches_.size()});
  }
  // Memory as the dispatches from now on see it. What was described before is not submitted for it
  // where there is little to write: it waits with the next dispatches.
  Status write(const Place& to, const void* data, int64_t bytes);
  // Submits what was described so far.
  Status flush();
  int64_t pending() const { return static_cast<int64_t>(dispatches_.size()); }
  // Forgets it: an error happened.
  void drop();
  // Where dispatches are timed; null: nowhere.
  void set_profile(Profile* profile) { profile_ = profile; }
  const AdapterReport& adapter() const { return gpu_->report(); }
  Place place(const std::byte* p) const { return memory_->find(p); }
  // Memory that kernels of one op share, valid until the next op asks: for results between two
  // dispatches. `bytes` from its start; contents mean nothing.
  Result<Place> temporary(int64_t bytes);
  // Words for the next dispatch, whatever their number: what does not fit its parameters.
  Result<Place> table(std::span<const uint32_t> words);
  // Where a tensor lies; buffer is null where it is not on the device.
  Place place_of(const Tensor& t) const { return memory_->find(t.data); }
  int64_t own_memory() const {
    return uniform_buffer_.bytes + temporary_bytes_ + table_buffer_.bytes + staging_buffer_.bytes;
  }

 private:
  friend class Call;
  // What makes a pipeline another one: the addresses of its texts, and small numbers.
  struct Key {
    std::array<uint64_t, 48> words{};
    size_t count = 0;
    void add(uint64_t word) { words[count++] = word; }
    bool operator==(const Key& other) const {
      return count == other.count &&
             std::equal(words.begin(), words.begin() + count, other.words.begin());
    }
  };
  struct KeyHash {
    size_t operator()(const Key& key) const { return hash_words({key.words.data(), key.count}); }
  };
  struct Pipeline {
    wgpu::ComputePipeline pipeline = nullptr;
    int64_t used = 0;
  };
  struct Dispatch {
    std::string_view name;
    wgpu::ComputePipeline pipeline = nullptr;
    Signature signature;
    std::array<Binding, Signature::kMax> storage{};
    uint32_t groups[3] = {1, 1, 1};
  };
  struct Copy {
    Place from, to;
    int64_t bytes = 0;
    size_t before = 0;  // a dispatch
  };
  // Bytes for a buffer of the device that every submission finds filled with its own.
  struct Sent {
    wgpu::Buffer buffer = nullptr;
    int64_t bytes = 0;
    std::vector<std::byte> last;  // what was sent; the same again is there already
  };
  Status reserve(Sent& to, int64_t bytes, wgpu::Flags usage);
  Status send(Sent& to, const void* data, int64_t bytes);
  Status send_all();
  Status encode(wgpu::CommandEncoder encoder);
  size_t most_dispatches() const;
  void evict();

  Gpu* gpu_;
  Memory* memory_;
  Counts* counts_;
  Profile* profile_ = nullptr;
  std::unordered_map<Key, Pipeline, KeyHash> pipelines_;
  int64_t tick_ = 0;
  std::vector<Copy> copies_;
  std::vector<Dispatch> dispatches_;
  std::vector<std::byte> uniforms_;
  Sent uniform_buffer_;
  wgpu::Buffer temporary_ = nullptr;
  int64_t temporary_bytes_ = 0;
  std::vector<uint32_t> table_;
  Sent table_buffer_;
  std::vector<std::byte> staged_;  // what copies bring to the device
  Sent staging_buffer_;
};

class Call {
 public:
  Call(Frame& frame, const Kernel& kernel) : frame_(&frame), kernel_(kernel) {}

  Call& read(std::string_view name, const Tensor& t) { return tensor(name, t, Access::read); }
  Call& write(std::string_view name, const Tensor& t) { return tensor(name, t, Access::write); }
  Call& update(std::string_view name, const Tensor& t) { return tensor(name, t, Access::update); }
  // The same for indices, which may be absent: as i32.
  Call& ids(std::string_view name, const Tensor& t, Access access = Access::read);
  // Bytes as 32-bit words; begin is a multiple of 4 from the start of what was attached.
  Call& words(std::string_view name, const void* begin, Access access = Access::read);
  Call& words(std::string_view name, const Place& place, Access access);
  // Bytes as vec4<u32>, read only; begin is a multiple of 16 from the start of what was attached.
  Call& quads(std::string_view name, const void* begin);
  // A float view of memory at an address, or at a place (temporary()).
  Call& floats(std::string_view name, const float* begin, Access access = Access::read);
  Call& floats(std::string_view name, const Place& place, Access access);

  Call& value(std::string_view name, int64_t v);
  Call& value(std::string_view name, float v);
  Call& constant(std::string_view name, int64_t v);
  // WGSL put before the kernel's text: functions it calls that differ from use to use. Like the
  // kernel's own it is known by its address.
  Call& text(std::string_view wgsl);
  Call& lanes(int n);

  Status items(int64_t n);
  Status spread(int64_t n);
  Status rows(int64_t n);
  Status groups(int64_t x, int64_t y = 1, int64_t z = 1);

 private:
  enum class View : uint8_t { absent, absent_ids, f32, i32, words, quads };
  struct Operand {
    std::string_view name;
    View view = View::f32;
    Access access = Access::read;
    Place place;
    int64_t stride = 0;
    int binding = 0;
    bool alone = false;  // bound as vec4<u32>, its own range
  };
  struct Value {
    std::string_view name;
    bool real = false;
    uint32_t bits = 0;
  };
  static constexpr int kMaxOperands = 14, kMaxValues = 32, kMaxConstants = 32, kMaxTexts = 10;

  Call& tensor(std::string_view name, const Tensor& t, Access access);
  static bool bound(const Operand& o) { return o.view > View::absent_ids; }
  Call& add(Operand operand);
  Call& add(Value value);
  void bind(Frame::Dispatch& dispatch);
  Frame::Key key(std::string_view form) const;
  std::string wgsl(std::string_view form) const;
  Status run(std::string_view form, int64_t x, int64_t y, int64_t z);

  Frame* frame_;
  Kernel kernel_;
  Operand operands_[kMaxOperands];
  Value values_[kMaxValues];
  std::pair<std::string_view, int64_t> constants_[kMaxConstants];
  std::string_view texts_[kMaxTexts];
  int operand_count_ = 0, value_count_ = 0, constant_count_ = 0, text_count_ = 0;
  int lanes_ = 64;
  Signature signature_;
  Status status_;
};

// The functions of the WGSL library that `text` calls, and those they call.
std::string library_for(std::string_view text);

}  // namespace loom::webgpu
