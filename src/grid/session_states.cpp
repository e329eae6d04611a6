// Recurrent states of ragged sessions. Each sequence has two rows of every state. A pass reads the
// current one and writes the other, so the state before a pass remains until the next one.
#include <algorithm>
#include <cstring>

#include "grid/session_impl.hpp"
#include "ops/recording/recorder.hpp"

namespace loom::core {
namespace {

constexpr int64_t kStepWidth = 3;

}  // namespace

bool Session::has_states() const {
  return std::ranges::any_of(impl_->network->states(),
                             [](const StateSpec& s) { return s.width > 0; });
}

Status Session::Impl::make_step_order(int64_t rows) {
  const auto recurrent = [](const StateSpec& s) { return s.width > 0; };
  if (std::ranges::none_of(network->states(), recurrent)) return {};
  RaggedRows& r = *ragged;
  LOOM_ASSIGN(r.order_memory, Buffer::allocate(rows * kStepWidth * 4));
  r.step_order = zeroed(r.order_memory.data(), DType::i32, Shape{rows, kStepWidth});
  r.second.resize(static_cast<size_t>(options.sequences));
  r.in_pass.resize(static_cast<size_t>(options.sequences));
  return {};
}

int64_t Session::Impl::state_row(int64_t sequence, bool current) const {
  return 2 * sequence + (ragged->second[static_cast<size_t>(sequence)] == current ? 1 : 0);
}

// The rows of a sequence are in ascending order of position, whatever their order in the pass.
void Session::Impl::order_steps(std::span<const RowPosition> rows) {
  RaggedRows& own = *ragged;
  if (own.order_memory.size() == 0) return;
  const auto count = static_cast<int64_t>(rows.size());
  own.step_order = zeroed(own.order_memory.data(), DType::i32, Shape{count, kStepWidth});
  int32_t* const order = own.step_order.i32();
  for (int64_t r = 0; r < count; ++r) order[r * kStepWidth] = static_cast<int32_t>(r);
  struct Entry {
    int32_t row, before, after;
  };
  auto* const entries = reinterpret_cast<Entry*>(order);
  const auto at = [&](const Entry& e) { return rows[static_cast<size_t>(e.row)]; };
  std::sort(entries, entries + count, [&](const Entry& a, const Entry& b) {
    const RowPosition x = at(a), y = at(b);
    return x.sequence != y.sequence ? x.sequence < y.sequence : x.position < y.position;
  });
  own.in_pass.assign(own.in_pass.size(), false);
  for (int64_t i = 0; i < count; ++i) {
    const RowPosition row = at(entries[i]);
    const bool first = i == 0 || at(entries[i - 1]).sequence != row.sequence;
    const auto next = static_cast<int32_t>(state_row(row.sequence, false));
    const auto current = static_cast<int32_t>(state_row(row.sequence, true));
    entries[i].before = !first ? next : row.position == 0 ? -1 : current;
    entries[i].after = next;
    own.in_pass[static_cast<size_t>(row.sequence)] = true;
  }
}

void Session::keep_states() {
  if (!impl_->ragged) return;
  RaggedRows& own = *impl_->ragged;
  for (size_t s = 0; s < own.in_pass.size(); ++s) {
    if (own.in_pass[s]) own.second[s] = !own.second[s];
  }
  own.in_pass.assign(own.in_pass.size(), false);
}

void Session::undo_states(int64_t sequence) {
  if (!impl_->ragged || impl_->ragged->second.empty()) return;
  std::vector<bool>& second = impl_->ragged->second;
  second[static_cast<size_t>(sequence)] = !second[static_cast<size_t>(sequence)];
}

std::vector<Tensor> Session::states_of(int64_t sequence) const {
  std::vector<Tensor> out;
  for (const Tensor& t : impl_->with_width())
    out.push_back(t.slice_rows(impl_->state_row(sequence, true), 1));
  return out;
}

Status Session::copy_states(int64_t from, int64_t to) {
  const std::vector<Tensor> source = states_of(from), target = states_of(to);
  Device* const device = impl_->recorder->ops().device;
  std::vector<Device::Move> moves;
  for (size_t i = 0; i < source.size(); ++i) {
    const int64_t bytes = plain_bytes(source[i].dtype, source[i].shape);
    if (device == nullptr) {
      std::memcpy(target[i].data, source[i].data, static_cast<size_t>(bytes));
    } else {
      moves.push_back({source[i].data, target[i].data, bytes});
    }
  }
  return moves.empty() ? Status{} : device->move(moves);
}

Status Session::fetch_states(int64_t sequence) const {
  return to_host(impl_->recorder->ops(), states_of(sequence));
}

Status Session::send_states(int64_t sequence) const {
  for (const Tensor& t : states_of(sequence)) LOOM_TRY(to_device(impl_->recorder->ops(), t));
  return {};
}

}  // namespace loom::core
