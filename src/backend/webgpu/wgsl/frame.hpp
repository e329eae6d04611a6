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
//   fn run(group: vec3<u32>, lane: u32) for groups(): a workgroup of `lanes` invocations each
// Functions of wgsl_library.cpp are added where the text calls them.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "backend/webgpu/runtime/gpu.hpp"
#include "backend/webgpu/runtime/memory.hpp"
#include "backend/webgpu/runtime/profile.hpp"
#include "backend/webgpu/wgsl/work.hpp"
#include "ops/uses.hpp"

namespace loom::core::webgpu {

class Shapes;  // tiles.hpp

class Frame {
 public:
  Frame(Gpu& gpu, Memory& memory, Counts& counts)
      : gpu_(&gpu), memory_(&memory), counts_(&counts) {}
  ~Frame();
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  // A copy behind the dispatches so far, in whole words.
  Status copy(const BufferSlice& from, const BufferSlice& to, int64_t bytes);
  // Memory as the dispatches from now on see it. What was described before is not submitted for it
  // where there is little to write: it waits with the next dispatches.
  Status write(const BufferSlice& to, const void* data, int64_t bytes);
  // Results of the dispatches so far come to the host with their submission; returns what
  // end_read() of the device takes.
  Result<int64_t> read(std::span<const Gpu::Read> reads);
  // Whether that waits for a submission still.
  bool reads(int64_t ticket) const {
    return std::find(reads_.begin(), reads_.end(), ticket) != reads_.end();
  }
  // Whether it came with the last submission: the device has nothing to do behind it.
  bool read_last(int64_t ticket) const {
    return std::find(last_reads_.begin(), last_reads_.end(), ticket) != last_reads_.end();
  }
  // Submits what was described so far. later: by a thread of its own (Gpu::later), while the caller
  // describes more.
  Status flush(bool later = false);
  // The same where that is as much as a submission holds. To be called between commands: works that
  // wait name tables of the submission to come.
  Status flush_full();
  int64_t pending() const { return static_cast<int64_t>(dispatches_.size()); }
  // Commands come one after the other, as what was described since the last add_dependencies().
  // Works of the next that could run beside those of the last do so where they touch nothing in
  // common; has_fresh(): it depends on `uses`, what the commands touch.
  bool has_fresh() const { return !fresh_.empty(); }
  Status add_dependencies(std::vector<Use> uses);
  // What was described since is forgotten.
  void discard_fresh() { fresh_.clear(); }
  // Forgets it: an error happened.
  void drop();
  // Where dispatches are timed; null: nowhere.
  void set_profile(Profile* profile) { profile_ = profile; }
  // Whether each row of what is described from now on has the bits that it has among any other
  // number of rows: kernels are chosen, and sums are cut, without asking how many there are, and
  // nothing runs beside something else.
  void set_rows_alone(bool on) { rows_alone_ = on; }
  bool rows_alone() const { return rows_alone_; }
  // Who chooses the shapes of tiles; null: the rule.
  void set_shapes(Shapes* shapes) { shapes_ = shapes; }
  Shapes* shapes() const { return shapes_; }
  // What a list of commands became, to be described again without looking at them: record() before
  // them, recorded() after them; null where some of it is submitted already. It holds as long as
  // generation() stays what it is and no memory is attached or detached.
  struct Recording;
  Status record();
  void spoil_recording() { mark_.submissions = -1; }  // something happened outside of the frame
  std::unique_ptr<Recording> recorded();
  Status replay(const Recording& recording);
  int64_t generation() const { return generation_; }
  const AdapterReport& adapter() const { return gpu_->report(); }
  BufferSlice place(const std::byte* p) const { return memory_->find(p); }
  // Memory that kernels of one op share, valid until the next op asks: for results between two
  // dispatches. `bytes` from its start; contents mean nothing.
  Result<BufferSlice> temporary(int64_t bytes);
  // Words for the next dispatch, whatever their number: what does not fit its parameters.
  Result<BufferSlice> table(std::span<const uint32_t> words);
  // Where a tensor lies; buffer is null where it is not on the device.
  BufferSlice place_of(const Tensor& t) const { return memory_->find(t.data); }
  int64_t own_memory() const {
    return uniform_buffer_.bytes + temporary_bytes_ + table_buffer_.bytes + staging_buffer_.bytes;
  }

 private:
  friend class Call;
  struct Pipeline {
    std::string name;
    wgpu::ComputePipeline pipeline = nullptr;
    int64_t used = 0;
  };
  struct Dispatch {
    std::string_view name;
    wgpu::ComputePipeline pipeline = nullptr;
    Signature signature;
    std::array<Binding, Signature::kMax> storage{};
    uint32_t groups[3] = {1, 1, 1};
    size_t immediates = 0;  // bytes of its parameters, where they go with it
    // Words of its uniform block that say where its tables begin.
    std::array<uint8_t, kMostBeside> tables{};
    size_t table_count = 0;
  };
  // How much of each list there is.
  struct Mark {
    size_t dispatches = 0, copies = 0, table = 0;
    int64_t submissions = 0;
  };
  struct Copy {
    BufferSlice from, to;
    int64_t bytes = 0;
    size_t before = 0;  // a dispatch
  };
  // One submission. Who runs it uses nothing else of a frame but the buffers it sends to.
  struct Batch {
    std::vector<Dispatch> dispatches;
    std::vector<Copy> copies;
    std::vector<int64_t> reads;
    std::vector<std::byte> uniforms, staged;
    std::vector<uint32_t> table;
  };
  // Bytes for a buffer of the device that every submission finds filled with its own.
  struct Sent {
    wgpu::Buffer buffer = nullptr;
    int64_t bytes = 0;
    std::vector<std::byte> last;  // what was sent; the same again is there already
  };
  Status reserve(Sent& to, int64_t bytes, wgpu::Flags usage);
  Status send(Sent& to, const void* data, int64_t bytes);
  Status reserve_uniforms();
  Status send_all(const Batch& batch);
  Status add(Work& work);
  Status close();      // of open_
  Status close_all();  // and of fresh_, without any of it beside others
  Status submit(bool later = false);
  Status run(const Batch& batch);
  Status dispatch(std::span<Work> works);
  void note_tables(std::span<const Work> works, Dispatch& dispatch) const;
  bool uses_temporary(const Work& work) const;
  Status encode(wgpu::CommandEncoder encoder, const Batch& batch);
  size_t most_dispatches() const;
  void evict();

  Gpu* gpu_;
  Memory* memory_;
  Counts* counts_;
  Profile* profile_ = nullptr;
  Shapes* shapes_ = nullptr;
  bool rows_alone_ = false;
  std::unordered_map<PipelineKey, Pipeline, PipelineKeyHash> pipelines_;
  int64_t tick_ = 0;
  int64_t generation_ = 0, submissions_ = 0;
  Mark mark_;
  std::vector<Work> fresh_;     // since the last add_dependencies()
  std::vector<Work> open_;      // of the last dispatch, which others may join
  std::vector<Use> open_uses_;  // of it
  std::vector<Copy> copies_;
  std::vector<int64_t> reads_, last_reads_;  // that copies_ bring; those of the last submission
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

struct Frame::Recording {
  std::vector<Dispatch> dispatches;
  std::vector<std::byte> uniforms;
  std::vector<uint32_t> table;
  size_t table_begin = 0;
  std::vector<Work> open;  // the last dispatch
  std::vector<Use> open_uses;
};

class Call {
 public:
  Call(Frame& frame, const Kernel& kernel) : frame_(&frame) { work_.kernel = kernel; }

  Call& read(std::string_view name, const Tensor& t) { return tensor(name, t, Access::read); }
  Call& write(std::string_view name, const Tensor& t) { return tensor(name, t, Access::write); }
  Call& update(std::string_view name, const Tensor& t) { return tensor(name, t, Access::update); }
  // The same for indices, which may be absent: as i32.
  Call& ids(std::string_view name, const Tensor& t, Access access = Access::read);
  // Bytes as 32-bit words; begin is a multiple of 4 from the start of what was attached.
  Call& words(std::string_view name, const void* begin, Access access = Access::read);
  Call& words(std::string_view name, const BufferSlice& place, Access access);
  // Bytes as vec4<u32>, read only; begin is a multiple of 16 from the start of what was attached.
  Call& quads(std::string_view name, const void* begin);
  Call& quads(std::string_view name, const BufferSlice& place);
  // A float view of memory at an address, or at a place (temporary()).
  Call& floats(std::string_view name, const float* begin, Access access = Access::read);
  Call& floats(std::string_view name, const BufferSlice& place, Access access);

  Call& value(std::string_view name, int64_t v);
  Call& value(std::string_view name, float v);
  Call& constant(std::string_view name, int64_t v);
  // WGSL put before the kernel's text: functions it calls that differ from use to use. Like the
  // kernel's own it is known by its address.
  Call& text(std::string_view wgsl);
  Call& lanes(int n);
  // It may share a dispatch with others; it has so many bytes of workgroup memory. any: with any
  // number of lanes, multiples of 64 up to 256.
  Call& beside(int64_t shared = 0, bool any = false);

  Status items(int64_t n);
  Status spread(int64_t n);
  Status rows(int64_t n);
  Status groups(int64_t x, int64_t y = 1, int64_t z = 1);

 private:
  Call& tensor(std::string_view name, const Tensor& t, Access access);
  Call& add(Operand operand);
  Call& add(Value value);
  Call& fail(std::string_view what);
  Status lines(Form form, int64_t n, int64_t groups);
  Status run(Form form, int64_t x, int64_t y, int64_t z);

  Frame* frame_;
  Work work_;
  Status status_;
};

}  // namespace loom::core::webgpu
