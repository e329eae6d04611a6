// The attention of one row with its neighbours. The dispatch that attends also rotates queries and
// keys and writes the cache. The products that read its splits join them.
#include "backend/webgpu/fusion/fuse.hpp"
#include "backend/webgpu/kernels/attention/attend_one.hpp"
#include "backend/webgpu/kernels/products/row_products.hpp"

namespace loom::core::webgpu {
namespace {

bool same_cache(const KvCache& a, const KvCache& b) {
  return a.keys == b.keys && a.values == b.values && a.kv_heads == b.kv_heads &&
         a.head_dim == b.head_dim && a.capacity == b.capacity && a.dtype == b.dtype;
}

// Whether finished workgroups may write y while others still read. Each workgroup writes one head
// of y and reads that head of the queries.
bool writes_apart(const RopeWrite& run, const Tensor& y) {
  if (overlap(y, run.k->x) || overlap(y, run.write->v)) return false;
  return y.data == run.q->x.data || !overlap(y, run.q->x);
}

// The same for the keys that are rotated.
bool keeps_apart(const RopeWrite& run, const Tensor& kept, const Tensor& y) {
  return !overlap(kept, run.q->x) && !overlap(kept, run.k->x) && !overlap(kept, run.write->v) &&
         !overlap(kept, y);
}

// Whether the following attention `a` can include rope and the cache write. No other command may
// read the rotated queries, and the row must be the newest position.
bool turns_itself(const RopeWrite& run, const AttentionArgs& a, std::span<const Command> after) {
  if (run.q->y.data != a.q.data || run.q->x.rows() != 1 || run.q->heads != a.heads) return false;
  if (run.q->x.dtype != DType::f32 || run.k->x.dtype != DType::f32) return false;
  if (!same_cache(run.write->cache, a.cache) || run.k->heads != a.cache.kv_heads) return false;
  if (dtype_info(a.cache.dtype).block > 0) return false;
  if (!a.row_positions.empty() || run.write->first != a.first || a.length != a.first + 1)
    return false;
  return dead(after, run.q->y);
}

}  // namespace

Result<int64_t> fuse_attention(Frame& frame, std::span<const Command> rest) {
  RopeWrite run;
  int64_t taken = 1;
  const auto* a = args_at<AttentionArgs>(rest, 0);
  if (a == nullptr && take_rope_write(frame, rest, run)) {
    a = args_at<AttentionArgs>(rest, 3);
    taken = 4;
  }
  if (a == nullptr || !a->row_positions.empty()) return 0;
  if (!a->slopes.empty() || !a->sinks.empty()) return 0;
  const OneRow row = one_row(*a);
  const auto after = rest.subspan(static_cast<size_t>(taken));
  if (!row.fits || (taken > 1 && !turns_itself(run, *a, after))) return 0;
  const RopeWrite* before = nullptr;
  if (taken > 1) {
    if (!keeps_apart(run, run.kept, a->y)) return 0;
    if (row.splits == 1 && !writes_apart(run, a->y)) return 0;
    before = &run;
  }
  if (row.splits == 1) {
    LOOM_TRY(attend_one(frame, *a, row, {}, before));
    return taken;
  }
  LOOM_ASSIGN(const BufferSlice part, frame.temporary(join_bytes(*a, row.splits)));
  LOOM_TRY(attend_one(frame, *a, row, part, before));
  const JoinedRow joined{a->y, part, row.splits, a->heads, a->cache.head_dim};
  LOOM_ASSIGN(const int64_t products, fuse_products(frame, after, &joined));
  if (products == 0) LOOM_TRY(join_splits(frame, *a, row.splits, part));
  return taken + products;
}

}  // namespace loom::core::webgpu
