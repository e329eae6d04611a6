// Products with experts: the choice, the order of rows, and one product per expert. Numbers of rows
// of an expert are inside and outside of groups of sixteen; some experts have no rows.
#include "backend/reference/reference.hpp"
#include "base/text.hpp"
#include "conformance/training.hpp"
#include "ops/checks.hpp"
#include "ops/recording/recorder.hpp"

namespace loom::core::test {
namespace {

// ids [rows, k] of E experts: of each row k different ones, or arbitrary ones if k > E.
Ids choices(int64_t rows, int64_t k, int64_t experts, uint64_t seed) {
  const Rng rng(seed, 77);
  Ids ids(rows, k);
  for (int64_t r = 0; r < rows; ++r) {
    const auto first = static_cast<int64_t>(rng.bits(static_cast<uint64_t>(r)) % 1000);
    // The last expert stays without rows if there are several.
    const int64_t used = experts > 1 ? experts - 1 : 1;
    for (int64_t j = 0; j < k; ++j)
      ids.values()[static_cast<size_t>(r * k + j)] = static_cast<int32_t>((first + j * j) % used);
  }
  return ids;
}

Ids sizes(std::initializer_list<int32_t> counts) {
  Ids starts(1, std::ssize(counts) + 1);
  int32_t next = 0;
  size_t e = 0;
  for (const int32_t n : counts) starts.values()[e++] = next, next += n;
  starts.values()[e] = next;
  return starts;
}

void add_ids(Image& image, Ids& ids) {
  image.add_bytes(ids.values().data(), std::ssize(ids.values()) * 4);
}

struct Case {
  std::vector<int32_t> rows;  // of each expert
  int64_t n, k;
};

std::vector<Case> cases() {
  return {{{1}, 16, 33},          {{0, 1, 1}, 16, 64},   {{1, 0, 2, 5}, 32, 257},
          {{3, 0, 9, 1}, 17, 40}, {{1, 1, 1}, 5, 33},    {{2, 40}, 48, 32},
          {{0, 0}, 16, 32},       {{7, 2, 0}, 2100, 32}, {{4, 17, 1, 1}, 31, 288},
          {{2, 3}, 16, 0},        {{1, 2}, 15, 3}};
}

Ids starts_of(const Case& c) {
  Ids starts(1, std::ssize(c.rows) + 1);
  int32_t next = 0;
  for (size_t e = 0; e <= c.rows.size(); ++e) {
    starts.values()[e] = next;
    if (e < c.rows.size()) next += c.rows[e];
  }
  return starts;
}

std::string name_of(const Case& c, std::string_view what) {
  return cat(what, ": ", c.rows.size(), " experts of ", c.n, " x ", c.k);
}

void product(DType dtype, const Case& c, bool use_q8, uint64_t variant) {
  const Ids starts = starts_of(c);
  const int64_t experts = std::ssize(c.rows);
  const int64_t pairs = starts.tensor().i32()[experts];
  const Values kind = values_of(variant);
  const Rows x(pairs, c.k, variant % 2 == 0 ? 0 : 3, variant, kind);
  const Packed w(dtype, experts * c.n, c.k, variant + 1,
                 kind == Values::smooth ? Values::smooth : Values::mixed);
  const Q8 q(x.tensor());
  ExpertMatmulArgs args;
  args.x = x.tensor(), args.starts = starts.tensor(), args.w = w.tensor();
  args.use_q8 = use_q8;
  if (use_q8) args.q8 = q.rows();
  expect_same_bits(name_of(c, dtype_name(dtype)), [&](const Runner& run) {
    const Rows y(pairs, c.n, variant % 2 == 0 ? 0 : 5);
    ExpertMatmulArgs mine = args;
    mine.y = y.tensor();
    run(&Ops::expert_matmul, mine);
    return image_of({&y});
  });
}

}  // namespace

void conform_top_experts() {
  uint64_t seed = 500;
  for (int64_t experts : {1, 2, 8, 60, 128, 257}) {
    for (int64_t rows : {0, 1, 5, 13}) {
      for (int64_t k : {int64_t{1}, std::min<int64_t>(experts, 8)}) {
        for (int64_t groups : {1, 4}) {
          if (experts % groups != 0 || experts / groups < 2) continue;
          const int64_t chosen = groups == 1 ? 1 : 2;
          if (k > chosen * (experts / groups)) continue;
          const Rows x(rows, experts, static_cast<int64_t>(seed % 2), seed, values_of(seed));
          const Rows bias(1, experts, 0, seed + 1, Values::mixed);
          ++seed;
          expect_same_bits(cat(rows, " rows: ", k, " of ", experts, " in ", groups),
                           [&](const Runner& run) {
                             Ids ids(rows, k), slots(rows, k);
                             TopExpertsArgs args{x.tensor(), {}, ids.tensor(), slots.tensor()};
                             if (seed % 2 == 0) args.bias = vector_of(bias);
                             args.groups = groups, args.chosen_groups = chosen,
                             args.group_best = groups / 2 + (groups == 1);
                             run(&Ops::top_experts, args);
                             Image image;
                             add_ids(image, ids);
                             add_ids(image, slots);
                             return image;
                           });
        }
      }
    }
  }
}

void conform_group_rows() {
  for (int64_t experts : {1, 2, 8, 129}) {
    for (int64_t rows : {0, 1, 5, 33}) {
      for (int64_t k : {1, 2, 8}) {
        Ids ids = choices(rows, k, experts, static_cast<uint64_t>(rows + k));
        expect_same_bits(cat(rows, " x ", k, " of ", experts), [&](const Runner& run) {
          Ids starts(1, experts + 1), from(1, rows * k), sorted(1, rows * k),
              positions(1, rows * k);
          run(&Ops::group_rows, GroupRowsArgs{ids.tensor(), starts.tensor(), from.tensor(),
                                              sorted.tensor(), positions.tensor()});
          Image image;
          for (Ids* t : {&starts, &from, &sorted, &positions}) add_ids(image, *t);
          return image;
        });
      }
    }
  }
}

void conform_expert_matmul() {
  uint64_t variant = 0;
  for (const DTypeInfo& info : dtype_table()) {
    const bool wide = info.dtype == DType::f32 || info.dtype == DType::q8_0;
    for (const Case& c : cases()) {
      if (c.n > 1000 && !wide) continue;  // more columns than are staged at a time
      product(info.dtype, c, false, variant++);
      if (info.integer_path()) product(info.dtype, c, true, variant++);
    }
  }
}

void conform_expert_matmul_dx() {
  uint64_t variant = 0;
  for (DType dtype : {DType::f32, DType::bf16, DType::q8_0, DType::f64}) {
    for (const Case& c : cases()) {
      const Ids starts = starts_of(c);
      const int64_t experts = std::ssize(c.rows), pairs = starts.tensor().i32()[experts];
      ++variant;
      const Rows dy(pairs, c.n, 1, variant, values_of(variant));
      const Packed w(dtype, experts * c.n, c.k, variant + 1);
      for (bool accumulate : {false, true}) {
        expect_same_bits(name_of(c, dtype_name(dtype)), [&](const Runner& run) {
          const Rows dx = filled(pairs, c.k, 2);
          run(&Ops::expert_matmul_dx, ExpertMatmulDxArgs{dy.tensor(), starts.tensor(), w.tensor(),
                                                         dx.tensor(), accumulate});
          return image_of({&dx});
        });
      }
    }
  }
}

void conform_expert_matmul_dw() {
  uint64_t variant = 40;
  for (const Case& c : cases()) {
    const Ids starts = starts_of(c);
    const int64_t experts = std::ssize(c.rows), pairs = starts.tensor().i32()[experts];
    ++variant;
    const Rows dy(pairs, c.n, 1, variant, values_of(variant));
    const Rows x(pairs, c.k, 0, variant + 1, Values::mixed);
    for (bool accumulate : {false, true}) {
      expect_same_bits(name_of(c, "dw"), [&](const Runner& run) {
        const Rows dw = filled(experts * c.n, c.k, 2);
        run(&Ops::expert_matmul_dw,
            ExpertMatmulDwArgs{dy.tensor(), x.tensor(), starts.tensor(), dw.tensor(), accumulate});
        return image_of({&dw});
      });
    }
  }
}

namespace {

TEST(TopExperts, PrefersTheLowerIndexAmongEqualScoresAndReportsWhereTheyAre) {
  Rows x(2, 4);
  for (int64_t i = 0; i < 4; ++i) x.at(0, i) = 1, x.at(1, i) = i == 1 ? 0.5f : 1.0f;
  Ids ids(2, 2), slots(2, 2);
  std::vector<std::byte> scratch(400);
  reference_ops().top_experts({x.tensor(), {}, ids.tensor(), slots.tensor()},
                              Lane{0, 1, scratch.data(), 400});
  EXPECT_EQ(ids.values(), (std::vector<int32_t>{0, 1, 0, 2}));
  EXPECT_EQ(slots.values(), (std::vector<int32_t>{0, 1, 4, 6}));
}

TEST(TopExperts, AddsTheBiasForTheChoiceAlone) {
  Rows x(1, 3), bias(1, 3);
  for (int64_t i = 0; i < 3; ++i) x.at(0, i) = static_cast<float>(i);
  bias.at(0, 0) = 5, bias.at(0, 1) = bias.at(0, 2) = 0;
  Ids ids(1, 2), slots(1, 2);
  std::vector<std::byte> scratch(400);
  reference_ops().top_experts({x.tensor(), vector_of(bias), ids.tensor(), slots.tensor()},
                              Lane{0, 1, scratch.data(), 400});
  EXPECT_EQ(ids.values(), (std::vector<int32_t>{0, 2}));
}

// Groups of two: sums 3, 6 and 5. The largest value, 4, is in the group that is not chosen.
TEST(TopExperts, ChoosesGroupsByTheirBestExpertsFirst) {
  Rows x(1, 6);
  const float values[] = {4, -1, 3, 3, 2.5, 2.5};
  for (int64_t i = 0; i < 6; ++i) x.at(0, i) = values[i];
  Ids ids(1, 3), slots(1, 3);
  std::vector<std::byte> scratch(400);
  TopExpertsArgs args{x.tensor(), {}, ids.tensor(), slots.tensor()};
  args.groups = 3, args.chosen_groups = 2, args.group_best = 2;
  reference_ops().top_experts(args, Lane{0, 1, scratch.data(), 400});
  EXPECT_EQ(ids.values(), (std::vector<int32_t>{2, 3, 4}));
}

TEST(TopExperts, RefusesMoreExpertsThanTheChosenGroupsHave) {
  const Rows x(2, 6);
  const Ids ids(2, 3), slots(2, 3);
  TopExpertsArgs args{x.tensor(), {}, ids.tensor(), slots.tensor()};
  args.groups = 3;
  EXPECT_EQ(check(args).error().message, "top_experts: 3 experts are chosen from 2");
  args.groups = 4;
  EXPECT_EQ(check(args).error().message, "top_experts: 6 experts do not form 4 equal groups");
  args.groups = 3, args.chosen_groups = 4;
  EXPECT_EQ(check(args).error().message, "top_experts: chosen_groups is 4: it must be in [1, 3]");
}

TEST(GroupRows, SortsPairsByExpertAndKeepsTheirOrder) {
  Ids ids(3, 2), starts(1, 4), rows(1, 6), experts(1, 6), positions(1, 6);
  ids.values() = {2, 0, 0, 2, 2, 0};
  reference_ops().group_rows(
      {ids.tensor(), starts.tensor(), rows.tensor(), experts.tensor(), positions.tensor()}, Lane{});
  EXPECT_EQ(starts.values(), (std::vector<int32_t>{0, 3, 3, 6}));
  EXPECT_EQ(rows.values(), (std::vector<int32_t>{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(experts.values(), (std::vector<int32_t>{0, 0, 0, 2, 2, 2}));
  EXPECT_EQ(positions.values(), (std::vector<int32_t>{3, 0, 1, 4, 5, 2}));
}

TEST(ExpertMatmul, RefusesWeightsThatAreNotOneRunPerExpert) {
  const Rows x(2, 8), y(2, 5);
  const Ids starts = sizes({1, 1});
  const Packed w(DType::f32, 11, 8, 1);
  ExpertMatmulArgs args;
  args.x = x.tensor(), args.starts = starts.tensor(), args.w = w.tensor(), args.y = y.tensor();
  EXPECT_EQ(check(args).error().message,
            "expert_matmul: w [11, 8] and y [2, 5] do not agree: 2 experts have 10 rows");
}

}  // namespace
}  // namespace loom::core::test
