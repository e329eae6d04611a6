// pool and pool_dx. Windows of a row of outputs differ along the last axis only. If all taps of
// that axis are inside of the input, sixteen outputs are made at once, one per lane. The remaining
// outputs, and adaptive windows, run one by one with the same operations.

// A row of outputs of one channel.
struct PoolRow {
  const float* x;  // the channel
  float* y;
  int32_t* ids;  // may be null: not requested
  PoolSpan s0, s1;
};

// Calls f(offset of the row of taps in x, number of its first tap) for the taps of the two outer
// axes.
template <class F>
LOOM_INLINE void each_tap_row(const PoolArgs& args, const PoolRow& r, int64_t taps1, int64_t taps2,
                              F f) {
  for (int64_t i = 0; i < r.s0.count; ++i) {
    const int64_t at0 = (r.s0.first + i * r.s0.step) * args.shape.in[1];
    const int64_t tap0 = (r.s0.skipped + i) * taps1;
    for (int64_t j = 0; j < r.s1.count; ++j) {
      f((at0 + r.s1.first + j * r.s1.step) * args.shape.in[2], (tap0 + r.s1.skipped + j) * taps2);
    }
  }
}

// ---- one output ----

inline void pool_one_max(const PoolArgs& args, const PoolRow& r, int64_t out, const PoolSpan& s2) {
  float y = -__builtin_inff();
  int64_t id = -1;
  each_tap_row(args, r, 1, 1, [&](int64_t row, int64_t) {
    for (int64_t k = 0; k < s2.count; ++k) {
      const int64_t at = row + s2.first + k * s2.step;
      const float x = r.x[at];
      if (id >= 0 && !(x > y || x != x)) continue;
      y = x;
      id = at;
    }
  });
  r.y[out] = y;
  if (r.ids != nullptr) r.ids[out] = static_cast<int32_t>(id);
}

// One step of the chain, for one value and for a register of them.
LOOM_INLINE float pool_term(const PoolArgs& args, float x, float sum) {
  if (args.kind == PoolKind::average) return sum + x;
  return args.p == 1 ? sum + fmath::abs(x) : fused(x, x, sum);
}
LOOM_INLINE Vf pool_term(const PoolArgs& args, Vf x, Vf sum) {
  if (args.kind == PoolKind::average) return sum + x;
  return args.p == 1 ? sum + fmath::abs<Vf>(x) : vf_fma(x, x, sum);
}

inline void pool_one_sum(const PoolArgs& args, const PoolRow& r, int64_t out, const PoolSpan& s2) {
  const bool strided = args.windows == PoolWindows::strided;
  const int64_t taps1 = strided ? args.shape.kernel[1] : r.s1.count;
  const int64_t taps2 = strided ? args.shape.kernel[2] : s2.count;
  float total = 0.0f, sum = 0.0f;
  int64_t chunk = 0;
  each_tap_row(args, r, taps1, taps2, [&](int64_t row, int64_t tap) {
    for (int64_t k = 0; k < s2.count; ++k) {
      if ((tap + s2.skipped + k) / kChunk != chunk) {
        chunk = (tap + s2.skipped + k) / kChunk;
        total += sum;
        sum = 0.0f;
      }
      sum = pool_term(args, r.x[row + s2.first + k * s2.step], sum);
    }
  });
  total += sum;
  if (args.kind == PoolKind::average) {
    const int64_t divisor = pool_divisor(args, {r.s0, r.s1, s2});
    r.y[out] = divisor == 0 ? 0.0f : total / static_cast<float>(divisor);
  } else {
    r.y[out] = args.p == 1 ? total : fmath::sqrt(total);
  }
}

inline void pool_one(const PoolArgs& args, const PoolRow& r, int64_t out) {
  const PoolSpan s2 = pool_span(args, 2, out);
  if (args.kind == PoolKind::max) {
    pool_one_max(args, r, out, s2);
  } else {
    pool_one_sum(args, r, out, s2);
  }
}

// ---- sixteen outputs in a row ----

// Outputs [out, out + 16), whose taps along the last axis are all inside.
inline void pool_block_max(const PoolArgs& args, const PoolRow& r, int64_t out) {
  const ConvShape& s = args.shape;
  const int64_t first = out * s.stride[2] - s.pad[2];
  V16 y = set16(-__builtin_inff());
  I16 id;
  LOOM_EACH(i) id.v[i] = vi_set(-1);
  bool any = false;
  each_tap_row(args, r, 1, 1, [&](int64_t row, int64_t) {
    for (int64_t k = 0; k < s.kernel[2]; ++k) {
      const int64_t at = row + first + k * s.dilation[2];
      const V16 x = load16_every(r.x + at, s.stride[2]);
      const auto base = static_cast<int32_t>(at), stride = static_cast<int32_t>(s.stride[2]);
      LOOM_EACH(i) {
        const Vi takes = (Vi)(x.v[i] > y.v[i]) | (Vi)(x.v[i] != x.v[i]) | vi_set(any ? 0 : -1);
        y.v[i] = takes ? x.v[i] : y.v[i];
        id.v[i] = takes ? vi_count(i) * stride + base : id.v[i];
      }
      any = true;
    }
  });
  store16(r.y + out, y);
  if (r.ids == nullptr) return;
  LOOM_EACH(i) std::memcpy(r.ids + out + i * kW, &id.v[i], sizeof(Vi));
}

inline void pool_block_sum(const PoolArgs& args, const PoolRow& r, int64_t out) {
  const ConvShape& s = args.shape;
  const int64_t first = out * s.stride[2] - s.pad[2];
  V16 total = set16(0.0f), sum = total;
  int64_t chunk = 0;
  each_tap_row(args, r, s.kernel[1], s.kernel[2], [&](int64_t row, int64_t tap) {
    for (int64_t k = 0; k < s.kernel[2]; ++k) {
      if ((tap + k) / kChunk != chunk) {
        chunk = (tap + k) / kChunk;
        total = add16(total, sum);
        sum = set16(0.0f);
      }
      const V16 x = load16_every(r.x + row + first + k * s.dilation[2], s.stride[2]);
      LOOM_EACH(i) sum.v[i] = pool_term(args, x.v[i], sum.v[i]);
    }
  });
  total = add16(total, sum);
  if (args.kind == PoolKind::average) {
    const int64_t divisor = pool_divisor(args, {r.s0, r.s1, pool_span(args, 2, out)});
    const Vf by = vf_set(static_cast<float>(divisor));
    LOOM_EACH(i) total.v[i] = divisor == 0 ? vf_set(0.0f) : total.v[i] / by;
  } else if (args.p == 2) {
    LOOM_EACH(i) total.v[i] = fmath::sqrt<Vf>(total.v[i]);
  }
  store16(r.y + out, total);
}

// Outputs along the last axis whose taps are all inside.
inline LaneRange pool_inside(const PoolArgs& args) {
  const ConvShape& s = args.shape;
  if (args.windows == PoolWindows::adaptive) return {0, 0};
  const int64_t room = s.in[2] - 1 - (s.kernel[2] - 1) * s.dilation[2] + s.pad[2];
  const int64_t begin = (s.pad[2] + s.stride[2] - 1) / s.stride[2];
  const int64_t end = room < 0 ? 0 : min_of(room / s.stride[2] + 1, s.out[2]);
  return end - begin < 16 ? LaneRange{0, 0} : LaneRange{begin, end};
}

inline void pool(const PoolArgs& args, const Lane& lane) {
  const ConvShape& s = args.shape;
  const int64_t ins = s.in_positions(), outs = s.out_positions();
  if (outs == 0) return;
  const int64_t rows = s.out[0] * s.out[1];
  const LaneRange inside = pool_inside(args);
  const LaneRange mine = lane.range(args.y.rows() * s.channels * rows);
  for (int64_t i = mine.begin; i < mine.end; ++i) {
    const int64_t plane = i / rows, sample = plane / s.channels, channel = plane % s.channels;
    const int64_t to = channel * outs + i % rows * s.out[2];
    const PoolRow r{args.x.f32_row(sample) + channel * ins, args.y.f32_row(sample) + to,
                    args.ids.empty() ? nullptr : args.ids.row<int32_t>(sample) + to,
                    pool_span(args, 0, i % rows / s.out[1]), pool_span(args, 1, i % s.out[1])};
    for (int64_t out = 0; out < inside.begin; ++out) pool_one(args, r, out);
    // The last sixteen may overlap earlier outputs: they get the same values again.
    for (int64_t out = inside.begin; out < inside.end; out += 16) {
      const int64_t at = min_of(out, inside.end - 16);
      if (args.kind == PoolKind::max) {
        pool_block_max(args, r, at);
      } else {
        pool_block_sum(args, r, at);
      }
    }
    for (int64_t out = inside.end; out < s.out[2]; ++out) pool_one(args, r, out);
  }
}

// ---- gradients: outputs ascending, each adds to the values of its window ----

struct PoolPlane {
  const float *dy, *x, *y;
  float* dx;
};

LOOM_INLINE float pool_share(const PoolDxArgs& args, const PoolPlane& p, int64_t out, int64_t at,
                             float dy) {
  if (args.kind == PoolKind::average) return dy;
  const float x = p.x[at];
  if (args.p == 1) return x > 0.0f ? dy : x < 0.0f ? -dy : 0.0f;
  return p.y[out] == 0.0f ? 0.0f : dy * (x / p.y[out]);
}

inline void pool_dx_plane(const PoolDxArgs& args, const PoolPlane& p) {
  const ConvShape& s = args.shape;
  int64_t out = 0;
  for (int64_t o0 = 0; o0 < s.out[0]; ++o0) {
    const PoolSpan s0 = pool_span(args, 0, o0);
    for (int64_t o1 = 0; o1 < s.out[1]; ++o1) {
      const PoolSpan s1 = pool_span(args, 1, o1);
      for (int64_t o2 = 0; o2 < s.out[2]; ++o2, ++out) {
        const PoolSpan s2 = pool_span(args, 2, o2);
        float dy = p.dy[out];
        if (args.kind == PoolKind::average) {
          dy /= static_cast<float>(pool_divisor(args, {s0, s1, s2}));
        }
        for (int64_t i = 0; i < s0.count; ++i) {
          for (int64_t j = 0; j < s1.count; ++j) {
            const int64_t row =
                ((s0.first + i * s0.step) * s.in[1] + s1.first + j * s1.step) * s.in[2];
            for (int64_t k = 0; k < s2.count; ++k) {
              const int64_t at = row + s2.first + k * s2.step;
              p.dx[at] += pool_share(args, p, out, at, dy);
            }
          }
        }
      }
    }
  }
}

inline void pool_dx(const PoolDxArgs& args, const Lane& lane) {
  const ConvShape& s = args.shape;
  const int64_t ins = s.in_positions(), outs = s.out_positions();
  const LaneRange planes = lane.range(args.dx.rows() * s.channels);
  for (int64_t plane = planes.begin; plane < planes.end; ++plane) {
    const int64_t sample = plane / s.channels, channel = plane % s.channels;
    const auto row_of = [&](const Tensor& t, int64_t values) -> float* {
      return t.empty() ? nullptr : t.f32_row(sample) + channel * values;
    };
    const PoolPlane p{row_of(args.dy, outs), row_of(args.x, ins), row_of(args.y, outs),
                      row_of(args.dx, ins)};
    for (int64_t i = 0; i < ins; ++i) p.dx[i] = 0.0f;
    if (args.kind == PoolKind::max) {
      const int32_t* ids = args.ids.row<int32_t>(sample) + channel * outs;
      for (int64_t out = 0; out < outs; ++out) {
        if (ids[out] >= 0) p.dx[ids[out]] += p.dy[out];
      }
    } else {
      pool_dx_plane(args, p);
    }
  }
}
