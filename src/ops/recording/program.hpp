// Program: an executable trace. Every virtual tensor has an offset in one arena, planned from the
// lifetimes. run() replays the recording and allocates nothing. Values that change between runs
// (inputs, learning rate) are pinned tensors, which the caller fills and reads.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "ops/recording/recorder.hpp"
#include "ops/recording/trace.hpp"

namespace loom::core {

class Program {
 public:
  // `pinned`: tensors of the trace that keep their memory from the first run to the last. They
  // return with real addresses, zero-filled. Other tensors are undefined after a run. On a device,
  // pinned tensors that no command writes are uploaded before each run; to_host() downloads the
  // others. Real memory of the trace that is not on the device yet is uploaded now.
  static Result<Program> compile(Trace trace, std::span<Tensor* const> pinned, const Ops& ops,
                                 ThreadPool& pool, ActivationMode mode = ActivationMode::f32);

  // The arena bytes that compile() would allocate.
  static int64_t planned_bytes(const Trace& trace, std::span<Tensor* const> pinned, const Ops& ops);

  Status run();
  // Repeats the last run with the same inputs, except this one.
  Status run_again(const Tensor& changed);
  // Stops at every note of the trace and shows its tensor, on the caller's thread. Results have the
  // same bits as those of run(). Backends that run a recording as a whole (GPU) run it in parts.
  using Watch = std::function<void(int64_t id, const Tensor& t)>;
  Status run(const Watch& watch);
  int64_t commands() const { return commands_; }
  // The notes of the trace, with command numbers of recorder() and real addresses.
  const std::vector<Note>& notes() const { return notes_; }
  int64_t arena_bytes() const { return arena_.size() + recorder_->workspace_bytes(); }
  Recorder& recorder() { return *recorder_; }

 private:
  Program() = default;
  Status attach(std::vector<Command>& commands);
  Status send_inputs() const;
  Buffer arena_;
  Attached attached_, others_;
  std::vector<Tensor> inputs_;  // pinned tensors that the host fills
  std::unique_ptr<Recorder> recorder_;
  int64_t commands_ = 0;
  std::vector<Note> notes_;  // with commands of the recorder and real addresses
};

}  // namespace loom::core
