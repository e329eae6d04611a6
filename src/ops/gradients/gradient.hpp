// Differentiator: appends to a trace the ops that compute the gradient of a loss. There is one rule
// per op (gradient_rules.hpp), applied last op first. Contributions of several readers of a tensor
// are added in that order. Tensors are identified by address, and a view (rows or columns of a
// tensor) has the same view of its gradient.
//
// Used by TrainStep (learn/) and gradient checks. Call want() and seed(), then run(), then read
// gradient().
#pragma once

#include <functional>
#include <vector>

#include "ops/recording/recorder.hpp"
#include "ops/recording/trace.hpp"

namespace loom::core {

class Differentiator {
 public:
  explicit Differentiator(Trace& trace);

  // Requests the gradient of `t`. t: a tensor of the trace (an input), or real memory that ops read
  // (a parameter, plain or packed). `into`, if set, is contiguous and as large as t; the gradient
  // is stored there, or added to its contents.
  void want(const Tensor& t, const Tensor& into = {}, bool accumulate = false);
  // Sets dL/dt; t is a whole tensor of the trace. If t has readers in the trace, their parts are
  // added to `gradient` in place, so it must be written again before each run.
  void seed(const Tensor& t, const Tensor& gradient);
  // Sets the gradient of `t`, a whole contiguous tensor of the trace, in place of the sum of its
  // readers' contributions. These are not computed. For learning rules other than back-propagation;
  // call it after want() of the same tensor.
  void replace(const Tensor& t, const Tensor& gradient);
  // Does not compute the gradient of `t` from its readers; the commands that make it get none.
  void block(const Tensor& t);
  // Requests gradients as if that of `t` were wanted, without computing it: for observers of
  // intermediate results (on_product).
  void follow(const Tensor& t);
  // Activations pass gradients unchanged, as if their slope were 1: for learning rules that
  // propagate differences of values instead of gradients.
  void through_activations() { slopes_ = false; }
  // Gradient checkpointing (Chen et al., 2016). ends: ascending; commands [ends[i - 1], ends[i])
  // form a segment. Before the gradients of a segment, its commands are recorded again into tensors
  // of their own. So the first tensors are dead at the end of the segment; only values that other
  // segments read are kept. Commands after the last end are not repeated. The gradients have the
  // same bits.
  void checkpoint(std::vector<int64_t> ends) { segment_ends_ = std::move(ends); }
  // Appends the gradient ops of all commands recorded so far.
  Status run();
  // Called with each wanted tensor, in the order of want(), once no remaining command can add to
  // its gradient. Empty gradient: the loss does not depend on it.
  using Done = std::function<Status(const Tensor& t, const Tensor& gradient)>;
  void on_done(Done done) { done_ = std::move(done); }
  // A product x w^T of the trace whose result has a gradient: dz is that before the activation.
  // shape: that of a convolution; null otherwise.
  struct Product {
    Tensor w, bias, x, dz;
    const ConvShape* shape = nullptr;
  };
  // Called with every product by a packed weight and every convolution, in the order of the
  // backward pass. Optimizers that estimate curvature read both sides of it.
  using OnProduct = std::function<Status(const Product& product)>;
  void on_product(OnProduct on_product) { on_product_ = std::move(on_product); }
  // The gradient of a wanted tensor; empty if the loss does not depend on it.
  Tensor gradient(const Tensor& t) const;
  // Not empty if the gradient is sparse. Row r of the gradient then belongs to row rows[r] of the
  // tensor, unless rows[r] is negative. Other rows have no gradient.
  Tensor rows(const Tensor& t) const;

  // ---- For the rules ----

  // The target of a contribution to the gradient of `t`. The rule writes `out`, or adds to it if
  // `accumulate` is set. Empty means that the gradient is not needed.
  struct Target {
    Tensor out;
    bool accumulate = false;
    Tensor target;  // not empty: out is a temporary that accumulate() adds to target
  };
  // `adds`: the op that the rule will record can add to its output.
  Result<Target> gradient_target(const Tensor& t, bool adds = false);
  Status accumulate(const Target& gradient_target);
  // The target of a sparse gradient with these rows: a matrix to be written. Empty means that the
  // gradient is not needed. Errors: another contribution exists, or the gradient is to be stored.
  Result<Tensor> place_rows(const Tensor& t, const Tensor& rows);
  // The gradient of an output of the current command; empty if the loss does not depend on it.
  Tensor of(const Tensor& y) const;
  bool wants(const Tensor& t) const {
    return find(t) >= 0 && slots_[static_cast<size_t>(find(t))].asked();
  }
  bool has_slopes() const { return slopes_; }
  Status note_product(const Product& product) const {
    return on_product_ ? on_product_(product) : Status{};
  }
  Recorder& ops() { return recorder_; }
  Tensor fresh(const Shape& shape) { return trace_.fresh(shape); }
  Tensor fresh(const Shape& shape, DType dtype) { return trace_.fresh(shape, dtype); }

 private:
  // A part of a tensor's memory: `rows` runs of `cols` elements, `stride` apart.
  struct Part {
    int64_t offset = 0, rows = 0, cols = 0, stride = 0;
    bool apart(const Part& other) const;
  };
  struct Slot {
    Tensor base;                // the tensor whose gradient this is
    Tensor gradient;            // empty means no contribution yet
    Tensor rows;                // of a sparse gradient
    std::vector<Part> written;  // parts that hold a contribution; others hold 0
    bool needed = false;        // it depends on a wanted tensor
    bool replaced = false;      // replace(): readers add nothing
    bool silent = false;        // follow(): requested, and never computed
    bool asked() const { return needed && !replaced; }
    bool computed() const { return asked() && !silent; }
    int64_t first_read = -1;  // command
  };

  // Slot of the tensor that `t` is, is a part of, or is a second copy of; -1 if there is none.
  int64_t find(const Tensor& t) const;
  // Elements between the start of the tensor that contains `t`, and `t`.
  int64_t offset(const Slot& slot, const Tensor& t) const;
  Status differentiate(const Command& command, int64_t index);
  void repeat(int64_t begin, int64_t end);
  int64_t slot_for(const Tensor& t);
  void mark_needed();
  Status finish(int64_t command);
  Tensor view(const Slot& slot, const Tensor& t) const;
  Part part_of(const Slot& slot, const Tensor& t) const;

  Trace& trace_;
  Recorder recorder_;
  std::vector<Slot> slots_;             // trace tensors first, then real memory
  std::vector<const std::byte*> real_;  // addresses of slots after the trace's
  std::vector<int64_t> wanted_;         // slots in the order of want()
  int64_t trace_slots_ = 0;
  bool slopes_ = true;
  std::vector<int64_t> segment_ends_;
  std::vector<Command> forward_;  // as gradients see them: reading second copies
  std::vector<int64_t> copies_;   // per slot of the trace: its copy; -1 if there is none
  std::vector<int64_t> copied_;   // per trace tensor after the slots: the slot it copies
  Done done_;
  OnProduct on_product_;
};

}  // namespace loom::core
