// Session: runs a network, with its own memory. A network may have any number of sessions. Each
// serves one thread at a time; those of one Engine compute one at a time.
//
//   Session session = net.session({.max_batch = 32}).or_exit();
//   Tensor y = session.run(x).or_exit();          // x [n, ...], any n
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "loom/export.hpp"
#include "loom/network.hpp"

namespace loom {

struct SessionOptions {
  int64_t max_batch = 1;  // samples computed at a time; does not change results
  // Rounds the inputs of products with integer weights to 8 bits, which is several times as fast.
  // false never rounds.
  bool quantize_activations = true;
  // false: calls of run() are independent. true: recurrent states, KV caches and feedback links
  // continue from the previous call. Every call then has exactly max_batch samples, each the next
  // piece of its own stream.
  bool stateful = false;
  int64_t max_steps = 0;  // stateful: steps that caches hold; 0 means those of one input
  // Samples may have fewer steps than their inputs (set_lengths()). The rest is padding, which
  // recurrent layers and attention ignore. Calls are then independent.
  bool lengths = false;
};

struct CellOutput {
  Coord at;
  std::string layer;  // its type
  Tensor values;      // [n, ...]
};

class LOOM_API Session {
 public:
  // inputs: [n, sample shape], numbers of any plain type, or ids if the network takes ids.
  // Sequences may have fewer steps than the network was made for. Returns float32 [n, ...]. Errors:
  // invalid_argument (another shape, an id outside the table), out_of_memory; then nothing has
  // changed.
  Result<Tensor> run(const Tensor& inputs);
  // Writes the result into memory of the caller, which must not overlap the inputs. shape: the
  // shape that the caller expects; empty means any with that number of values. Errors: also
  // invalid_argument (another shape).
  Status run_into(const Tensor& inputs, std::span<float> to, std::span<const int64_t> shape = {});
  // Runs with all inputs and outputs, in the order of NetworkInfo. A batch that shares an input or
  // output is computed at once and has exactly max_batch samples.
  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs);
  const std::vector<PortInfo>& outputs() const;  // the outputs of run()
  // With SessionOptions::lengths: the number of valid steps of each sample in the following calls,
  // at least 1. An empty list means all are valid. Errors: invalid_argument, also in a call with
  // another number of samples.
  Status set_lengths(std::span<const int64_t> lengths);
  // Stateful: the recurrent states between calls, float32 [max_batch, width] each, in the order of
  // computation. An LSTM's state is followed by its cell state. Zeros before the first call.
  // set_states() sets the start of the next call; a sequence in two parts has the same bits as the
  // whole. Errors: unsupported (sessions that are not stateful), invalid_argument (another number
  // or shape).
  Result<std::vector<Tensor>> states() const;
  Status set_states(const std::vector<Tensor>& values);
  // The output of every cell for `inputs`, in the order of computation. Always independent of other
  // calls.
  Result<std::vector<CellOutput>> run_cells(const Tensor& inputs);

  void reset();              // stateful: starts new streams
  int64_t position() const;  // stateful: steps since reset()
  int64_t bytes() const;     // memory in use; grows at the first partial batch

  struct LOOM_LOCAL Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace loom
