// Recurrences along a sequence: causal_conv and selective_scan, and their gradients. The order of
// rows is that of time. Lanes share channels of a convolution and heads of a scan; db and dc share
// the numbers of a state.
#include "backend/reference/chain.hpp"
#include "backend/reference/kernels.hpp"
#include "ops/fmath.hpp"

namespace loom::core::reference {

// A row of a recurrence: its row in x, and the rows of `state` before and after it. A null `before`
// means zeros.
template <class T>
struct Step {
  int64_t row;
  const T* before;
  T* after;
};

// Calls f(step) for each row in the order of time. Without state, both are `scratch`, which is
// cleared at the start of each sequence.
template <class T, class Args, class F>
void each_step(const Args& args, T* scratch, int64_t scratch_count, F f) {
  const int64_t rows = args.x.rows(), length = rows / args.sequences;
  for (int64_t i = 0; i < rows; ++i) {
    const int32_t* o = args.order.empty() ? nullptr : args.order.i32() + i * args.order.row_stride;
    const int64_t row = o == nullptr ? i : o[0];
    if (args.state.empty()) {
      for (int64_t k = 0; k < scratch_count && i % length == 0; ++k) scratch[k] = T(0);
      f(Step<T>{row, scratch, scratch});
    } else if (o == nullptr) {
      T* const state = args.state.template row<T>(i / length);
      f(Step<T>{row, state, state});
    } else {
      f(Step<T>{row, o[1] < 0 ? nullptr : args.state.template row<T>(o[1]),
                args.state.template row<T>(o[2])});
    }
  }
}

// x[t - back, c] of a sequence that begins at row `first`; zero before it.
template <class T>
T earlier(const Tensor& x, int64_t first, int64_t t, int64_t back, int64_t c) {
  return back > t ? T(0) : x.row<T>(first + t - back)[c];
}

template <class T>
void causal_conv(const CausalConvArgs& args, const Lane& lane) {
  const int64_t channels = args.x.cols(), past = args.kernel() - 1;
  const LaneRange mine = lane.range(channels, 16);
  T window[CausalConvArgs::kMaxKernel];
  for (int64_t c = mine.begin; c < mine.end; ++c) {
    const T* w = args.w.values<T>() + c * (past + 1);
    T kept[CausalConvArgs::kMaxKernel];
    // A state has `channels` values for each earlier row; the scratch has those of one channel.
    const int64_t at = args.state.empty() ? 0 : c, step = args.state.empty() ? 1 : channels;
    each_step<T>(args, kept, past, [&](const Step<T>& s) {
      for (int64_t k = 0; k < past; ++k)
        window[k] = s.before == nullptr ? T(0) : s.before[at + k * step];
      window[past] = args.x.row<T>(s.row)[c];
      T sum = chained<T>(past + 1, [&](int64_t k) { return Factors<T>{window[k], w[k]}; });
      if (!args.bias.empty()) sum = sum + args.bias.values<T>()[c];
      args.y.row<T>(s.row)[c] = sum;
      for (int64_t k = 0; k < past; ++k) s.after[at + k * step] = window[k + 1];
    });
  }
}
LOOM_REFERENCE_BODY(causal_conv, CausalConvArgs);

template <class T>
void causal_conv_dx(const CausalConvDxArgs& args, const Lane& lane) {
  const int64_t kernel = args.kernel(), length = args.x.rows() / args.sequences;
  const LaneRange mine = lane.range(args.x.cols());
  for (int64_t c = mine.begin; c < mine.end; ++c) {
    const T* w = args.w.values<T>() + c * kernel;
    for (int64_t r = 0; r < args.x.rows() && !args.dx.empty(); ++r) {
      const int64_t first = r / length * length, end = first + length;
      // dy of the rows that read x[r] with weight k; later rows than the last have none.
      const T sum = chained<T>(kernel, [&](int64_t k) {
        const int64_t from = r + kernel - 1 - k;
        return Factors<T>{from < end ? args.dy.row<T>(from)[c] : T(0), w[k]};
      });
      T& dx = args.dx.row<T>(r)[c];
      dx = args.accumulate_dx ? dx + sum : sum;
    }
    for (int64_t k = 0; k < kernel && !args.dw.empty(); ++k) {
      const T sum = chained<T>(args.x.rows(), [&](int64_t r) {
        const int64_t first = r / length * length;
        return Factors<T>{args.dy.row<T>(r)[c],
                          earlier<T>(args.x, first, r - first, kernel - 1 - k, c)};
      });
      T& dw = args.dw.values<T>()[c * kernel + k];
      dw = args.accumulate_dw ? dw + sum : sum;
    }
  }
}
LOOM_REFERENCE_BODY(causal_conv_dx, CausalConvDxArgs);

// The factors of head `i` of a scan, for all of its channels.
template <class T>
struct ScanHead {
  const T *x, *dt, *a, *b, *c;  // of the head: the first channel, and number 0
  int64_t x_stride, dt_stride, b_stride, c_stride, numbers;
  bool single;  // one number of `a` for all n

  template <class Args>
  ScanHead(const Args& args, int64_t i)
      : x_stride(args.x.row_stride),
        dt_stride(args.dt.row_stride),
        b_stride(args.b.row_stride),
        c_stride(args.c.row_stride),
        numbers(args.numbers()),
        single(args.a.shape.count() == args.heads()) {
    const int64_t group = i / (args.heads() / args.groups);
    x = args.x.template values<T>() + i * args.channels();
    dt = args.dt.template values<T>() + i;
    a = args.a.template values<T>() + (single ? i : i * numbers);
    b = args.b.template values<T>() + group * numbers;
    c = args.c.template values<T>() + group * numbers;
  }
  T step(int64_t r) const { return dt[r * dt_stride]; }
  T in(int64_t r, int64_t p) const { return x[r * x_stride + p]; }
  T rate(int64_t n) const { return a[single ? 0 : n]; }
  T decay(int64_t r, int64_t n) const { return fmath::exp<T>(step(r) * rate(n)); }
  T write(int64_t r, int64_t n) const { return b[r * b_stride + n]; }
  T read(int64_t r, int64_t n) const { return c[r * c_stride + n]; }
  // Number n after row r, from that before it.
  T next(int64_t r, int64_t p, int64_t n, T before) const {
    return fused(decay(r, n), before, (step(r) * write(r, n)) * in(r, p));
  }
};

template <class T>
void selective_scan(const SelectiveScanArgs& args, const Lane& lane) {
  const int64_t channels = args.channels(), numbers = args.numbers();
  const LaneRange heads = lane.range(args.heads());
  T* const scratch = reinterpret_cast<T*>(lane.scratch);
  for (int64_t i = heads.begin; i < heads.end; ++i) {
    const ScanHead<T> head(args, i);
    // A state has all channels for number 0, then for number 1 ...; the scratch has one head.
    const int64_t at = args.state.empty() ? 0 : i * channels;
    const int64_t stride = args.state.empty() ? channels : args.x.cols();
    each_step<T>(args, scratch, channels * numbers, [&](const Step<T>& s) {
      T decays[SelectiveScanArgs::kMaxState], writes[SelectiveScanArgs::kMaxState];
      for (int64_t n = 0; n < numbers; ++n) {
        decays[n] = head.single && n > 0 ? decays[0] : head.decay(s.row, n);
        writes[n] = head.step(s.row) * head.write(s.row, n);
      }
      T* y = args.y.row<T>(s.row) + i * channels;
      for (int64_t p = 0; p < channels; ++p) {
        const T in = head.in(s.row, p);
        T after[SelectiveScanArgs::kMaxState];
        for (int64_t n = 0; n < numbers; ++n) {
          const int64_t index = at + n * stride + p;
          const T before = s.before == nullptr ? T(0) : s.before[index];
          s.after[index] = after[n] = fused(decays[n], before, writes[n] * in);
        }
        T sum = chained<T>(numbers, [&](int64_t n) {
          return Factors<T>{head.read(s.row, n), after[n]};
        });
        if (!args.d.empty()) sum = sum + args.d.values<T>()[i] * in;
        y[p] = sum;
      }
    });
  }
}
LOOM_REFERENCE_BODY(selective_scan, SelectiveScanArgs);

// The sums of one head that selective_scan_dx writes; null if absent.
template <class T>
struct ScanSums {
  T *da, *dd, *ddt;  // ddt: of row 0
  int64_t ddt_stride;
};

// The backward pass of channel p over the rows [first, first + length) of a sequence.
template <class T>
void scan_back(const SelectiveScanDxArgs& args, const ScanHead<T>& head, int64_t i, int64_t p,
               int64_t first, T* states, const ScanSums<T>& sums) {
  const int64_t length = args.x.rows() / args.sequences, numbers = head.numbers;
  const int64_t column = i * args.channels() + p;
  for (int64_t n = 0; n < numbers; ++n) states[n] = T(0);
  for (int64_t t = 0; t < length; ++t) {
    for (int64_t n = 0; n < numbers; ++n)
      states[(t + 1) * numbers + n] = head.next(first + t, p, n, states[t * numbers + n]);
  }
  T later[SelectiveScanArgs::kMaxState] = {};  // exp(dt[t+1] a[n]) l[t+1,n]
  for (int64_t t = length; t-- > 0;) {
    const int64_t r = first + t;
    const T dy = args.dy.row<T>(r)[column], in = head.in(r, p), step = head.step(r);
    T written = T(0);
    for (int64_t n = 0; n < numbers; ++n) {
      const T l = fused(head.read(r, n), dy, later[n]), decay = head.decay(r, n);
      const T moved = decay * states[t * numbers + n];
      written = fused(head.write(r, n), l, written);
      if (sums.ddt != nullptr) {
        T& ddt = sums.ddt[r * sums.ddt_stride];
        ddt = fused(l, fused(head.rate(n), moved, head.write(r, n) * in), ddt);
      }
      if (sums.da != nullptr) {
        T& da = sums.da[head.single ? 0 : n];
        da = fused(l, step * moved, da);
      }
      later[n] = decay * l;
    }
    if (!args.dx.empty()) {
      const T through = args.d.empty() ? T(0) : args.d.values<T>()[i] * dy;
      args.dx.row<T>(r)[column] = fused(step, written, through);
    }
    if (sums.dd != nullptr) *sums.dd = fused(dy, in, *sums.dd);
  }
}

template <class T>
void selective_scan_dx(const SelectiveScanDxArgs& args, const Lane& lane) {
  const int64_t rows = args.x.rows(), length = rows / args.sequences;
  const LaneRange heads = lane.range(args.heads());
  for (int64_t i = heads.begin; i < heads.end; ++i) {
    const ScanHead<T> head(args, i);
    ScanSums<T> sums{nullptr, nullptr, nullptr, 0};
    if (!args.da.empty()) {
      const int64_t count = head.single ? 1 : head.numbers;
      sums.da = args.da.values<T>() + i * count;
      for (int64_t n = 0; n < count; ++n) sums.da[n] = T(0);
    }
    if (!args.dd.empty()) sums.dd = args.dd.values<T>() + i, *sums.dd = T(0);
    if (!args.ddt.empty()) {
      sums.ddt = args.ddt.values<T>() + i, sums.ddt_stride = args.ddt.row_stride;
      for (int64_t r = 0; r < rows; ++r) sums.ddt[r * sums.ddt_stride] = T(0);
    }
    for (int64_t first = 0; first < rows; first += length) {
      for (int64_t p = 0; p < args.channels(); ++p)
        scan_back<T>(args, head, i, p, first, reinterpret_cast<T*>(lane.scratch), sums);
    }
  }
}
LOOM_REFERENCE_BODY(selective_scan_dx, SelectiveScanDxArgs);

template <class T>
void selective_scan_db(const SelectiveScanDbArgs& args, const Lane& lane) {
  const int64_t rows = args.x.rows(), length = rows / args.sequences, numbers = args.numbers();
  const int64_t heads = args.heads() / args.groups;
  T* const states = reinterpret_cast<T*>(lane.scratch);
  const LaneRange columns = lane.range(args.groups * numbers);
  for (int64_t column = columns.begin; column < columns.end; ++column) {
    const int64_t n = column % numbers, first_head = column / numbers * heads;
    for (int64_t r = 0; r < rows; ++r) {
      if (!args.db.empty()) args.db.row<T>(r)[column] = T(0);
      if (!args.dc.empty()) args.dc.row<T>(r)[column] = T(0);
    }
    for (int64_t channel = 0; channel < heads * args.channels() * args.sequences; ++channel) {
      const int64_t first = channel % args.sequences * length, at = channel / args.sequences;
      const int64_t i = first_head + at / args.channels(), p = at % args.channels();
      const ScanHead<T> head(args, i);
      T state = T(0), later = T(0);
      for (int64_t t = 0; t < length; ++t) states[t] = state = head.next(first + t, p, n, state);
      for (int64_t t = length; t-- > 0;) {
        const int64_t r = first + t;
        const T dy = args.dy.row<T>(r)[i * args.channels() + p];
        const T l = fused(head.read(r, n), dy, later);
        if (!args.db.empty()) {
          T& db = args.db.row<T>(r)[column];
          db = fused(l, head.step(r) * head.in(r, p), db);
        }
        if (!args.dc.empty()) {
          T& dc = args.dc.row<T>(r)[column];
          dc = fused(dy, states[t], dc);
        }
        later = head.decay(r, n) * l;
      }
    }
  }
}
LOOM_REFERENCE_BODY(selective_scan_db, SelectiveScanDbArgs);

}  // namespace loom::core::reference
