// Ragged sessions: a pass has rows of several sequences, each at a position of its own. Each
// sequence has its own cache, or pages of a shared one (ops/recording/pages.hpp). Passes are
// recorded once.
#include <algorithm>
#include <cstring>

#include "base/text.hpp"
#include "grid/session_impl.hpp"
#include "ops/recording/recorder.hpp"

namespace loom::core {
namespace {

// The number of recorded passes that are kept. Speculative decoding alternates between one row and
// a few more, depending on accepted tokens. A server varies with the number of running requests.
constexpr size_t kKeptPasses = 16;

}  // namespace

Status Session::Impl::make_row_positions() {
  if (!options.ragged) return {};
  LOOM_TRY(check_ragged(*network));
  const int64_t count = rows_of(max_input);
  RaggedRows& r = ragged.emplace();
  r.place_width = 2 + (options.pages > 0 ? capacity / 16 : 0);
  LOOM_ASSIGN(r.place_memory, Buffer::allocate(count * r.place_width * 4));
  r.row_positions = zeroed(r.place_memory.data(), DType::i32, Shape{count, r.place_width});
  if (options.pages > 0) {
    LOOM_ASSIGN(r.page_memory, Buffer::allocate(options.sequences * (capacity / 16) * 4));
  }
  recorder->keep_rows_alone();
  return make_step_order(count);
}

Status Session::Impl::keep_passes(int64_t commands) {
  if (!ragged) return {};
  ragged->cached_plans.resize(kKeptPasses);
  for (CachedPlan& pass : ragged->cached_plans)
    pass.commands.reserve(static_cast<size_t>(commands));
  return {};
}

CachedPlan& RaggedRows::plan_for(const Tensor& x, int64_t num_outputs) {
  CachedPlan* oldest = cached_plans.data();
  for (CachedPlan& pass : cached_plans) {
    if (pass.num_outputs == num_outputs && pass.input.data == x.data && pass.input.shape == x.shape)
      return pass;
    if (pass.used < oldest->used) oldest = &pass;
  }
  oldest->num_outputs = -1;
  return *oldest;
}

Status Session::Impl::record_ragged(const Tensor& x, int64_t num_outputs, CachedPlan& cached_plan) {
  Tensor hidden, y;
  const Status recorded = [&]() -> Status {
    LOOM_TRY(run(x, 0, options.logits_from_cell, hidden));
    if (hidden.rows() != rows_of(x.shape)) {
      return invalid(cat(rows_of(x.shape), " rows become ", hidden.shape.str(),
                         " before the last cells, so none of them can go on alone"));
    }
    if (num_outputs == 0) return {};
    return run(hidden.slice_rows(0, num_outputs), options.logits_from_cell, network->cells().size(),
               y);
  }();
  if (!recorded.ok()) {
    recorder->discard();
    return recorded;
  }
  recorder->take(cached_plan.commands);
  cached_plan.input = x;
  cached_plan.output = y;
  cached_plan.num_outputs = num_outputs;
  ++ragged->recordings;
  return {};
}

// Small results are downloaded with the submission that makes them.
Status Session::Impl::fetch(const Tensor& t) {
  constexpr int64_t kLittle = int64_t{16} << 20;
  Device* device = recorder->ops().device;
  if (device == nullptr) return {};
  const MemoryRange range = range_of(t);
  if (range.bytes > kLittle) return device->download({&range, 1});
  LOOM_ASSIGN(const int64_t ticket, device->begin_download({&range, 1}));
  return device->end_download(ticket);
}

// On a device, ids and positions are uploaded for each pass; its commands read them at run time.
Result<Tensor> Session::forward_ragged(const Tensor& given, int64_t num_outputs) {
  Impl& s = *impl_;
  const int64_t placed = s.ragged ? s.ragged->row_positions.rows() : 0;
  if (placed != s.rows_of(given.shape)) {
    return invalid(
        cat("a pass of ", s.rows_of(given.shape), " rows, of which ", placed, " were placed"));
  }
  LOOM_ASSIGN(const Tensor x, s.received(given, s.input));
  LOOM_TRY(to_device(s.recorder->ops(), s.ragged->row_positions));
  if (!s.ragged->step_order.empty()) LOOM_TRY(to_device(s.recorder->ops(), s.ragged->step_order));
  CachedPlan& pass = s.ragged->plan_for(x, num_outputs);
  if (pass.num_outputs != num_outputs) LOOM_TRY(s.record_ragged(x, num_outputs, pass));
  pass.used = ++s.ragged->passes;
  LOOM_TRY(s.recorder->run(pass.commands));
  if (num_outputs > 0) LOOM_TRY(s.fetch(pass.output));
  return pass.output;
}

Status Session::set_row_positions(std::span<const RowPosition> rows) {
  Impl& s = *impl_;
  const auto count = static_cast<int64_t>(rows.size());
  if (!s.ragged || count > s.rows_of(s.max_input)) {
    return invalid(cat(count, " rows are placed; this session was made for ",
                       s.ragged ? s.rows_of(s.max_input) : 0));
  }
  for (const RowPosition& row : rows) {
    if (row.sequence >= 0 && row.sequence < s.options.sequences && row.position >= 0 &&
        row.position < s.last_position) {
      continue;
    }
    return make_error(Code::out_of_range,
                      cat("position ", row.position, " of sequence ", row.sequence,
                          " is not among ", s.last_position, " of ", s.options.sequences));
  }
  RaggedRows& own = *s.ragged;
  own.row_positions = zeroed(own.place_memory.data(), DType::i32, Shape{count, own.place_width});
  for (int64_t r = 0; r < count; ++r) {
    const RowPosition& row = rows[static_cast<size_t>(r)];
    int32_t* to = own.row_positions.i32() + r * own.place_width;
    const bool paged = s.options.pages > 0;
    *to++ = paged ? 0 : row.sequence;
    *to++ = row.position;
    if (paged) std::ranges::copy_n(page_table(row.sequence).begin(), row.position / 16 + 1, to);
  }
  s.order_steps(rows);
  return {};
}

bool Session::ragged() const {
  return impl_->options.ragged;
}
int64_t Session::recordings() const {
  return impl_->ragged ? impl_->ragged->recordings : 0;
}

std::span<int32_t> Session::page_table(int64_t sequence) {
  const int64_t pages = impl_->capacity / 16;
  return {reinterpret_cast<int32_t*>(impl_->ragged->page_memory.data()) + sequence * pages,
          static_cast<size_t>(pages)};
}

namespace {

// Calls f(location of page 0, bytes of a page) for every part of the pages. Each head stores the
// numbers of a page contiguously; the steps of the page follow those of all heads.
template <class F>
void each_page_part(const std::vector<KvCache>& caches, F&& f) {
  for (const KvCache& cache : caches) {
    const DTypeInfo& info = dtype_info(cache.dtype);
    const int64_t numbers = cache.head_dim * 16 * info.bits / 8;
    const int64_t steps = info.block > 0 ? cache.head_dim / info.block * 16 * 2 : 0;
    for (std::byte* side : {cache.keys, cache.values}) {
      const int64_t groups = cache.capacity / 16;
      std::byte* behind = side + cache.kv_heads * groups * numbers;
      for (int64_t head = 0; head < cache.kv_heads; ++head) {
        if (numbers > 0) f(side + head * groups * numbers, numbers);
        if (steps > 0) f(behind + head * groups * steps, steps);
      }
    }
  }
}

std::vector<MemoryRange> ranges_of_pages(const std::vector<KvCache>& caches,
                                         std::span<const int32_t> pages) {
  std::vector<MemoryRange> ranges;
  each_page_part(caches, [&](const std::byte* begin, int64_t bytes) {
    for (const int32_t page : pages) ranges.push_back({begin + page * bytes, bytes});
  });
  return ranges;
}

}  // namespace

Status Session::copy_page(int32_t from, int32_t to) {
  Impl& s = *impl_;
  s.ragged->page_moves.clear();
  each_page_part(s.caches, [&](std::byte* begin, int64_t bytes) {
    s.ragged->page_moves.push_back({begin + from * bytes, begin + to * bytes, bytes});
  });
  if (Device* device = s.recorder->ops().device; device != nullptr)
    return device->move(s.ragged->page_moves);
  for (const Device::Move& m : s.ragged->page_moves)
    std::memcpy(m.to, m.from, static_cast<size_t>(m.bytes));
  return {};
}

Status Session::fetch_pages(std::span<const int32_t> pages) const {
  Device* device = impl_->recorder->ops().device;
  return device == nullptr ? Status{} : device->download(ranges_of_pages(impl_->caches, pages));
}

Status Session::send_pages(std::span<const int32_t> pages) const {
  Device* device = impl_->recorder->ops().device;
  if (device == nullptr) return {};
  for (const MemoryRange& range : ranges_of_pages(impl_->caches, pages))
    LOOM_TRY(device->upload(range.begin, range.bytes));
  return {};
}

}  // namespace loom::core
