// Recurrent cells, random numbers, losses and updates: widths around a vector, absent operands, in
// place if allowed, every kind, special values.
#include "base/text.hpp"
#include "conformance/training.hpp"

namespace loom::core::test {
namespace {

constexpr int64_t kRowCounts[] = {0, 1, 2, 5};
constexpr int64_t kWidths[] = {0, 1, 7, 15, 16, 17, 33, 65};

// Runs body(rows, width, kind, seed, state), with and without the state before.
template <class Body>
void each_cell(Body body) {
  uint64_t seed = 10;
  for (int64_t rows : kRowCounts) {
    for (int64_t width : kWidths) {
      for (Values kind : {Values::smooth, Values::wild}) {
        for (bool state : {false, true}) body(rows, width, kind, seed += 9, state);
      }
    }
  }
}

std::string cell_name(int64_t rows, int64_t width, Values kind, bool state) {
  return cat(rows, " rows of ", width, kind == Values::wild ? " wild" : "",
             state ? "" : ", no state");
}

const std::vector<int64_t>& lengths() {
  static const std::vector<int64_t> all = {1,  2,  7,  15,  16,  17,  31,   32,  33,
                                           47, 64, 65, 255, 256, 257, 4095, 4097};
  return all;
}

// ---- losses ----

struct LossInputs {
  LossInputs(int64_t rows, int64_t cols, LossKind kind, Values values, uint64_t seed)
      : pred(rows, cols, 3, seed, values),
        target(rows, cols, 1, seed + 1, values),
        weight(1, rows, 0, seed + 2, Values::smooth),
        ids(rows, 1) {
    for (int64_t r = 0; r < rows; ++r) {
      if (r % 5 == 3) weight.at(0, r) = 0.0f;
      const uint32_t bits = Rng(seed, 4).bits(static_cast<uint64_t>(r));
      ids.values()[static_cast<size_t>(r)] = static_cast<int32_t>(bits % (cols + 2)) - 1;
    }
    if (kind != LossKind::kl && kind != LossKind::softmax_ce) return;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < cols; ++c) {
        float& t = target.at(r, c);
        t = c % 4 == 1 ? 0.0f : (t < 0 ? -t : t) / static_cast<float>(cols);
        if (c % 4 == 1 && r % 2 == 1) pred.at(r, c) = -__builtin_inff();
      }
    }
  }
  Rows pred, target, weight;
  Ids ids;
};

void conform_loss_of(const LossInputs& in, LossArgs args, bool use_ids, bool in_place) {
  const int64_t rows = in.pred.tensor().rows(), cols = in.pred.tensor().cols();
  args.pred = in.pred.tensor();
  args.target = in.target.tensor();
  if (use_ids) {
    args.target = in.ids.tensor();
    args.target.shape = Shape{rows};
  }
  if (args.smoothing == 0.0f) args.weight = vector_of(in.weight);
  expect_same_bits(cat("kind ", static_cast<int>(args.kind), " of ", args.pred.shape.str(),
                       use_ids ? " ids" : "", in_place ? " in place" : "", ", delta ", args.delta,
                       ", smoothing ", args.smoothing),
                   [&](const Runner& run) {
                     const Rows row_loss(1, rows), fresh(rows, cols, 2), mine = copy_of(in.pred);
                     LossArgs my_args = args;
                     my_args.row_loss = vector_of(row_loss);
                     my_args.dpred = fresh.tensor();
                     if (in_place) my_args.pred = my_args.dpred = mine.tensor();
                     if (args.smoothing > 0.0f && rows == 6) my_args.row_loss = Tensor{};
                     run(&Ops::loss, my_args);
                     return image_of({&row_loss, &fresh, &mine});
                   });
}

// ---- updates ----

// `some`: as many rows, from a table with three times as many.
void conform_optimize_of(UpdateKind kind, int64_t rows, int64_t cols, uint64_t seed, bool some) {
  const Values values = values_of(seed);
  const Rows g(rows, cols, 1, seed, values);
  const int64_t table = some ? rows * 3 : rows;
  const Ids list = some_rows(table, rows, seed);
  Rows hyper(1, 4, 0, 0, Values::smooth), scale(1, 1, 0, 0, Values::smooth);
  hyper.at(0, 0) = 1e-3f, hyper.at(0, 1) = 0.19f, hyper.at(0, 2) = 0.002f;
  hyper.at(0, 3) = seed % 4 == 3 ? 0.0f : 0.3f;
  scale.at(0, 0) = seed % 7 == 0 ? __builtin_nanf("") : 0.75f;
  expect_same_bits(
      cat("kind ", static_cast<int>(kind), " of [", rows, ", ", cols, "], seed ", seed,
          some ? ", some rows" : ""),
      [&](const Runner& run) {
        const Rows p(table, cols, 2, seed + 1, values);
        const Rows m(table, cols, 0, seed + 2, values);
        Rows v(table, cols, 3, seed + 3, Values::smooth);
        for (int64_t i = 0; i < table * cols; ++i) {
          float& value = v.at(i / cols, i % cols);
          if (seed % 5 != 0) value = value * value;  // otherwise also negative ones
        }
        OptimizeArgs args{p.tensor(), g.tensor(), m.tensor(), v.tensor(), vector_of(hyper)};
        if (seed % 2 == 0) args.scale = vector_of(scale);
        args.kind = kind;
        args.decay = seed % 3 == 0 ? 0.0f : 0.01f;
        if (some) args.rows = list.tensor();
        run(&Ops::optimize, args);
        return image_of({&p, &m, &v});
      });
}

}  // namespace

void conform_lstm_cell() {
  each_cell([](int64_t rows, int64_t width, Values kind, uint64_t seed, bool state) {
    for (bool in_place : {false, true}) {
      expect_same_bits(
          cell_name(rows, width, kind, state) + (in_place ? " in place" : ""),
          [&](const Runner& run) {
            const Rows gates(rows, 4 * width, 1, seed, kind);
            const Rows before(rows, width, 2, seed + 1, kind);
            const Rows acts(rows, 4 * width, 3), c(rows, width, 1), h(rows, width);
            LstmCellArgs args{gates.tensor(), {}, acts.tensor(), c.tensor(), h.tensor()};
            if (state) args.c_before = before.tensor();
            if (in_place) args.acts = gates.tensor();
            if (in_place && state) args.c = before.tensor();
            run(&Ops::lstm_cell, args);
            return image_of({&gates, &before, &acts, &c, &h});
          });
    }
  });
}

void conform_lstm_cell_dx() {
  each_cell([](int64_t rows, int64_t width, Values kind, uint64_t seed, bool state) {
    const Rows before(rows, width, 2, seed + 1, kind), c(rows, width, 0, seed + 2, kind);
    const Rows dh(rows, width, 1, seed + 3, kind);
    for (bool in_place : {false, true}) {
      expect_same_bits(cell_name(rows, width, kind, state) + (in_place ? " in place" : ""),
                       [&](const Runner& run) {
                         const Rows acts(rows, 4 * width, 1, seed, kind);
                         const Rows dc(rows, width, 3, seed + 4, kind);
                         const Rows dgates(rows, 4 * width, 2), dbefore(rows, width, 1);
                         LstmCellDxArgs args;
                         args.acts = acts.tensor(), args.c = c.tensor();
                         args.dgates = in_place ? acts.tensor() : dgates.tensor();
                         if (state) args.c_before = before.tensor();
                         if (state) args.dc_before = in_place ? dc.tensor() : dbefore.tensor();
                         // Either derivative may be absent.
                         if (seed % 3 != 0) args.dc_next = dc.tensor();
                         if (seed % 3 != 1) args.dh = dh.tensor();
                         run(&Ops::lstm_cell_dx, args);
                         return image_of({&acts, &dc, &dgates, &dbefore});
                       });
    }
  });
}

void conform_gru_cell() {
  each_cell([](int64_t rows, int64_t width, Values kind, uint64_t seed, bool state) {
    const Rows gh(rows, 3 * width, 2, seed + 1, kind);
    for (bool in_place : {false, true}) {
      expect_same_bits(cell_name(rows, width, kind, state) + (in_place ? " in place" : ""),
                       [&](const Runner& run) {
                         const Rows gx(rows, 3 * width, 1, seed, kind);
                         const Rows before(rows, width, 2, seed + 2, kind);
                         const Rows acts(rows, 3 * width, 3), h(rows, width, 1);
                         GruCellArgs args{gx.tensor(), gh.tensor(), {}, acts.tensor(), h.tensor()};
                         if (state) args.h_before = before.tensor();
                         if (in_place) args.acts = gx.tensor();
                         if (in_place && state) args.h = before.tensor();
                         run(&Ops::gru_cell, args);
                         return image_of({&gx, &before, &acts, &h});
                       });
    }
  });
}

void conform_gru_cell_dx() {
  each_cell([](int64_t rows, int64_t width, Values kind, uint64_t seed, bool state) {
    const Rows before(rows, width, 2, seed + 1, kind);
    for (bool in_place : {false, true}) {
      expect_same_bits(cell_name(rows, width, kind, state) + (in_place ? " in place" : ""),
                       [&](const Runner& run) {
                         const Rows acts(rows, 3 * width, 1, seed, kind);
                         const Rows gh(rows, 3 * width, 0, seed + 2, kind);
                         const Rows dh(rows, width, 1, seed + 3, kind);
                         const Rows dgx(rows, 3 * width, 2), dgh(rows, 3 * width, 1);
                         const Rows dbefore(rows, width, 1);
                         GruCellDxArgs args;
                         args.acts = acts.tensor(), args.gh = gh.tensor(), args.dh = dh.tensor();
                         args.dgx = in_place ? acts.tensor() : dgx.tensor();
                         args.dgh = in_place ? gh.tensor() : dgh.tensor();
                         if (state) args.h_before = before.tensor();
                         if (state) args.dh_before = in_place ? dh.tensor() : dbefore.tensor();
                         run(&Ops::gru_cell_dx, args);
                         return image_of({&acts, &gh, &dh, &dgx, &dgh, &dbefore});
                       });
    }
  });
}

void conform_random() {
  uint64_t seed = 0x123456789abcdef0u;
  for (RandomKind kind : {RandomKind::uniform, RandomKind::normal, RandomKind::gumbel}) {
    for (int64_t rows : {0, 1, 3}) {
      for (int64_t cols : {0, 1, 3, 15, 16, 17, 33, 257, 4099}) {
        for (float step : {-1.0f, 0.0f, 1.0f, 16777215.0f}) {
          ++seed;
          Rows at(1, 1);
          at.at(0, 0) = step;
          expect_same_bits(
              cat("kind ", static_cast<int>(kind), " into [", rows, ", ", cols, "], step ", step),
              [&](const Runner& run) {
                const Rows y(rows, cols, 2);
                RandomArgs args{y.tensor(), {}, seed, seed << 3, kind};
                if (step >= 0) args.step = vector_of(at);  // -1 stands for none
                run(&Ops::random, args);
                return image_of({&y});
              });
        }
      }
    }
  }
}

void conform_loss() {
  uint64_t seed = 70;
  for (int k = 0; k <= static_cast<int>(LossKind::hinge); ++k) {
    LossArgs args;
    args.kind = static_cast<LossKind>(k);
    args.delta = 0.75f;
    if (args.kind == LossKind::focal) args.alpha = 0.25f;
    const bool cross_entropy = args.kind == LossKind::softmax_ce;
    for (int64_t cols : lengths()) {
      for (int64_t rows : {0, 1, 6}) {
        if (rows > 1 && cols > 1000) continue;
        const LossInputs in(rows, cols, args.kind, values_of(seed), seed);
        seed += 4;
        for (float smoothing : {0.0f, 0.1f}) {
          args.smoothing = smoothing;
          for (bool in_place : {false, true}) {
            conform_loss_of(in, args, false, in_place);
            if (cross_entropy) conform_loss_of(in, args, true, in_place);
          }
        }
      }
    }
  }
}

void conform_optimize() {
  uint64_t seed = 90;
  for (int k = 0; k <= static_cast<int>(UpdateKind::radam); ++k) {
    for (int64_t rows : kRowCounts) {
      for (int64_t cols : kWidths) {
        for (int i = 0; i < 3; ++i) {
          conform_optimize_of(static_cast<UpdateKind>(k), rows, cols, seed, false);
          conform_optimize_of(static_cast<UpdateKind>(k), rows, cols, seed++, true);
        }
      }
    }
  }
}

}  // namespace loom::core::test
