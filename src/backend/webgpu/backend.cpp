// The device that sessions use: memory, kernels, and a CPU fallback for ops without a kernel.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "backend/reference/reference.hpp"
#include "backend/webgpu/fusion/fuse.hpp"
#include "backend/webgpu/kernels/elementwise.hpp"
#include "backend/webgpu/kernels/kernels.hpp"
#include "backend/webgpu/runtime/gpu.hpp"
#include "backend/webgpu/runtime/memory.hpp"
#include "backend/webgpu/tuning/fma_rate.hpp"
#include "backend/webgpu/tuning/trial.hpp"
#include "backend/webgpu/webgpu.hpp"
#include "backend/webgpu/wgsl/replays.hpp"
#include "backend/webgpu/wgsl/subgroup.hpp"
#include "base/text.hpp"

namespace loom::core::webgpu {
namespace {

// A body that is never called: rows of a device's table only say that the op exists.
template <class Args>
void on_device(const Args&, const Lane&) {}

using Launch = Status (*)(Frame&, const std::byte*);

// May be null: the op has no kernel.
template <class Args, class Kernel>
constexpr Launch launch_of(Kernel) {
  if constexpr (std::is_same_v<std::invoke_result_t<Kernel, Frame&, const Args&>, kernels::None>) {
    return nullptr;
  } else {
    return [](Frame& frame, const std::byte* bytes) -> Status {
      Args args;
      std::memcpy(&args, bytes, sizeof(Args));
      return Kernel{}(frame, args);
    };
  }
}

constexpr Launch kLaunch[] = {
#define LOOM_OP(name, Args) \
  launch_of<Args>([](Frame& frame, const Args& args) { return kernels::name(frame, args); }),
#include "ops/ops.def"
#undef LOOM_OP
};

double seconds() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

class WebGpu final : public Backend {
 public:
  WebGpu(std::unique_ptr<Gpu> gpu, const OpenOptions& options)
      : gpu_(std::move(gpu)),
        memory_(*gpu_),
        frame_(*gpu_, memory_, counts_),
        tuner_(
            gpu_->report(), options.tuning,
            [this](const Product& product) { return trial(*gpu_, product); }, &seconds),
        strict_(options.strict) {
    frame_.set_shapes(&tuner_);
    ops_.name = "webgpu";
    ops_.device = this;
    ops_.host = options.host != nullptr ? options.host : &reference_ops();
#define LOOM_OP(name, Args) ops_.name = &on_device<Args>;
#include "ops/ops.def"
#undef LOOM_OP
  }

  // Runs before the first list.
  Status prepare() {
    LOOM_TRY(find_subgroup(*gpu_, memory_, frame_));
    counts_ = {};
    return {};
  }

  const Ops& ops() const override {
    return ops_;
  }
  const AdapterReport& adapter() const override {
    return gpu_->report();
  }
  const Counts& counts() const override {
    return counts_;
  }
  int64_t bytes() const override {
    return gpu_->bytes();
  }
  Status copy(const MemoryRange& from, const std::byte* to) override;
  Status wait() override {
    LOOM_TRY(frame_.flush());
    enough_ = kFirst;
    return gpu_->wait();
  }
  Result<double> fma_rate(double seconds) override {
    LOOM_TRY(frame_.flush());
    return webgpu::fma_rate(*gpu_, seconds);
  }
  void lose() override {
    gpu_->lose();
  }
  Status set_profile(bool on) override;
  std::vector<KernelTime> take_profile() override;
  std::vector<Choice> choices() const override {
    return tuner_.choices();
  }
  void choose(std::span<const Choice> choices) override {
    replays_.forget();
    tuner_.choose(choices);
  }
  void on_choice(std::function<void()> call) override {
    tuner_.on_choice(std::move(call));
  }
  Status force_variant(std::string_view name) override;
  std::string last_variant() const override {
    return tuner_.last().has_value() ? name_of(*tuner_.last()) : std::string();
  }

  Result<int64_t> attach(std::span<const MemoryRange> ranges, MemoryUse use,
                         bool contents) override {
    replays_.forget();
    LOOM_ASSIGN(const int64_t id, memory_.attach(ranges, use, contents));
    count_memory();
    return id;
  }
  void detach(int64_t id) override {
    // Described but unsubmitted work may use the memory. The next call reports an error.
    if (const Status status = frame_.flush(); !status.ok()) frame_.drop();
    replays_.forget();
    memory_.detach(id);
    count_memory();
  }
  bool holds(const MemoryRange& range) const override {
    const BufferSlice slice = memory_.find(range.begin);
    return slice.buffer != nullptr && slice.left >= range.bytes;
  }
  Status upload(const std::byte* begin, int64_t bytes) override;
  Status download(std::span<const MemoryRange> ranges) override;
  Result<int64_t> begin_download(std::span<const MemoryRange> ranges) override {
    LOOM_ASSIGN(const std::vector<Gpu::Read> reads, reads_of(ranges));
    return frame_.read(reads);
  }
  bool downloaded(int64_t ticket) override {
    return gpu_->arrived(ticket);
  }
  Status end_download(int64_t ticket) override {
    Status status = frame_.reads(ticket) ? frame_.flush() : Status{};
    if (frame_.read_last(ticket)) enough_ = kFirst;
    Status read = gpu_->end_read(ticket);  // frees the destination buffers of the results
    return status.ok() ? read : status;
  }
  Status execute(std::span<const Command> commands) override {
    return execute(commands, false);
  }
  Status execute_rows_alone(std::span<const Command> commands) override {
    return execute(commands, true);
  }
  Status move(std::span<const Move> moves) override;
  void gather(bool on) override {
    gathering_ = on;
  }

 private:
  Status execute(std::span<const Command> commands, bool rows_alone);
  Status submit();
  Result<std::vector<Gpu::Read>> reads_of(std::span<const MemoryRange> ranges);
  Status describe(std::span<const Command> commands);
  Status run_one(const Command& command);
  Status run_on_cpu(const Command& command);
  // Registers the works described last as those of `commands`.
  Status add_dependencies(std::span<const Command> commands);
  // Calls f(begin, bytes) for every memory range that a command reads (or writes).
  template <class F>
  void each_stretch(Command& command, bool written, F&& f);
  void count_memory() {
    for (int use = 0; use < kMemoryUses; ++use) {
      counts_.memory[use] = memory_.bytes(static_cast<MemoryUse>(use));
    }
    counts_.own_memory = frame_.own_memory();
  }

  std::unique_ptr<Gpu> gpu_;
  Memory memory_;
  Counts counts_;
  std::unique_ptr<Profile> profile_;
  Frame frame_;
  Tuner tuner_;
  Replays replays_{frame_};
  Ops ops_;
  bool strict_;
  bool gathering_ = false;
  // An idle device starts early. Without a submission thread the host pays for each submission, so
  // a token or a step is one submission.
  static constexpr int64_t kMax = 256, kFirst = LOOM_THREADS != 0 ? 4 : kMax;
  int64_t enough_ = kFirst;  // dispatches that are worth a submission
  std::vector<std::byte> scratch_;
};

Status WebGpu::upload(const std::byte* begin, int64_t bytes) {
  if (bytes <= 0) return {};
  const BufferSlice slice = memory_.find(begin);
  if (slice.buffer == nullptr || slice.left < bytes) {
    return make_error(Code::internal, "upload of memory that the device does not have");
  }
  counts_.uploaded += bytes;
  return frame_.write(slice, begin, bytes);
}

Status WebGpu::set_profile(bool on) {
  LOOM_TRY(frame_.flush());
  replays_.forget();  // submissions may hold fewer dispatches from now on
  frame_.set_profile(nullptr);
  if (!on) return {};
  if (profile_ == nullptr) {
    LOOM_ASSIGN(profile_, Profile::create(*gpu_));
  }
  frame_.set_profile(profile_.get());
  return {};
}

std::vector<KernelTime> WebGpu::take_profile() {
  if (profile_ == nullptr) return {};
  std::vector<KernelTime> times = profile_->times();
  profile_->clear();
  return times;
}

Status WebGpu::force_variant(std::string_view name) {
  replays_.forget();
  tuner_.force({});
  if (name.empty()) return {};
  const TileShape* shape = find_variant(name);
  if (shape == nullptr) {
    return make_error(Code::not_found, cat("no variant is called '", printable(name), "'"));
  }
  if (!fits(*shape, gpu_->report())) {
    return unsupported(cat(name, ": too little workgroup memory on ", gpu_->report().name));
  }
  tuner_.force(*shape);
  return {};
}

Status WebGpu::copy(const MemoryRange& from, const std::byte* to) {
  const BufferSlice source = memory_.find(from.begin), target = memory_.find(to);
  if (source.buffer == nullptr || source.left < from.bytes || target.buffer == nullptr ||
      target.left < from.bytes || source.buffer == target.buffer || from.bytes % 4 != 0 ||
      source.offset % 4 != 0 || target.offset % 4 != 0) {
    return make_error(Code::internal, "copy between places that the device does not have");
  }
  // A kernel copies small sizes, because it may run concurrently with the next one.
  if (from.bytes > 256) return frame_.copy(source, target, from.bytes);
  LOOM_TRY(copy_words(frame_, source, target, from.bytes / 4));
  return frame_.add_dependencies(
      {{from.begin, from.begin + from.bytes, false}, {to, to + from.bytes, true}});
}

// One dispatch for each pair of buffers.
Status WebGpu::move(std::span<const Move> moves) {
  std::vector<WordsMove> words;
  for (const Move& m : moves) {
    const BufferSlice from = memory_.find(m.from), to = memory_.find(m.to);
    if (from.buffer == nullptr || from.left < m.bytes || to.buffer == nullptr ||
        to.left < m.bytes || (m.bytes | from.offset | to.offset) % 4 != 0) {
      return make_error(Code::internal, "a move between places that the device does not have");
    }
    words.push_back({from, to, m.bytes / 4});
  }
  return move_words(frame_, words);
}

// The device works on submitted commands while the host describes more. The first submissions are
// short, because the device is idle; later ones hold about a token.
Status WebGpu::submit() {
  enough_ = std::min(2 * enough_, kMax);
  return frame_.flush(true);
}

// If the reads fit, they go into the same submission as the last commands.
Status WebGpu::download(std::span<const MemoryRange> ranges) {
  LOOM_ASSIGN(const std::vector<Gpu::Read> reads, reads_of(ranges));
  int64_t bytes = 0;
  for (const Gpu::Read& read : reads) bytes += read.bytes + 8;  // in whole words
  if (!reads.empty() && bytes <= Gpu::kMaxRead) {
    const Result<int64_t> ticket = frame_.read(reads);
    if (ticket.ok()) return end_download(*ticket);
    frame_.drop();
    return ticket.error();
  }
  LOOM_TRY(frame_.flush());
  enough_ = kFirst;
  return gpu_->read(reads);
}

Result<std::vector<Gpu::Read>> WebGpu::reads_of(std::span<const MemoryRange> ranges) {
  std::vector<Gpu::Read> reads;
  for (const MemoryRange& range : ranges) {
    if (range.bytes <= 0) continue;
    const BufferSlice slice = memory_.find(range.begin);
    if (slice.buffer == nullptr || slice.left < range.bytes) {
      return make_error(Code::internal, "download of memory that the device does not have");
    }
    counts_.downloaded += range.bytes;
    reads.push_back({slice.buffer, slice.offset, const_cast<std::byte*>(range.begin), range.bytes});
  }
  return reads;
}

Status WebGpu::run_one(const Command& command) {
  const Launch launch = kLaunch[static_cast<int>(command.op)];
  Status status = launch != nullptr ? launch(frame_, command.args)
                                    : unsupported(cat(op_name(command.op), ": no kernel"));
  if (status.ok() || status.error().code != Code::unsupported || strict_) return status;
  frame_.discard_fresh();
  return run_on_cpu(command);
}

Status WebGpu::add_dependencies(std::span<const Command> commands) {
  if (!frame_.has_fresh()) return {};
  std::vector<Use> uses;
  for (const Command& command : commands) add_uses(command, uses);
  return frame_.add_dependencies(std::move(uses));
}

Status WebGpu::execute(std::span<const Command> commands, bool rows_alone) {
  LOOM_TRY(gpu_->glance());
  // Submits before more is described, not after: the commands after a list may overlap its end.
  if (!gathering_ && frame_.pending() >= enough_) LOOM_TRY(submit());
  frame_.set_rows_alone(rows_alone);
  const Replays::Plan plan = replays_.plan(commands, rows_alone);
  if (plan == Replays::Plan::replay) {
    counts_.commands += static_cast<int64_t>(commands.size());
    LOOM_TRY(frame_.replay(replays_.recording()));
  } else {
    if (plan == Replays::Plan::record) LOOM_TRY(frame_.record());
    LOOM_TRY(describe(commands));
    if (plan == Replays::Plan::record) replays_.keep();
    count_memory();
  }
  // A token, for example, runs while the host does other work.
  return !gathering_ && frame_.pending() >= kMax ? submit() : Status{};
}

Status WebGpu::describe(std::span<const Command> commands) {
  for (size_t i = 0; i < commands.size();) {
    const size_t begin = i;
    const Result<int64_t> fused = fuse(frame_, commands.subspan(i));
    const bool fits = fused.ok() || fused.error().code != Code::unsupported;
    if (!fused.ok() && fits) {
      frame_.drop();
      return fused.error();
    }
    if (!fits) frame_.discard_fresh();
    const int64_t taken = fits ? *fused : 0;
    i += static_cast<size_t>(taken);
    counts_.commands += std::max<int64_t>(taken, 1);
    Status status;
    if (taken == 0) status = run_one(commands[i++]);
    if (status.ok()) status = add_dependencies(commands.subspan(begin, i - begin));
    if (status.ok()) status = frame_.flush_full();
    if (!status.ok()) {
      frame_.drop();
      return status;
    }
  }
  return {};
}

template <class F>
void WebGpu::each_stretch(Command& command, bool written, F&& f) {
  const auto piece = [&](const std::byte* begin, int64_t bytes, Access access) {
    if (access == Access::update || (access == Access::write) == written) f(begin, bytes);
  };
  with_args(command, [&](auto& args) {
    visit(args, [&](Tensor& t, Access access) {
      if (!t.empty()) piece(t.data, t.end() - t.data, access);
    });
    visit_memory(args, piece);
  });
}

// Blocks until the device is idle, runs an op without a kernel on the host, and counts it.
Status WebGpu::run_on_cpu(const Command& recorded) {
  ++counts_.fallbacks[static_cast<int>(recorded.op)];
  frame_.spoil_recording();
  LOOM_TRY(frame_.flush());
  Command command;
  command.op = recorded.op;
  std::memcpy(command.args, recorded.args, sizeof(command.args));
  Status status;
  // Outputs are downloaded too: an op may write only a part of the memory that a tensor spans.
  for (const bool written : {false, true}) {
    each_stretch(command, written, [&](const std::byte* begin, int64_t bytes) {
      const BufferSlice slice = memory_.find(begin);
      if (status.ok() && !slice.constant) {
        const MemoryRange range{begin, bytes};
        status = download({&range, 1});
      }
    });
  }
  LOOM_TRY(std::move(status));
  int64_t positions = 0;
  with_args(command, [&](auto& args) {
    if constexpr (requires {
                    args.length;
                    args.cache;
                  })
      positions = args.length;
    if constexpr (requires {
                    args.sequences;
                    args.q.shape;
                  }) {
      positions = args.q.rows() / args.sequences;
    }
  });
  scratch_.resize(static_cast<size_t>(std::max(
      {kMatmulScratch, attention_scratch(positions), attend_dx_scratch(positions, true)})));
  run_command(*ops_.host, command,
              Lane{0, 1, scratch_.data(), static_cast<int64_t>(scratch_.size())});
  each_stretch(command, true, [&](const std::byte* begin, int64_t bytes) {
    if (status.ok()) status = upload(begin, bytes);
  });
  return status;
}

}  // namespace

std::vector<std::string> variant_names() {
  std::vector<std::string> names;
  for (const TileShape& shape : tile_variants()) names.push_back(name_of(shape));
  return names;
}

int64_t variants_version() {
  return kVariantsVersion;
}

bool has_kernel(OpId op) {
  return kLaunch[static_cast<int>(op)] != nullptr;
}

int64_t Counts::total_fallbacks() const {
  int64_t sum = 0;
  for (const int64_t n : fallbacks) sum += n;
  return sum;
}

Result<std::unique_ptr<Backend>> Backend::open(const OpenOptions& options) {
  LOOM_ASSIGN(std::unique_ptr<Gpu> gpu, Gpu::open(options));
  auto backend = std::make_unique<WebGpu>(std::move(gpu), options);
  LOOM_TRY(backend->prepare());
  return std::unique_ptr<Backend>(std::move(backend));
}

}  // namespace loom::core::webgpu
