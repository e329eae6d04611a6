// attend and attend_dx: self-attention of whole sequences. Sums over positions run over all
// positions that causality and the window allow a row; masked ones are zeros. Scores and weighted
// sums follow rule 2 of docs/numerics.md, the softmax and rowsum(P * dP) rule 4. Per head, dk and
// dv are sums under rule 2 over all rows of the sequence; rows that do not see the position are
// zeros. Heads that share keys add up, starting from the first. A sink is one more value of the
// softmax, after the last position. Lanes share the heads of rows (attend) and the kv heads of
// sequences (attend_dx).
#include "backend/reference/reduce.hpp"
#include "backend/reference/sums.hpp"

namespace loom::core::reference {
namespace {

constexpr float kInfinity = __builtin_inff();

// One head of one sequence: rows and positions are counted from its start. Args is AttendArgs or
// AttendDxArgs.
template <class T, class Args>
struct Head {
  Head(const Args& a, int64_t sequence, int64_t head)
      : args(a),
        length(a.q.rows() / a.sequences),
        width(a.q.cols() / a.heads),
        first(sequence * length),
        at(head * width),
        kv_at(head / (a.heads / a.kv_heads) * width),
        slope(a.slopes.empty() ? 0.0f : a.slopes.f32()[head]),
        sink(a.sinks.empty() ? nullptr : a.sinks.template row<T>(0) + head),
        mask(a.mask.empty() ? nullptr : a.mask.template row<T>(sequence)) {}

  const T* q(int64_t row) const { return args.q.template row<T>(first + row) + at; }
  const T* k(int64_t position) const { return args.k.template row<T>(first + position) + kv_at; }
  const T* v(int64_t position) const { return args.v.template row<T>(first + position) + kv_at; }

  // Positions that causality, the window and the begin of its document allow row `row`.
  LaneRange allowed(int64_t row) const {
    const int64_t after = row + 1;
    int64_t begin = args.window > 0 && after > args.window ? after - args.window : 0;
    if (!args.row_positions.empty())
      begin = std::max(begin, row - place_of(args.row_positions, first + row, 0).position);
    if (args.causal) return {begin, after};
    const bool cut = args.window > 0 && length - row > args.window;
    return {begin, cut ? row + args.window : length};
  }
  bool masked(int64_t position) const { return mask != nullptr && mask[position] == T(0); }

  // scale * q . k
  T plain_score(int64_t row, int64_t position) const {
    const T* a = q(row);
    const T* b = k(position);
    return chained<T>(width,
                      [&](int64_t d) {
                        return Factors<T>{a[d], b[d]};
                      }) *
           static_cast<T>(args.scale);
  }
  // tanh(score / soft_cap)
  T bent(int64_t row, int64_t position) const {
    return fmath::tanh<T>(plain_score(row, position) / static_cast<T>(args.soft_cap));
  }

  // The input of the softmax: -inf if masked.
  T score(int64_t row, int64_t position) const {
    if (masked(position)) return static_cast<T>(-kInfinity);
    const T s = args.soft_cap > 0 ? bent(row, position) * static_cast<T>(args.soft_cap)
                                  : plain_score(row, position);
    if (args.slopes.empty()) return s;
    const int64_t distance = row > position ? row - position : position - row;
    return s - static_cast<T>(slope) * static_cast<T>(distance);
  }

  const Args& args;
  int64_t length, width, first, at, kv_at;
  float slope;
  const T* sink;
  const T* mask;
};

// The maximum that the softmax of a row subtracts, and the sum that it divides by.
template <class T>
struct SoftmaxOf {
  T largest, sum;
  T weight(T score) const {
    if (largest == static_cast<T>(-kInfinity)) return T(0);
    return fmath::exp<T>(score - largest) / sum;
  }
};

// Writes the weights of the positions that row `row` may see to weights[0, ...), as softmax_row
// does; that of a sink follows.
template <class T, class H>
SoftmaxOf<T> row_weights(const H& head, int64_t row, T* weights) {
  const LaneRange seen = head.allowed(row);
  const int64_t n = seen.end - seen.begin;
  for (int64_t i = 0; i < n; ++i) weights[i] = head.score(row, seen.begin + i);
  if (head.sink != nullptr) weights[n] = *head.sink;
  const int64_t all = n + (head.sink != nullptr ? 1 : 0);
  SoftmaxOf<T> softmax{};
  softmax.largest = reduce_max<T>(all, [&](int64_t i) { return weights[i]; });
  softmax.sum =
      reduce_sum<T>(all, [&](int64_t i) { return fmath::exp<T>(weights[i] - softmax.largest); });
  if (head.sink != nullptr) weights[n] = softmax.weight(weights[n]);
  for (int64_t i = 0; i < n; ++i) {
    weights[i] = head.masked(seen.begin + i) ? T(0) : softmax.weight(weights[i]);
  }
  return softmax;
}

template <class T>
void attend_row(const AttendArgs& args, int64_t row, int64_t index, T* weights) {
  const int64_t length = args.q.rows() / args.sequences;
  const Head<T, AttendArgs> head(args, row / length, index);
  const LaneRange seen = head.allowed(row % length);
  row_weights<T>(head, row % length, weights);
  T* y = args.y.row<T>(row) + head.at;
  for (int64_t d = 0; d < head.width; ++d) {
    y[d] = chained<T>(seen.end - seen.begin, [&](int64_t i) {
      if (head.masked(seen.begin + i)) return Factors<T>{};
      return Factors<T>{weights[i], head.v(seen.begin + i)[d]};
    });
  }
}

// The gradients of head `index` of a sequence. Scratch: the weights of one row and its sink, and
// for every row the two numbers of its softmax and rowsum(P * dP).
template <class T>
struct HeadGradient {
  HeadGradient(const AttendDxArgs& args, int64_t sequence, int64_t index, T* scratch)
      : head(args, sequence, index),
        at(index),
        weights(scratch),
        largest(scratch + args.score_count()),
        sums(largest + head.length),
        dots(sums + head.length) {}

  // dP = dy . v
  T d_weight(int64_t row, int64_t position) const {
    const T* a = head.args.dy.template row<T>(head.first + row) + head.at;
    const T* b = head.v(position);
    return chained<T>(head.width, [&](int64_t d) { return Factors<T>{a[d], b[d]}; });
  }

  // dS from the weight; 0 when masked.
  T d_score(int64_t row, int64_t position, T weight) const {
    if (head.masked(position)) return T(0);
    T d = weight * (d_weight(row, position) - dots[row]);
    if (head.args.soft_cap > 0) {
      const T bent = head.bent(row, position);
      d = d * (T(1) - bent * bent);
    }
    return d * static_cast<T>(head.args.scale);
  }

  // dq of one row, and the numbers that its columns need.
  void row(int64_t r) const {
    const LaneRange seen = head.allowed(r);
    const int64_t n = seen.end - seen.begin;
    const SoftmaxOf<T> softmax = row_weights<T>(head, r, weights);
    largest[r] = softmax.largest;
    sums[r] = softmax.sum;
    dots[r] = reduce_sum<T>(n, [&](int64_t i) {
      return head.masked(seen.begin + i) ? T(0) : weights[i] * d_weight(r, seen.begin + i);
    });
    if (head.sink != nullptr)
      head.args.dsinks.template row<T>(head.first + r)[at] = -(weights[n] * dots[r]);
    for (int64_t i = 0; i < n; ++i) weights[i] = d_score(r, seen.begin + i, weights[i]);
    T* dq = head.args.dq.template row<T>(head.first + r) + head.at;
    for (int64_t d = 0; d < head.width; ++d) {
      dq[d] = chained<T>(n, [&](int64_t i) {
        if (head.masked(seen.begin + i)) return Factors<T>{};
        return Factors<T>{weights[i], head.k(seen.begin + i)[d]};
      });
    }
  }

  bool sees(int64_t row, int64_t position) const {
    const LaneRange seen = head.allowed(row);
    return position >= seen.begin && position < seen.end && !head.masked(position);
  }

  // The terms of position p in dk and dv. Overwrites weights with P of its column, then with dS.
  void column(int64_t p, bool accumulate) const {
    for (int64_t r = 0; r < head.length; ++r) {
      weights[r] = sees(r, p) ? SoftmaxOf<T>{largest[r], sums[r]}.weight(head.score(r, p)) : T(0);
    }
    add_rows(head.args.dv, head.args.dy, p, accumulate);
    for (int64_t r = 0; r < head.length; ++r) {
      if (sees(r, p)) weights[r] = d_score(r, p, weights[r]);
    }
    add_rows(head.args.dk, head.args.q, p, accumulate);
  }

  // to[p] (+)= the sum over rows r that see p of weights[r] * from[r].
  void add_rows(const Tensor& to, const Tensor& from, int64_t p, bool accumulate) const {
    T* y = to.row<T>(head.first + p) + head.kv_at;
    for (int64_t d = 0; d < head.width; ++d) {
      const T sum = chained<T>(head.length, [&](int64_t r) {
        if (!sees(r, p)) return Factors<T>{};
        return Factors<T>{weights[r], (from.template row<T>(head.first + r) + head.at)[d]};
      });
      store(y[d], sum, accumulate);
    }
  }

  Head<T, AttendDxArgs> head;
  int64_t at;
  T *weights, *largest, *sums, *dots;
};

}  // namespace

template <class T>
void attend(const AttendArgs& args, const Lane& lane) {
  const LaneRange work = lane.range(args.q.rows() * args.heads);
  for (int64_t i = work.begin; i < work.end; ++i) {
    attend_row<T>(args, i / args.heads, i % args.heads, reinterpret_cast<T*>(lane.scratch));
  }
}

template <class T>
void attend_dx(const AttendDxArgs& args, const Lane& lane) {
  const int64_t shared = args.heads / args.kv_heads;
  const LaneRange work = lane.range(args.sequences * args.kv_heads);
  for (int64_t i = work.begin; i < work.end; ++i) {
    for (int64_t h = 0; h < shared; ++h) {
      const HeadGradient<T> gradient(args, i / args.kv_heads, i % args.kv_heads * shared + h,
                                     reinterpret_cast<T*>(lane.scratch));
      for (int64_t r = 0; r < gradient.head.length; ++r) gradient.row(r);
      for (int64_t p = 0; p < gradient.head.length; ++p) gradient.column(p, h > 0);
    }
  }
}

LOOM_REFERENCE_BODY(attend, AttendArgs);
LOOM_REFERENCE_BODY(attend_dx, AttendDxArgs);

}  // namespace loom::core::reference
