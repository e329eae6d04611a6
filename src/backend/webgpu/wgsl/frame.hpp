// Frame: the dispatches of one list of commands, collected for one submission. Call: one dispatch,
// described by the code of an op: a kernel's text, the tensors it names, numbers.
//
// The text of a kernel is WGSL. For a tensor bound as `x` it sees:
//   x_at(i) -> f32 (i32 for tensors of i32)  value i, counted from the first.
//   x_set(i, v)                              stores value i.
//   p.x_s                                    elements between rows.
//   has_x                                    false for an absent tensor, which reads as 0.
// words() adds x_word(i) and x_put(i, v); quads() adds x_quad(i). value("n", ..) gives p.n;
// constant("c", ..) gives a const c. The text defines one of:
//   fn run(i: u32)              for items(): one invocation per item.
//   the same                    for spread(): one invocation for `each` items. Item j is
//                               spot(i, j); it counts if here(i, j).
//   fn run(row: u32, lane: u32) for rows(): a workgroup of `lanes` invocations per row.
//   fn run(group: vec3<u32>, lane: u32) for groups(): a workgroup of `lanes` invocations each.
// Functions of functions.cpp are added if the text calls them.
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
#include "ops/recording/uses.hpp"

namespace loom::core::webgpu {

class Shapes;  // tiles.hpp

class Frame {
 public:
  Frame(Gpu& gpu, Memory& memory, Counts& counts)
      : gpu_(&gpu), memory_(&memory), counts_(&counts) {}
  ~Frame();
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  // Adds a copy after the dispatches so far, in whole words.
  Status copy(const BufferSlice& from, const BufferSlice& to, int64_t bytes);
  // Changes memory for the dispatches from now on. A small write does not force a submission of the
  // earlier dispatches: it waits with the next ones.
  Status write(const BufferSlice& to, const void* data, int64_t bytes);
  // Results of the dispatches so far reach the host with their submission. Returns a ticket for
  // end_read() of the device.
  Result<int64_t> read(std::span<const Gpu::Read> reads);
  // Whether that read still waits for a submission.
  bool reads(int64_t ticket) const {
    return std::find(reads_.begin(), reads_.end(), ticket) != reads_.end();
  }
  // Whether the read came with the last submission: the device has nothing to do after it.
  bool read_last(int64_t ticket) const {
    return std::find(last_reads_.begin(), last_reads_.end(), ticket) != last_reads_.end();
  }
  // Submits the work described so far. later: on a thread of its own (Gpu::later), while the caller
  // describes more.
  Status flush(bool later = false);
  // The same if a submission is full. Call it between commands: waiting works name tables of the
  // next submission.
  Status flush_full();
  int64_t pending() const { return static_cast<int64_t>(dispatches_.size()); }
  // Commands are described one after the other; has_fresh() says whether works were described since
  // the last add_dependencies(). `uses` are the memory ranges that the command touches. Works of
  // the next command run concurrently with those of the last if they touch nothing in common.
  bool has_fresh() const { return !fresh_.empty(); }
  Status add_dependencies(std::vector<Use> uses);
  // Drops the work described since then.
  void discard_fresh() { fresh_.clear(); }
  // Drops all described work after an error.
  void drop();
  // Times dispatches into `profile`; may be null: no timing.
  void set_profile(Profile* profile) { profile_ = profile; }
  // Whether each row described from now on has the same bits among any number of rows. Kernels are
  // then chosen, and sums cut, without regard to that number, and works never share a dispatch.
  void set_rows_alone(bool on) { rows_alone_ = on; }
  bool rows_alone() const { return rows_alone_; }
  // The chooser of tile shapes; null means the rule.
  void set_shapes(Shapes* shapes) { shapes_ = shapes; }
  Shapes* shapes() const { return shapes_; }
  // The recording of a list of commands, for replay without a new description. Call record() before
  // the list and recorded() after it, which is null if some of the list is submitted already. It is
  // valid while generation() is unchanged and no memory is attached or detached.
  struct Recording;
  Status record();
  void spoil_recording() { mark_.submissions = -1; }  // something happened outside of the frame
  std::unique_ptr<Recording> recorded();
  Status replay(const Recording& recording);
  int64_t generation() const { return generation_; }
  const AdapterReport& adapter() const { return gpu_->report(); }
  BufferSlice slice_of(const std::byte* p) const { return memory_->find(p); }
  // Memory that kernels of one op share between two dispatches, valid until the next op asks.
  // `bytes` from its start; contents are undefined.
  Result<BufferSlice> temporary(int64_t bytes);
  // Any number of words for the next dispatch, if its parameters cannot hold them.
  Result<BufferSlice> table(std::span<const uint32_t> words);
  // The location of a tensor; buffer is null if it is not on the device.
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
    size_t immediates = 0;  // bytes of its parameters, if they go with it
    // Words of its uniform block that hold the offsets of its tables.
    std::array<uint8_t, kMaxBeside> tables{};
    size_t table_count = 0;
  };
  // The length of each list.
  struct Mark {
    size_t dispatches = 0, copies = 0, table = 0;
    int64_t submissions = 0;
  };
  struct Copy {
    BufferSlice from, to;
    int64_t bytes = 0;
    size_t before = 0;  // a dispatch
  };
  // One submission. The thread that runs it uses only the frame's target buffers besides.
  struct Batch {
    std::vector<Dispatch> dispatches;
    std::vector<Copy> copies;
    std::vector<int64_t> reads;
    std::vector<std::byte> uniforms, staged;
    std::vector<uint32_t> table;
  };
  // A device buffer that every submission fills with its own bytes.
  struct Sent {
    wgpu::Buffer buffer = nullptr;
    int64_t bytes = 0;
    std::vector<std::byte> last;  // content of the buffer; equal bytes are not sent again
  };
  Status reserve(Sent& to, int64_t bytes, wgpu::Flags usage);
  Status send(Sent& to, const void* data, int64_t bytes);
  Status reserve_uniforms();
  Status send_all(const Batch& batch);
  Status add(Work& work);
  Status close();      // of open_
  Status close_all();  // and of fresh_, none of it concurrently
  Status submit(bool later = false);
  Status run(const Batch& batch);
  Status dispatch(std::span<Work> works);
  void note_tables(std::span<const Work> works, Dispatch& dispatch) const;
  bool uses_temporary(const Work& work) const;
  Status encode(wgpu::CommandEncoder encoder, const Batch& batch);
  size_t max_dispatches() const;
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
  std::vector<int64_t> reads_, last_reads_;  // of copies_; of the last submission
  std::vector<Dispatch> dispatches_;
  std::vector<std::byte> uniforms_;
  Sent uniform_buffer_;
  wgpu::Buffer temporary_ = nullptr;
  int64_t temporary_bytes_ = 0;
  std::vector<uint32_t> table_;
  Sent table_buffer_;
  std::vector<std::byte> staged_;  // source of copies to the device
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
  // The same for indices, as i32. They may be absent.
  Call& ids(std::string_view name, const Tensor& t, Access access = Access::read);
  // Bytes as 32-bit words; begin is a multiple of 4 from the start of the attached range.
  Call& words(std::string_view name, const void* begin, Access access = Access::read);
  Call& words(std::string_view name, const BufferSlice& slice, Access access);
  // Bytes as vec4<u32>, read only; begin is a multiple of 16 from the start of the attached range.
  Call& quads(std::string_view name, const void* begin);
  Call& quads(std::string_view name, const BufferSlice& slice);
  // A float view of memory at an address, or at a slice (temporary()).
  Call& floats(std::string_view name, const float* begin, Access access = Access::read);
  Call& floats(std::string_view name, const BufferSlice& slice, Access access);

  Call& value(std::string_view name, int64_t v);
  Call& value(std::string_view name, float v);
  Call& constant(std::string_view name, int64_t v);
  // WGSL before the kernel's text: functions that vary from use to use. Identified by its address,
  // like the kernel's own text.
  Call& text(std::string_view wgsl);
  Call& lanes(int n);
  // Allows it to share a dispatch with others. `shared` is its bytes of workgroup memory. any: with
  // any number of lanes, multiples of 64 up to 256.
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
