#include "ops/gradients/gradient.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "ops/gradients/gradient_rules.hpp"

namespace loom::core {

namespace {

Error one_reader(const Tensor& table) {
  return invalid(cat("a table ", table.shape.str(),
                     " with a sparse gradient may have one reader; set sparse to false where it is "
                     "shared or tied"));
}

}  // namespace

// Slot i belongs to tensor i of the trace at the time of construction. Gradients are tensors of the
// trace too, but have no slot, because they are not differentiated.
Differentiator::Differentiator(Trace& trace)
    : trace_(trace), recorder_(trace), trace_slots_(trace.tensors()) {
  slots_.resize(static_cast<size_t>(trace_slots_));
  for (int64_t i = 0; i < trace_slots_; ++i) slots_[static_cast<size_t>(i)].base = trace.tensor(i);
}

bool Differentiator::Part::apart(const Part& other) const {
  const auto end = [](const Part& p) { return p.offset + (p.rows - 1) * p.stride + p.cols; };
  if (end(*this) <= other.offset || end(other) <= offset) return true;
  if (stride != other.stride || stride <= 0) return false;
  const int64_t mine = offset % stride, theirs = other.offset % stride;
  if (mine + cols > stride || theirs + other.cols > stride) return false;
  return mine + cols <= theirs || theirs + other.cols <= mine;
}

int64_t Differentiator::find(const Tensor& t) const {
  if (t.empty()) return -1;
  const int64_t in_trace = trace_.find(t.data);
  if (in_trace >= trace_slots_) {
    const auto copy = static_cast<size_t>(in_trace - trace_slots_);
    return copy < copied_.size() ? copied_[copy] : -1;
  }
  if (in_trace >= 0) return in_trace;
  const auto at = std::find(real_.begin(), real_.end(), t.data);
  return at == real_.end() ? -1 : trace_slots_ + (at - real_.begin());
}

int64_t Differentiator::slot_for(const Tensor& t) {
  const int64_t found = find(t);
  if (found >= 0) return found;
  real_.push_back(t.data);
  Slot& slot = slots_.emplace_back();
  slot.base = t;
  return static_cast<int64_t>(slots_.size()) - 1;
}

void Differentiator::want(const Tensor& t, const Tensor& into, bool accumulate) {
  const int64_t index = slot_for(t);
  Slot& slot = slots_[static_cast<size_t>(index)];
  slot.needed = true;
  slot.gradient = into;
  if (accumulate) slot.written = {part_of(slot, slot.base)};
  wanted_.push_back(index);
}

void Differentiator::seed(const Tensor& t, const Tensor& gradient) {
  Slot& slot = slots_[static_cast<size_t>(slot_for(t))];
  slot.gradient = gradient;
  slot.written = {part_of(slot, slot.base)};
}

void Differentiator::replace(const Tensor& t, const Tensor& gradient) {
  seed(t, gradient);
  slots_[static_cast<size_t>(slot_for(t))].replaced = true;
}

void Differentiator::block(const Tensor& t) {
  slots_[static_cast<size_t>(slot_for(t))].replaced = true;
}

void Differentiator::follow(const Tensor& t) {
  Slot& slot = slots_[static_cast<size_t>(slot_for(t))];
  slot.needed = slot.silent = true;
}

Tensor Differentiator::gradient(const Tensor& t) const {
  return find(t) < 0 ? Tensor{} : of(t);
}

Tensor Differentiator::rows(const Tensor& t) const {
  return find(t) < 0 ? Tensor{} : slots_[static_cast<size_t>(find(t))].rows;
}

Tensor Differentiator::of(const Tensor& y) const {
  const int64_t index = find(y);
  if (index < 0) return {};
  const Slot& slot = slots_[static_cast<size_t>(index)];
  if (slot.written.empty() || !slot.needed) return {};
  return view(slot, y);
}

// The gradient of a packed weight is the plain matrix of its shape.
Tensor Differentiator::view(const Slot& slot, const Tensor& t) const {
  if (t.layout == Layout::r16 || !slot.rows.empty()) return slot.gradient;
  Tensor g = t;
  g.dtype = slot.gradient.dtype;
  g.data = slot.gradient.data + offset(slot, t) * std::max(dtype_info(g.dtype).bits / 8, 1);
  return g;
}

int64_t Differentiator::offset(const Slot& slot, const Tensor& t) const {
  const int64_t in_trace = trace_.find(t.data);
  const std::byte* base = in_trace >= 0 ? trace_.tensor(in_trace).data : slot.base.data;
  return (t.data - base) / std::max(dtype_info(t.dtype).bits / 8, 1);
}

Differentiator::Part Differentiator::part_of(const Slot& slot, const Tensor& t) const {
  if (t.layout == Layout::r16) return {0, 1, t.shape.count(), t.shape.count()};
  Part part{offset(slot, t), t.rows(), t.cols(), t.row_stride};
  // Contiguous memory is one run, whatever its shape.
  if (part.stride == part.cols)
    part = {part.offset, 1, part.rows * part.cols, part.rows * part.cols};
  return part;
}

Result<Differentiator::Target> Differentiator::gradient_target(const Tensor& t, bool adds) {
  Target p;
  const int64_t index = find(t);
  if (index < 0 || !slots_[static_cast<size_t>(index)].computed()) return p;
  Slot& slot = slots_[static_cast<size_t>(index)];
  if (!slot.rows.empty()) return one_reader(slot.base);
  if (slot.gradient.empty()) slot.gradient = trace_.fresh(slot.base.shape);
  const Tensor at = view(slot, t);
  const Part part = part_of(slot, t);
  const bool fresh = std::all_of(slot.written.begin(), slot.written.end(),
                                 [&](const Part& other) { return part.apart(other); });
  if (fresh) {
    const bool first = slot.written.empty();
    if (first && part.rows * part.cols < slot.base.shape.count()) {
      LOOM_TRY(recorder_.fill({slot.gradient, 0.0f}));
    }
    slot.written.push_back(part);
    p.out = at;
    return p;
  }
  p.accumulate = adds;
  p.out = adds ? at : trace_.fresh(at.shape);
  if (!adds) p.target = at;
  return p;
}

Result<Tensor> Differentiator::place_rows(const Tensor& t, const Tensor& rows) {
  const int64_t index = find(t);
  if (index < 0 || !slots_[static_cast<size_t>(index)].computed()) return Tensor{};
  Slot& slot = slots_[static_cast<size_t>(index)];
  if (!slot.gradient.empty() && trace_.find(slot.gradient.data) < 0) {
    return invalid(
        "a sparse gradient is not added up over batches, nor kept for L-BFGS; set accumulate to 1 "
        "and take another optimizer, or set sparse to false");
  }
  if (!slot.written.empty()) return one_reader(slot.base);
  slot.gradient = trace_.fresh(Shape{rows.shape.count(), slot.base.cols()});
  slot.rows = rows;
  slot.written = {part_of(slot, slot.base)};
  return slot.gradient;
}

Status Differentiator::accumulate(const Target& p) {
  if (p.target.empty()) return {};
  return recorder_.binary({p.target, p.out, p.target, BinaryKind::add});
}

// A tensor is needed if a command makes it from needed ones. One pass suffices, because commands
// are in the order of their data. Also records the first reader of a wanted tensor.
void Differentiator::mark_needed() {
  for (size_t i = 0; i < trace_.commands().size(); ++i) {
    const Command& command = trace_.commands()[i];
    bool needed = false;
    visit_command(command, [&](const Tensor& t, Access access) {
      const int64_t index = find(t);
      if (index < 0 || access == Access::write) return;
      Slot& slot = slots_[static_cast<size_t>(index)];
      needed = needed || slot.asked();
      if (slot.first_read < 0) slot.first_read = static_cast<int64_t>(i);
    });
    if (!needed) continue;
    visit_command(command, [&](const Tensor& t, Access access) {
      const int64_t index = find(t);
      if (index >= 0 && access != Access::read) slots_[static_cast<size_t>(index)].needed = true;
    });
  }
}

// Reports the wanted tensors that commands before `command` do not read.
Status Differentiator::finish(int64_t command) {
  if (!done_) return {};
  for (int64_t& index : wanted_) {
    if (index < 0 || slots_[static_cast<size_t>(index)].first_read < command) continue;
    const Slot& slot = slots_[static_cast<size_t>(index)];
    LOOM_TRY(done_(slot.base, slot.written.empty() ? Tensor{} : slot.gradient));
    index = -1;
  }
  return {};
}

Status Differentiator::differentiate(const Command& command, int64_t index) {
  Status status;
  with_args(command, [&](const auto& args) { status = differentiate_op(*this, args); });
  if (status.ok()) return finish(index);
  Error error = status.error();
  error.message = cat("gradient of ", op_name(command.op), ": ", error.message);
  return error;
}

Status Differentiator::run() {
  mark_needed();
  forward_ = trace_.commands();
  copies_.assign(static_cast<size_t>(trace_slots_), -1);
  size_t segments = segment_ends_.size();
  for (auto i = static_cast<int64_t>(forward_.size()) - 1; i >= 0; --i) {
    while (segments > 0 && segment_ends_[segments - 1] > i) {
      --segments;
      repeat(segments > 0 ? segment_ends_[segments - 1] : 0, i + 1);
    }
    LOOM_TRY(differentiate(forward_[static_cast<size_t>(i)], i));
  }
  return finish(-1);
}

}  // namespace loom::core
