#include "ops/recording/trace.hpp"

#include <algorithm>

#include "base/memory_budget.hpp"
#include "base/numbers/checked.hpp"
#include "base/text.hpp"
#include "ops/recording/visit.hpp"

namespace loom::core {
namespace {

// Virtual addresses start at half the address space, where a process has no allocations.
std::byte* virtual_address(int64_t offset) {
  constexpr uintptr_t kBase = uintptr_t{1} << (sizeof(uintptr_t) * 8 - 1);
  return reinterpret_cast<std::byte*>(kBase + static_cast<uintptr_t>(offset));
}

}  // namespace

Tensor Trace::fresh(const Shape& shape) {
  return fresh(shape, compute_);
}

Tensor Trace::fresh(const Shape& shape, DType dtype) {
  Tensor t;
  t.dtype = dtype;
  t.shape = shape;
  t.row_stride = shape.last();
  t.data = virtual_address(next_);
  // A gap between neighbours, so that an empty tensor has an address of its own too.
  const int64_t bytes = round_up(plain_bytes(dtype, shape), 64) + 64;
  exhausted_ = exhausted_ || bytes > max_names_ - next_;
  if (!exhausted_) next_ += bytes;
  tensors_.push_back(t);
  return t;
}

Status Trace::named() const {
  if (!exhausted_) return {};
  return make_error(Code::out_of_memory,
                    cat("activations of more than ", size_text(static_cast<uint64_t>(max_names_)),
                        " before they share memory, more than this machine can name; take a "
                        "smaller batch"));
}

int64_t Trace::find(const std::byte* p) const {
  if (tensors_.empty() || p < tensors_.front().data) return -1;
  const auto after =
      std::upper_bound(tensors_.begin(), tensors_.end(), p,
                       [](const std::byte* at, const Tensor& t) { return at < t.data; });
  const auto found = after - 1;
  return p < virtual_address(next_) ? found - tensors_.begin() : -1;
}

void Trace::note(const Tensor& t, int64_t id) {
  note_before(static_cast<int64_t>(commands_.size()), t, id);
}

void Trace::note_before(int64_t command, const Tensor& t, int64_t id) {
  notes_.push_back({command, t, id});
}

std::vector<Lifetime> Trace::lifetimes() const {
  std::vector<Lifetime> lives(tensors_.size());
  for (size_t i = 0; i < commands_.size(); ++i) {
    visit_command(commands_[i], [&](const Tensor& t, Access) {
      const int64_t found = t.empty() ? -1 : find(t.data);
      if (found < 0) return;
      Lifetime& life = lives[static_cast<size_t>(found)];
      if (life.first < 0) life.first = static_cast<int64_t>(i);
      life.last = static_cast<int64_t>(i);
    });
  }
  for (const Note& note : notes_) {
    const int64_t found = find(note.tensor.data);
    if (found < 0) continue;
    Lifetime& life = lives[static_cast<size_t>(found)];
    life.last = std::max(life.last, note.command - 1);
  }
  return lives;
}

}  // namespace loom::core
