// argmax, topk: by keys, which are integers in the order of the values. NaN is 0, below every
// number; both zeros are equal. Equal keys are ordered by index. Absent entries have key 0 and the
// largest index, so they come last.
#include <algorithm>

#include "backend/webgpu/kernels/kernels.hpp"
#include "backend/webgpu/wgsl/rows.hpp"

namespace loom::core::webgpu::kernels {
namespace {

// Keys, and the first entry of a workgroup, in the manner of group_sum. Two barriers.
constexpr std::string_view kEntries = R"(
struct Entry { key: u32, index: u32 }
fn no_entry() -> Entry { return Entry(0u, 0xffffffffu); }
fn before(a: Entry, b: Entry) -> bool {
  return a.key > b.key || (a.key == b.key && a.index < b.index);
}
var<workgroup> entries: array<Entry, lanes>;
var<workgroup> joined: array<Entry, 16>;
fn group_first(lane: u32, mine: Entry) -> Entry {
  entries[lane] = mine;
  workgroupBarrier();
  if (lane < 16u) {
    var first = mine;
    for (var i = lane + 16u; i < lanes; i += 16u) {
      let other = entries[i];
      if (before(other, first)) { first = other; }
    }
    joined[lane] = first;
  }
  workgroupBarrier();
  var first = joined[0];
  for (var i = 1u; i < 16u; i++) {
    let other = joined[i];
    if (before(other, first)) { first = other; }
  }
  return first;
}
)";

// The source of entries: the values of a row, or the results of its parts in `part`.
constexpr std::string_view kOfValues = R"(
fn entry(row: u32, c: u32) -> Entry { return Entry(key_of(x_at(row * p.x_s + c)), c); }
)";
constexpr std::string_view kOfParts = R"(
fn entry(row: u32, c: u32) -> Entry {
  let at = 2u * (row * p.cols + c);
  return Entry(part_word(at), part_word(at + 1u));
}
)";

// The target of entry k of row or part `i`.
constexpr std::string_view kToParts = R"(
fn put(i: u32, k: u32, e: Entry) {
  part_put(2u * (i * p.k + k), e.key);
  part_put(2u * (i * p.k + k) + 1u, e.index);
}
)";
constexpr std::string_view kToIds = R"(
fn put(row: u32, k: u32, e: Entry) { ids_set(row, i32(e.index)); }
)";
constexpr std::string_view kToValues = R"(
fn put(row: u32, k: u32, e: Entry) {
  values_set(row * p.values_s + k, x_at(row * p.x_s + e.index));
  ids_set(row * p.ids_s + k, i32(e.index));
}
)";

// A workgroup per part of a row. Each invocation tracks the first of its own entries that is not
// taken. The one whose entry is taken searches its next.
constexpr Kernel kSelect{"select", R"(
fn next(row: u32, begin: u32, end: u32, last: Entry, any: bool) -> Entry {
  var best = no_entry();
  for (var c = begin; c < end; c += lanes) {
    let e = entry(row, c);
    if (before(e, best) && (any || before(last, e))) { best = e; }
  }
  return best;
}
fn run(i: u32, lane: u32) {
  let row = i / p.parts;
  let begin = i % p.parts * p.part_cols;
  let end = min(begin + p.part_cols, p.cols);
  var mine = next(row, begin + lane, end, no_entry(), true);
  for (var k = 0u; k < p.k; k++) {
    let first = group_first(lane, mine);
    if (lane == 0u) { put(i, k, first); }
    if (first.index == mine.index && k + 1u < p.k) {
      mine = next(row, begin + lane, end, mine, false);
    }
  }
}
)"};

struct Selection {
  int64_t rows, cols, k, parts, part_cols;
};

Call& shaped(Call& call, const Selection& s) {
  return call.text(kEntries)
      .value("cols", s.cols)
      .value("k", s.k)
      .value("parts", s.parts)
      .value("part_cols", s.part_cols)
      .lanes(row_lanes(s.rows, s.part_cols));
}

// The first k entries of each row of x, to the target of `finish`: kToIds or kToValues. Long rows
// run in two steps, unless k is so large that the parts would eliminate little.
template <class Finish>
Status selected(Frame& frame, const Tensor& x, int64_t k, Finish finish) {
  const int64_t rows = x.rows(), cols = x.cols();
  const bool split = cols > 2 * kRowPart && k <= kRowPart / 8;
  if (!split) {
    Call call(frame, kSelect);
    shaped(call, {rows, cols, k, 1, cols}).text(kOfValues).read("x", x);
    return finish(call).rows(k > 0 ? rows : 0);
  }
  const int64_t parts = (cols + kRowPart - 1) / kRowPart;
  if (rows == 0 || k == 0) return {};
  LOOM_ASSIGN(const BufferSlice slice, frame.temporary(rows * parts * k * 8));
  Call first(frame, kSelect);
  shaped(first, {rows * parts, cols, k, parts, kRowPart}).text(kOfValues).text(kToParts);
  LOOM_TRY(first.read("x", x).words("part", slice, Access::update).rows(rows * parts));
  Call second(frame, kSelect);
  shaped(second, {rows, parts * k, k, 1, parts * k}).text(kOfParts);
  second.read("x", x).words("part", slice, Access::read);
  return finish(second).rows(rows);
}

}  // namespace

Status argmax(Frame& frame, const ArgmaxArgs& args) {
  return selected(frame, args.x, 1,
                  [&](Call& call) -> Call& { return call.text(kToIds).write("ids", args.ids); });
}

Status topk(Frame& frame, const TopkArgs& args) {
  return selected(frame, args.x, args.values.cols(), [&](Call& call) -> Call& {
    return call.text(kToValues).write("values", args.values).write("ids", args.ids);
  });
}

}  // namespace loom::core::webgpu::kernels
