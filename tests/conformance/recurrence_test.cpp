// Recurrences along a sequence: with and without state, in order, and in the order of ragged
// passes. Numbers of channels are inside and outside of vectors of sixteen.
#include "backend/reference/reference.hpp"
#include "base/text.hpp"
#include "conformance/training.hpp"
#include "ops/checks.hpp"

namespace loom::core::test {
namespace {

enum class Memory { none, plain, ordered };

// Two sequences of a ragged pass: rows of both mixed, the second from the start. States are rows 0
// to 3: the first pair belongs to the first sequence.
Ids mixed_order(int64_t rows) {
  Ids order(rows, 3);
  for (int64_t i = 0; i < rows; ++i) {
    const bool second = i >= (rows + 1) / 2;
    const bool first = i == 0 || i == (rows + 1) / 2;
    int32_t* entry = order.values().data() + 3 * i;
    entry[0] = static_cast<int32_t>((i * 7 + 3) % rows);
    entry[1] = second ? (first ? -1 : 2) : (first ? 0 : 1);
    entry[2] = second ? 2 : 1;
  }
  return order;
}

// The rows must form a permutation, so their number has no factor 7.
constexpr int64_t kRowCounts[] = {0, 1, 6, 10};

int64_t sequences_of(Memory memory, int64_t rows) {
  return memory != Memory::ordered && rows % 2 == 0 ? 2 : 1;
}

template <class Args>
void set_memory(Args& args, Memory memory, const Rows& state, const Ids& order) {
  if (memory != Memory::none && state.tensor().cols() > 0) args.state = state.tensor();
  if (memory == Memory::ordered) args.order = order.tensor();
}

struct ScanCase {
  int64_t heads, channels, numbers, groups;
  bool single;
};
constexpr ScanCase kScans[] = {{1, 1, 1, 1, false},   {5, 1, 3, 1, false},  {33, 1, 16, 1, false},
                               {4, 3, 2, 2, true},    {2, 16, 17, 1, true}, {6, 9, 5, 3, true},
                               {2, 20, 130, 2, true}, {3, 4, 2, 1, false}};

struct ScanInputs {
  Rows x, dt, a, b, c, d;
  ScanInputs(const ScanCase& s, int64_t rows, uint64_t seed)
      : x(rows, s.heads * s.channels, 1, seed, values_of(seed)),
        dt(rows, s.heads, 2, seed + 1, Values::smooth),
        a(1, s.single ? s.heads : s.heads * s.numbers, 0, seed + 2, Values::smooth),
        b(rows, s.groups * s.numbers, 3, seed + 3, values_of(seed + 1)),
        c(rows, s.groups * s.numbers, 0, seed + 4, Values::mixed),
        d(1, s.heads, 0, seed + 5, Values::mixed) {}
};

std::string name_of(const ScanCase& s, int64_t rows, std::string_view what) {
  return cat(what, ": ", rows, " rows, ", s.heads, " heads of ", s.channels, " x ", s.numbers,
             " in ", s.groups);
}

}  // namespace

void conform_causal_conv() {
  uint64_t seed = 900;
  for (const int64_t channels : {1, 15, 16, 17, 40}) {
    for (const int64_t rows : kRowCounts) {
      for (const int64_t kernel : {1, 2, 4, 64}) {
        for (const Memory memory : {Memory::none, Memory::plain, Memory::ordered}) {
          ++seed;
          const Rows x(rows, channels, 2, seed, values_of(seed));
          const Rows w(1, channels * kernel, 0, seed + 1, Values::mixed);
          const Rows bias(1, channels, 0, seed + 2, Values::mixed);
          const int64_t sequences = sequences_of(memory, rows);
          const Ids order = mixed_order(rows);
          const int64_t states = memory == Memory::ordered ? 4 : sequences;
          expect_same_bits(cat("causal_conv: ", rows, " x ", channels, ", ", kernel),
                           [&](const Runner& run) {
                             const Rows y = filled(rows, channels, 1);
                             const Rows state = filled(states, channels * (kernel - 1), 1);
                             CausalConvArgs args{x.tensor(), vector_of(w)};
                             if (seed % 2 == 0) args.bias = vector_of(bias);
                             set_memory(args, memory, state, order);
                             args.y = y.tensor();
                             args.sequences = sequences;
                             run(&Ops::causal_conv, args);
                             return image_of({&y, &state});
                           });
        }
      }
    }
  }
}

void conform_causal_conv_dx() {
  uint64_t seed = 950;
  for (const int64_t channels : {1, 16, 17}) {
    for (const int64_t rows : kRowCounts) {
      for (const int64_t kernel : {1, 3, 4}) {
        for (const bool accumulate : {false, true}) {
          ++seed;
          const Rows x(rows, channels, 2, seed, values_of(seed));
          const Rows dy(rows, channels, 0, seed + 1, values_of(seed + 1));
          const Rows w(1, channels * kernel, 0, seed + 2, Values::mixed);
          expect_same_bits(
              cat("causal_conv_dx: ", rows, " x ", channels, ", ", kernel), [&](const Runner& run) {
                const Rows dx = filled(rows, channels, 1), dw = filled(1, channels * kernel, 0);
                CausalConvDxArgs args{dy.tensor(), x.tensor(), vector_of(w)};
                if (seed % 3 > 0) args.dx = dx.tensor();
                if (seed % 3 < 2) args.dw = vector_of(dw);
                args.sequences = sequences_of(Memory::none, rows);
                args.accumulate_dx = args.accumulate_dw = accumulate;
                run(&Ops::causal_conv_dx, args);
                return image_of({&dx, &dw});
              });
        }
      }
    }
  }
}

void conform_selective_scan() {
  uint64_t seed = 1000;
  for (const ScanCase& s : kScans) {
    for (const int64_t rows : kRowCounts) {
      for (const Memory memory : {Memory::none, Memory::plain, Memory::ordered}) {
        const ScanInputs in(s, rows, ++seed);
        const int64_t sequences = sequences_of(memory, rows), total = s.heads * s.channels;
        const Ids order = mixed_order(rows);
        const int64_t states = memory == Memory::ordered ? 4 : sequences;
        expect_same_bits(name_of(s, rows, "selective_scan"), [&](const Runner& run) {
          const Rows y = filled(rows, total, 1), state = filled(states, total * s.numbers, 1);
          SelectiveScanArgs args{in.x.tensor(), in.dt.tensor(), vector_of(in.a), in.b.tensor(),
                                 in.c.tensor()};
          if (seed % 2 == 0) args.d = vector_of(in.d);
          set_memory(args, memory, state, order);
          args.y = y.tensor();
          args.groups = s.groups;
          args.sequences = sequences;
          run(&Ops::selective_scan, args);
          return image_of({&y, &state});
        });
      }
    }
  }
}

void conform_selective_scan_dx() {
  uint64_t seed = 1100;
  for (const ScanCase& s : kScans) {
    for (const int64_t rows : kRowCounts) {
      const ScanInputs in(s, rows, ++seed);
      const Rows dy(rows, s.heads * s.channels, 2, seed + 9, Values::mixed);
      expect_same_bits(name_of(s, rows, "selective_scan_dx"), [&](const Runner& run) {
        const Rows dx = filled(rows, s.heads * s.channels, 1), ddt = filled(rows, s.heads, 1);
        const Rows da = filled(1, in.a.tensor().cols(), 0), dd = filled(1, s.heads, 0);
        SelectiveScanDxArgs args{dy.tensor(),     in.x.tensor(), in.dt.tensor(),
                                 vector_of(in.a), in.b.tensor(), in.c.tensor()};
        args.d = vector_of(in.d);
        if (seed % 4 != 1) args.dx = dx.tensor();
        if (seed % 4 != 2) args.ddt = ddt.tensor();
        if (seed % 4 != 3) args.da = vector_of(da), args.dd = vector_of(dd);
        args.groups = s.groups;
        args.sequences = sequences_of(Memory::none, rows);
        run(&Ops::selective_scan_dx, args);
        return image_of({&dx, &ddt, &da, &dd});
      });
    }
  }
}

void conform_selective_scan_db() {
  uint64_t seed = 1200;
  for (const ScanCase& s : kScans) {
    for (const int64_t rows : kRowCounts) {
      const ScanInputs in(s, rows, ++seed);
      const Rows dy(rows, s.heads * s.channels, 2, seed + 9, Values::mixed);
      expect_same_bits(name_of(s, rows, "selective_scan_db"), [&](const Runner& run) {
        const Rows db = filled(rows, s.groups * s.numbers, 1);
        const Rows dc = filled(rows, s.groups * s.numbers, 2);
        SelectiveScanDbArgs args{dy.tensor(),     in.x.tensor(), in.dt.tensor(),
                                 vector_of(in.a), in.b.tensor(), in.c.tensor()};
        if (seed % 3 != 1) args.db = db.tensor();
        if (seed % 3 != 2) args.dc = dc.tensor();
        args.groups = s.groups;
        args.sequences = sequences_of(Memory::none, rows);
        run(&Ops::selective_scan_db, args);
        return image_of({&db, &dc});
      });
    }
  }
}

namespace {

// 0.5 is kept of each state: 1, then 0.5 + 2, then 1.25 + 3.
TEST(SelectiveScan, CarriesItsStateFromRowToRow) {
  Rows x(3, 1), dt(3, 1), a(1, 1), b(3, 1), c(3, 1), y(3, 1), state(1, 1);
  for (int64_t i = 0; i < 3; ++i) {
    x.at(i, 0) = static_cast<float>(i + 1);
    dt.at(i, 0) = b.at(i, 0) = c.at(i, 0) = 1;
  }
  a.at(0, 0) = -0.69314718f;
  state.at(0, 0) = 0;
  SelectiveScanArgs args{x.tensor(), dt.tensor(), vector_of(a), b.tensor(), c.tensor()};
  args.state = state.tensor();
  args.y = y.tensor();
  ASSERT_TRUE(check(args).ok()) << check(args).error().str();
  reference_ops().selective_scan(args, Lane{});
  const float want[] = {1, 2.5f, 4.25f};
  for (int64_t i = 0; i < 3; ++i) EXPECT_NEAR(y.at(i, 0), want[i], 1e-6f);
  EXPECT_NEAR(state.at(0, 0), 4.25f, 1e-6f);
}

TEST(SelectiveScan, RefusesOperandsThatDoNotFit) {
  const Rows x(2, 6), dt(2, 4), a(1, 4), b(2, 5), y(2, 6);
  SelectiveScanArgs args{x.tensor(), dt.tensor(), vector_of(a), b.tensor(), b.tensor()};
  args.y = y.tensor();
  EXPECT_EQ(check(args).error().message,
            "selective_scan: x [2, 6] and dt [2, 4] do not agree: dt has one column for each head, "
            "and heads have equally many channels");
  const Rows two(2, 2), rates(1, 2);
  args.dt = two.tensor(), args.a = vector_of(rates), args.groups = 2;
  EXPECT_EQ(check(args).error().message,
            "selective_scan: b [2, 5] must have the rows of x, and 1 to 256 numbers for each of 2 "
            "groups of heads");
  args.groups = 1, args.sequences = 3;
  EXPECT_EQ(check(args).error().message, "selective_scan: 2 rows do not form 3 equal sequences");
}

TEST(CausalConv, RefusesAnOrderWithoutState) {
  const Rows x(2, 3), w(1, 6), y(2, 3);
  const Ids order(2, 3);
  CausalConvArgs args{x.tensor(), vector_of(w)};
  args.order = order.tensor();
  args.y = y.tensor();
  EXPECT_EQ(check(args).error().message, "causal_conv: rows with an order need a state");
  const Rows odd(1, 7);
  args.w = vector_of(odd);
  EXPECT_EQ(check(args).error().message, "causal_conv: w has 7 values, must be 3 times 1 to 64");
}

}  // namespace
}  // namespace loom::core::test
