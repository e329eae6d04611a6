// Operators that sort: the largest k, and each value once. NaN counts as larger than all numbers.
#include <algorithm>
#include <numeric>

#include "onnx/interpreter/families.hpp"
#include "onnx/operators/rows.hpp"

namespace loom::core::evaluate {
namespace {

template <class T>
bool before(T a, T b) {
  if (b != b) return a == a;
  return a < b;
}

// The largest or smallest k of each row; of equal ones the earlier.
Status topk(const Call& c) {
  LOOM_ASSIGN(const Value x, c.widened(0));
  LOOM_ASSIGN(const int axis, c.axis(c.integer("axis", -1), x.rank()));
  LOOM_ASSIGN(const int64_t k, c.whole_number(1, c.integer("k", 0)));
  const int64_t n = x.dims[static_cast<size_t>(axis)];
  if (k < 0 || k > n) return c.bad(cat("k is ", k, " of ", n));
  const bool largest = c.integer("largest", 1) != 0;
  std::vector<int> order;
  LOOM_ASSIGN(const Value moved, axes_last(c, x, {axis}, order));
  Dims dims = moved.dims;
  dims.back() = k;
  LOOM_ASSIGN(Value values, c.make(x.type, dims));
  LOOM_ASSIGN(Value ids, c.make(OnnxType::i64, dims));
  with_type(x.type, [&]<class T>(T) {
    std::vector<int64_t> at(static_cast<size_t>(n));
    for (int64_t r = 0, rows = n == 0 ? 0 : x.count() / n; r < rows; ++r) {
      const T* row = moved.data<T>() + r * n;
      std::iota(at.begin(), at.end(), 0);
      std::partial_sort(at.begin(), at.begin() + k, at.end(), [&](int64_t i, int64_t j) {
        if (before(row[i], row[j])) return !largest;
        if (before(row[j], row[i])) return largest;
        return i < j;
      });
      for (int64_t i = 0; i < k; ++i) {
        ids.data<int64_t>()[r * k + i] = at[static_cast<size_t>(i)];
        values.data<T>()[r * k + i] = row[at[static_cast<size_t>(i)]];
      }
    }
  });
  LOOM_ASSIGN(const Value y, axes_back(c, values, order));
  LOOM_TRY(c.give_as(y, c.value(0).type, 0));
  LOOM_ASSIGN(Value indices, axes_back(c, ids, order));
  return c.give(std::move(indices), 1);
}

Status give_list(const Call& c, const Dims& list, size_t i) {
  LOOM_ASSIGN(Value v, c.make(OnnxType::i64, {static_cast<int64_t>(list.size())}));
  std::ranges::copy(list, v.data<int64_t>());
  return c.give(std::move(v), i);
}

// Parts of x along an axis (or its elements), each once: where each stands for the first time,
// which one each part is, how often it is there.
struct Distinct {
  Dims first, inverse, counts;
};
template <class T>
Distinct distinct(const T* x, int64_t parts, int64_t size, bool sorted) {
  Dims at(static_cast<size_t>(parts));
  std::iota(at.begin(), at.end(), 0);
  const auto less = [&](int64_t i, int64_t j) {
    return std::lexicographical_compare(x + i * size, x + (i + 1) * size, x + j * size,
                                        x + (j + 1) * size, before<T>);
  };
  std::ranges::stable_sort(at, less);
  Distinct d;
  d.inverse.resize(at.size());
  for (size_t k = 0; k < at.size(); ++k) {
    if (k == 0 || less(at[k - 1], at[k])) {
      d.first.push_back(at[k]);
      d.counts.push_back(0);
    }
    ++d.counts.back();
    d.inverse[static_cast<size_t>(at[k])] = static_cast<int64_t>(d.first.size()) - 1;
  }
  if (sorted) return d;
  Dims order(d.first.size()), rank(d.first.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](int64_t i) { return d.first[static_cast<size_t>(i)]; });
  Distinct out;
  for (size_t k = 0; k < order.size(); ++k) {
    const auto from = static_cast<size_t>(order[k]);
    rank[from] = static_cast<int64_t>(k);
    out.first.push_back(d.first[from]);
    out.counts.push_back(d.counts[from]);
  }
  for (const int64_t i : d.inverse) out.inverse.push_back(rank[static_cast<size_t>(i)]);
  return out;
}

Status unique(const Call& c) {
  LOOM_ASSIGN(Value x, c.widened(0));
  const bool by_axis = c.given("axis");
  int axis = 0;
  if (by_axis) {
    LOOM_ASSIGN(axis, c.axis(c.integer("axis", 0), x.rank()));
  } else {
    x = x.view_as(Dims{x.count()});
  }
  // The axis comes first, so a part is contiguous.
  std::vector<int> others, order;
  for (int a = 0; a < x.rank(); ++a) {
    if (a != axis) others.push_back(a);
  }
  LOOM_ASSIGN(const Value moved, axes_last(c, x, others, order));
  const int64_t parts = moved.dims[0];
  const int64_t size = product(moved.dims, 1, moved.rank());
  const Distinct d = with_type(x.type, [&]<class T>(T) {
    return distinct(moved.data<T>(), parts, size, c.integer("sorted", 1) != 0);
  });
  Dims dims = moved.dims;
  dims[0] = static_cast<int64_t>(d.first.size());
  LOOM_ASSIGN(Value y, c.make(x.type, dims));
  with_type(x.type, [&]<class T>(T) {
    for (size_t k = 0; k < d.first.size(); ++k)
      std::copy_n(moved.data<T>() + d.first[k] * size, size,
                  y.data<T>() + static_cast<int64_t>(k) * size);
  });
  LOOM_ASSIGN(const Value back, axes_back(c, y, order));
  LOOM_TRY(c.give_as(back, c.value(0).type, 0));
  LOOM_TRY(give_list(c, d.first, 1));
  LOOM_TRY(give_list(c, d.inverse, 2));
  return give_list(c, d.counts, 3);
}

constexpr Operator kOrder[] = {
    {"", "TopK", topk, "a?a axis largest sorted k"},
    {"", "Unique", unique, "a axis sorted"},
};

}  // namespace

std::span<const Operator> order_operators() {
  return kOrder;
}

}  // namespace loom::core::evaluate
