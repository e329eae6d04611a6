// Check and gradient rule of the strided copy. products.cpp describes the layout of a check.
#include <algorithm>
#include <cstdlib>
#include <span>

#include "ops/check_rules.hpp"
#include "ops/checks.hpp"
#include "ops/gradients/gradient_rules.hpp"
#include "ops/gradients/gradient_support.hpp"
#include "ops/moves.hpp"

namespace loom::core {

using Target = Differentiator::Target;

namespace {

using rules::apart;
using rules::op_error;

// The limit of steps and extents; it keeps their sums and products below 2^63.
constexpr int64_t kMaxStep = int64_t{1} << 40;

Status copied_axes(const CopyArgs& args) {
  if (args.rank < 0 || args.rank > Shape::kMaxRank) {
    return op_error("copy", "it has ", args.rank, " axes: from 0 to ", Shape::kMaxRank,
                    " are possible");
  }
  int64_t count = 1;
  for (int k = 0; k < args.rank; ++k) {
    const bool sound = args.extent[k] >= 0 && args.extent[k] < kMaxStep / 1024 &&
                       std::abs(args.x_step[k]) < kMaxStep && std::abs(args.y_step[k]) < kMaxStep;
    if (!sound || __builtin_mul_overflow(count, args.extent[k], &count)) {
      return op_error("copy", "axis ", k, " has extent ", args.extent[k], " and steps ",
                      args.x_step[k], " and ", args.y_step[k],
                      ": extents below 2^30, none negative, and steps below 2^40 are possible");
    }
  }
  return {};
}

// The smallest and the largest element that a side touches are in its tensor.
Status inside(std::string_view name, const Tensor& t, const CopyArgs& args, int64_t first,
              const int64_t (&step)[Shape::kMaxRank]) {
  int64_t low = first, high = first;
  for (int k = 0; k < args.rank; ++k) {
    int64_t reach = 0;
    // A product that overflows is outside of any tensor.
    if (__builtin_mul_overflow(args.extent[k] - 1, step[k], &reach)) low = -1;
    if (__builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high)) low = -1;
  }
  if (low >= 0 && high < t.shape.count()) return {};
  return op_error("copy", "elements ", low, " to ", high, " of ", name, " ", t.shape.str(),
                  " are named: it has ", t.shape.count());
}

// With the axes ordered by step, every step exceeds the reach of the smaller ones. `zeros`: ignores
// axes with step 0.
bool distinct(const CopyArgs& args, const int64_t (&step)[Shape::kMaxRank], bool zeros) {
  int64_t reach = 0;
  bool left[Shape::kMaxRank] = {};
  for (int k = 0; k < args.rank; ++k) left[k] = args.extent[k] != 1 && !(zeros && step[k] == 0);
  for (;;) {
    int least = -1;
    for (int k = 0; k < args.rank; ++k) {
      if (left[k] && (least < 0 || std::abs(step[k]) < std::abs(step[least]))) least = k;
    }
    if (least < 0) return true;
    if (std::abs(step[least]) <= reach) return false;
    reach += (args.extent[least] - 1) * std::abs(step[least]);
    left[least] = false;
  }
}

// Copies the gradient of y back to the elements of x. `dy` takes the role of y; no step of x is 0.
Status give_back(Differentiator& d, const CopyArgs& a, const Tensor& dy, const Tensor& dx) {
  CopyArgs back;
  back.x = dy;
  back.y = dx;
  back.rank = a.rank;
  std::copy_n(a.extent, a.rank, back.extent);
  std::copy_n(a.y_step, a.rank, back.x_step);
  std::copy_n(a.x_step, a.rank, back.y_step);
  back.x_first = a.y_first;
  back.y_first = a.x_first;
  back.whole = a.count() == dx.shape.count();
  if (!back.whole) LOOM_TRY(d.ops().fill({dx, 0.0f}));
  return d.ops().copy(merged(back));
}

// Sums over the axes along which x is repeated: dy with those axes last is a matrix. The sums of
// its rows go back like a copy without these axes.
Status sum_back(Differentiator& d, const CopyArgs& a, const Tensor& dy, const Tensor& dx) {
  CopyArgs kept;
  kept.x_first = a.x_first;
  Walk from;
  from.first = a.y_first;
  int64_t repeats = 1, rows = 1;
  for (const bool broadcast : {false, true}) {
    for (int k = 0; k < a.rank; ++k) {
      if ((a.x_step[k] == 0) != broadcast) continue;
      from.extent[from.rank] = a.extent[k];
      from.step[from.rank++] = a.y_step[k];
      (broadcast ? repeats : rows) *= a.extent[k];
      if (broadcast) continue;
      kept.extent[kept.rank] = a.extent[k];
      kept.x_step[kept.rank++] = a.x_step[k];
    }
  }
  const Tensor terms = d.fresh(Shape{rows, repeats}), sums = d.fresh(Shape{rows});
  const Walk to(std::span<const int64_t>(from.extent, static_cast<size_t>(from.rank)));
  LOOM_TRY(d.ops().copy(move(dy, from, terms, to)));
  LOOM_TRY(d.ops().reduce({terms, sums, ReduceKind::sum}));
  const Walk flat(std::span<const int64_t>(kept.extent, static_cast<size_t>(kept.rank)));
  std::copy_n(flat.step, kept.rank, kept.y_step);
  return give_back(d, kept, sums, dx);
}

}  // namespace

Status check(const CopyArgs& args) {
  const auto& [x, y, extent, x_step, y_step, x_first, y_first, rank, whole] = args;
  const bool floats = x.dtype == DType::f64;
  const DType type = x.dtype == DType::i32 ? DType::i32 : floats ? DType::f64 : DType::f32;
  LOOM_TRY(rules::vector("copy", "x", x, x.shape.count(), type));
  LOOM_TRY(rules::vector("copy", "y", y, y.shape.count(), type));
  LOOM_TRY(copied_axes(args));
  if (args.count() > 0) {
    LOOM_TRY(inside("x", x, args, x_first, x_step));
    LOOM_TRY(inside("y", y, args, y_first, y_step));
    if (!distinct(args, y_step, false)) {
      return op_error("copy", "its steps name an element of y ", y.shape.str(),
                      " twice, or axes of y cross: each step must be beyond what the smaller ones "
                      "reach");
    }
  }
  if (whole && args.count() != y.shape.count()) {
    return op_error("copy", "it moves ", args.count(), " values, and y ", y.shape.str(),
                    " is to be written whole");
  }
  return apart("copy", "y", y, "x", x);
}

Status gradient_rule(Differentiator& d, const CopyArgs& a) {
  const Tensor dy = d.of(a.y);
  if (dy.empty() || a.x.dtype == DType::i32) return {};
  LOOM_ASSIGN(const Target x, d.gradient_target(a.x));
  if (x.out.empty()) return {};
  if (a.count() == 0) {
    LOOM_TRY(d.ops().fill({x.out, 0.0f}));
    return d.accumulate(x);
  }
  if (!distinct(a, a.x_step, true)) {
    return make_error(Code::unsupported,
                      "it reads elements of x through axes that cross, which have no gradient "
                      "rule; copy the parts one by one");
  }
  const CopyArgs merged_args = merged(a);
  const bool repeats = std::any_of(merged_args.x_step, merged_args.x_step + merged_args.rank,
                                   [](int64_t s) { return s == 0; });
  LOOM_TRY(repeats ? sum_back(d, merged_args, dy, x.out) : give_back(d, merged_args, dy, x.out));
  return d.accumulate(x);
}

}  // namespace loom::core
