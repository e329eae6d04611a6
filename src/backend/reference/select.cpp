// argmax, topk and top_experts: the largest values of each row. One order for all: larger first,
// NaN after every number, ties by ascending index (+0 and -0 tie). Lanes share the rows.
// group_rows: the pairs of all rows by expert; one lane.
#include "backend/reference/kernels.hpp"

namespace loom::core::reference {
namespace {

// Whether b, which comes later in the row, beats a.
template <class T>
bool beats(T b, T a) {
  return b > a || (a != a && b == b);
}

// The next entry of the descending order after entry `last` (or the first, when last is -1).
template <class T>
int64_t next_best(const T* x, int64_t n, int64_t last) {
  int64_t best = -1;
  for (int64_t i = 0; i < n; ++i) {
    if (last >= 0) {
      const bool before_last = beats(x[i], x[last]) || (!beats(x[last], x[i]) && i <= last);
      if (before_last) continue;
    }
    if (best < 0 || beats(x[i], x[best])) best = i;
  }
  return best;
}

}  // namespace

template <class T>
void argmax(const ArgmaxArgs& args, const Lane& lane) {
  const LaneRange rows = lane.range(args.x.rows());
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    args.ids.i32()[r] = static_cast<int32_t>(next_best(args.x.row<T>(r), args.x.cols(), -1));
  }
}
LOOM_REFERENCE_BODY(argmax, ArgmaxArgs);

template <class T>
void topk(const TopkArgs& args, const Lane& lane) {
  const LaneRange rows = lane.range(args.x.rows());
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const T* x = args.x.row<T>(r);
    int64_t last = -1;
    for (int64_t j = 0; j < args.values.cols(); ++j) {
      last = next_best(x, args.x.cols(), last);
      args.values.row<T>(r)[j] = x[last];
      args.ids.i32()[r * args.ids.row_stride + j] = static_cast<int32_t>(last);
    }
  }
}
LOOM_REFERENCE_BODY(topk, TopkArgs);

namespace {

// The sum of the `count` largest of n values, from the largest.
template <class T>
T sum_of_best(const T* x, int64_t n, int64_t count) {
  int64_t last = next_best(x, n, -1);
  T sum = x[last];
  for (int64_t j = 1; j < count; ++j) {
    last = next_best(x, n, last);
    sum = sum + x[last];
  }
  return sum;
}

// The eligible experts of a row: values [count] and ids, in ascending order.
template <class T>
struct Eligible {
  T* values;
  int32_t* ids;
  int64_t count = 0;
};

template <class T>
Eligible<T> eligible(const TopExpertsArgs& args, int64_t r, std::byte* scratch) {
  const int64_t n = args.x.cols(), length = n / args.groups;
  T* const values = reinterpret_cast<T*>(scratch);
  T* const scores = values + n;
  auto* const ids = reinterpret_cast<int32_t*>(scores + n);
  const T* x = args.x.row<T>(r);
  for (int64_t i = 0; i < n; ++i)
    values[i] = args.bias.empty() ? x[i] : x[i] + args.bias.values<T>()[i];
  Eligible<T> all{values, ids};
  for (int64_t g = 0; g < args.groups; ++g) {
    if (args.groups > 1) scores[g] = sum_of_best(values + g * length, length, args.group_best);
    ids[g] = 0;
  }
  int64_t last = -1;
  for (int64_t m = 0; m < args.chosen_groups; ++m) {
    last = args.groups > 1 ? next_best(scores, args.groups, last) : 0;
    ids[last] = 1;
  }
  // The marks of the groups move out of the way of the ids, which are at most at their index.
  for (int64_t g = 0; g < args.groups; ++g) scores[g] = static_cast<T>(ids[g]);
  for (int64_t i = 0; i < n; ++i) {
    if (scores[i / length] == T{0}) continue;
    values[all.count] = values[i];
    ids[all.count++] = static_cast<int32_t>(i);
  }
  return all;
}

}  // namespace

template <class T>
void top_experts(const TopExpertsArgs& args, const Lane& lane) {
  const LaneRange rows = lane.range(args.x.rows());
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const Eligible<T> from = eligible<T>(args, r, lane.scratch);
    int32_t* ids = args.ids.i32() + r * args.ids.row_stride;
    int32_t* slots = args.slots.i32() + r * args.slots.row_stride;
    int64_t last = -1;
    for (int64_t j = 0; j < args.ids.cols(); ++j) {
      last = next_best(from.values, from.count, last);
      ids[j] = from.ids[last];
      slots[j] = static_cast<int32_t>(r * args.x.cols()) + ids[j];
    }
  }
}
LOOM_REFERENCE_BODY(top_experts, TopExpertsArgs);

template <class T>
void group_rows(const GroupRowsArgs& args, const Lane& lane) {
  if (lane.index != 0) return;
  const int32_t* ids = args.ids.i32();
  const int64_t pairs = args.ids.shape.count(), experts = args.starts.shape.count() - 1;
  // starts[e] is the next index of expert e while pairs are placed, and then the first of e + 1.
  int32_t* starts = args.starts.i32();
  for (int64_t e = 0; e <= experts; ++e) starts[e] = 0;
  for (int64_t p = 0; p < pairs; ++p) ++starts[ids[p] + 1];
  for (int64_t e = 0; e < experts; ++e) starts[e + 1] += starts[e];
  for (int64_t p = 0; p < pairs; ++p) {
    const int32_t index = starts[ids[p]]++;
    args.rows.i32()[index] = static_cast<int32_t>(p / args.ids.cols());
    args.experts.i32()[index] = ids[p];
    args.positions.i32()[p] = index;
  }
  for (int64_t e = experts; e > 0; --e) starts[e] = starts[e - 1];
  starts[0] = 0;
}
LOOM_REFERENCE_BODY(group_rows, GroupRowsArgs);

}  // namespace loom::core::reference
