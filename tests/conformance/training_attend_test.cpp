// attend and attend_dx: head groupings, widths on and off a vector, windows, causal or not, masks,
// lengths around a vector and beyond a chunk of 256. Masked positions may hold NaN.
#include "base/text.hpp"
#include "conformance/training.hpp"

namespace loom::core::test {
namespace {

struct Heads {
  int64_t heads, kv_heads, width;
};
constexpr Heads kHeads[] = {{1, 1, 16}, {4, 1, 8}, {3, 3, 20}, {4, 2, 32}, {2, 1, 1}, {2, 2, 17}};

struct Span {
  int64_t sequences, length, window;
  bool causal;
};
constexpr Span kSpans[] = {{1, 0, 0, true},    {1, 1, 0, true},   {3, 1, 1, false},
                           {2, 5, 0, true},    {1, 15, 4, true},  {2, 16, 0, false},
                           {1, 17, 1, true},   {2, 17, 6, false}, {1, 33, 0, true},
                           {2, 33, 40, false}, {1, 34, 16, true}};

struct Inputs {
  Inputs(const Heads& h, const Span& span, Values kind, uint64_t seed, bool use_mask)
      : rows(span.sequences * span.length),
        masked(use_mask),
        soft_cap(seed % 3 == 1 ? 0.75f : 0.0f),
        slopes(static_cast<size_t>(h.heads)),
        sinks(static_cast<size_t>(h.heads)),
        has_slopes(seed / 5 % 3 == 1),
        has_sinks(seed / 5 % 4 > 1),
        documents(span.causal && seed / 5 % 5 > 2),
        q(rows, h.heads * h.width, 3, seed, kind),
        k(rows, h.kv_heads * h.width, 0, seed + 1, kind),
        v(rows, h.kv_heads * h.width, 1, seed + 2, kind),
        dy(rows, h.heads * h.width, 2, seed + 3, kind),
        mask(span.sequences, span.length, 1),
        what(cat(h.heads, "/", h.kv_heads, " heads of ", h.width, ", ", span.sequences, " x ",
                 span.length, ", window ", span.window, span.causal ? ", causal" : "",
                 masked ? ", masked" : "", ", cap ", soft_cap, has_slopes ? ", slopes" : "",
                 has_sinks ? ", sinks" : "", documents ? ", documents" : "", ", seed ", seed)) {
    for (int64_t r = 0, position = 0; r < rows; ++r, ++position) {
      const bool begins = Rng(seed, 4).bits(static_cast<uint64_t>(r)) % 7 == 0;
      if (r % span.length == 0 || begins) position = 0;
      positions.insert(positions.end(), {0, static_cast<int32_t>(position)});
    }
    for (size_t i = 0; i < sinks.size(); ++i) {
      slopes[i] = 0.03f * static_cast<float>(i + 1);
      sinks[i] = 0.9f * static_cast<float>((i + seed) % 5) - 2.0f;
    }
    if (!masked) return;
    for (int64_t r = 0; r < rows; ++r) {
      // The second sequence sees nothing at all.
      const int64_t sequence = r / span.length, position = r % span.length;
      const bool hidden = sequence == 1 || Rng(seed, 3).bits(static_cast<uint64_t>(r)) % 3 == 0;
      mask.at(sequence, position) = hidden ? 0.0f : 1.0f;
      if (!hidden || position % 2 == 0) continue;
      for (int64_t d = 0; d < h.kv_heads * h.width; ++d) {
        k.at(r, d) = v.at(r, d) = __builtin_nanf("");
      }
    }
  }

  template <class Args>
  Args args(const Heads& h, const Span& span) {
    Args args;
    if (has_slopes) args.slopes = f32_vector(slopes.data(), h.heads);
    if (has_sinks) args.sinks = f32_vector(sinks.data(), h.heads);
    args.q = q.tensor(), args.k = k.tensor(), args.v = v.tensor();
    if (masked) args.mask = mask.tensor();
    if (documents) {
      args.row_positions.dtype = DType::i32;
      args.row_positions.shape = Shape{rows, 2};
      args.row_positions.row_stride = 2;
      args.row_positions.data = reinterpret_cast<std::byte*>(positions.data());
    }
    args.sequences = span.sequences, args.window = span.window, args.causal = span.causal;
    args.heads = h.heads, args.kv_heads = h.kv_heads;
    args.scale = 0.25f;
    args.soft_cap = soft_cap;
    return args;
  }

  int64_t rows;
  bool masked;
  float soft_cap;
  std::vector<float> slopes, sinks;
  bool has_slopes, has_sinks, documents;
  std::vector<int32_t> positions;
  Rows q, k, v, dy, mask;
  std::string what;
};

void conform_attend_of(const Heads& h, const Span& span, Values kind, uint64_t seed, bool masked) {
  Inputs in(h, span, kind, seed, masked);
  if (tame_values() && in.documents) return;  // devices have no kernel for it
  expect_same_bits(in.what, [&](const Runner& run) {
    const Rows y(in.rows, h.heads * h.width, 1);
    auto args = in.args<AttendArgs>(h, span);
    args.y = y.tensor();
    run(&Ops::attend, args, span.length + 1);
    return image_of({&y});
  });
}

void conform_attend_dx_of(const Heads& h, const Span& span, Values kind, uint64_t seed,
                          bool masked) {
  Inputs in(h, span, kind, seed, masked);
  if (tame_values() && (in.has_slopes || in.has_sinks || in.documents))
    return;  // devices have no kernel for it
  expect_same_bits(in.what, [&](const Runner& run) {
    const Rows dq = filled(in.rows, h.heads * h.width, 1);
    const Rows dk = filled(in.rows, h.kv_heads * h.width, 0);
    const Rows dv = filled(in.rows, h.kv_heads * h.width, 2);
    const Rows dsinks = filled(in.rows, h.heads, 1);
    auto args = in.args<AttendDxArgs>(h, span);
    args.dy = in.dy.tensor();
    args.dq = dq.tensor(), args.dk = dk.tensor(), args.dv = dv.tensor();
    if (in.has_sinks) args.dsinks = dsinks.tensor();
    run(&Ops::attend_dx, args, span.length + 1);
    return image_of({&dq, &dk, &dv, &dsinks});
  });
}

template <class Body>
void each_attention(Body body) {
  uint64_t seed = 60;
  for (const Heads& h : kHeads) {
    for (const Span& span : kSpans) {
      for (bool masked : {false, true}) {
        body(h, span, seed % 2 == 0 ? Values::smooth : Values::mixed, seed, masked);
        seed += 5;
      }
    }
  }
  for (bool causal : {false, true}) {
    body({4, 2, 16}, {2, 18, 0, causal}, Values::wild, 7, false);
    body({1, 1, 257}, {1, 6, 0, causal}, Values::smooth, 8, false);
    body({2, 1, 4}, {1, 270, 0, causal}, Values::smooth, 9, false);
    body({2, 1, 4}, {1, 270, 260, causal}, Values::mixed, 10, true);
  }
}

}  // namespace

void conform_attend() {
  each_attention(conform_attend_of);
}

void conform_attend_dx() {
  each_attention(conform_attend_dx_of);
}

}  // namespace loom::core::test
