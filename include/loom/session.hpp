// Session: one user of a network, with the memory that running it takes. Any number of sessions of
// a network may exist; each serves one thread at a time, and those of one Engine take turns.
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
  int64_t max_batch = 1;  // samples computed at a time; results do not depend on it
  // Inputs of integer weights are rounded to 8 bits on their way into a product, which is several
  // times as fast. false: never.
  bool quantize_activations = true;
  // false: every call of run() stands alone. true: recurrent states, key and value caches and
  // feedback links go on from the call before; then every call has exactly max_batch samples, each
  // the next piece of a stream of its own.
  bool stateful = false;
  int64_t max_steps = 0;  // stateful: steps that caches hold; 0: those of one input
  // Samples may have fewer steps than their inputs, as set_lengths() says: what follows is padding,
  // which recurrent layers and attention do not see. Calls stand alone then.
  bool lengths = false;
};

struct CellOutput {
  Coord at;
  std::string layer;  // its type
  Tensor values;      // [n, ...]
};

class LOOM_API Session {
 public:
  // inputs: [n, sample shape], numbers of any plain type, or ids for networks that take them. Steps
  // of sequences may be fewer than the network was made for. Returns float32 [n, ...].
  // Errors: invalid_argument (another shape, an id outside the table), out_of_memory; then nothing
  // happened.
  Result<Tensor> run(const Tensor& inputs);
  // The same into memory of the caller, which the inputs do not lie in. shape: what the caller
  // takes it for; empty: any with that many numbers. Errors: also invalid_argument (another shape).
  Status run_into(const Tensor& inputs, std::span<float> to, std::span<const int64_t> shape = {});
  // The same with all inputs and outputs, in the order of NetworkInfo. A batch that shares an input
  // or an output is computed at once: it has exactly max_batch samples then.
  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs);
  const std::vector<PortInfo>& outputs() const;  // what run() gives
  // With SessionOptions::lengths: how many steps of each sample of the following calls are real,
  // from 1 on; none: all. Errors: invalid_argument, in a call of another number of samples too.
  Status set_lengths(std::span<const int64_t> lengths);
  // Stateful: what recurrent layers carry from call to call, float32 [max_batch, width] each, in
  // the order of computation: the state, of an LSTM with its cell behind it. Zeros before the first
  // call. set_states(): what the next call begins with; a sequence in two parts has the bits of the
  // whole. Errors: unsupported (sessions that are not stateful), invalid_argument (another number
  // or shape).
  Result<std::vector<Tensor>> states() const;
  Status set_states(const std::vector<Tensor>& values);
  // What every cell gives for `inputs`, in the order of computation. Stands alone in any session.
  Result<std::vector<CellOutput>> run_cells(const Tensor& inputs);

  void reset();              // stateful: begin new streams
  int64_t position() const;  // stateful: steps since
  int64_t bytes() const;     // memory that it takes; more once a rest of a batch was met

  struct LOOM_LOCAL Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace loom
