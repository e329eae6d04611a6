// Ops on some rows of a large table: the list of rows in a batch, and updates that touch no other
// row.
#include <cstring>

#include "backend/reference/reference.hpp"
#include "base/numbers/bits.hpp"
#include "base/numbers/rng.hpp"
#include "base/text.hpp"
#include "ops/f64.hpp"
#include "ops/ops.hpp"

namespace loom::core::test {
namespace {

using Numbers = std::vector<int32_t>;

Tensor ids_of(Numbers& values) {
  const auto n = static_cast<int64_t>(values.size());
  return Tensor{DType::i32, Layout::plain, Shape{n}, n,
                reinterpret_cast<std::byte*>(values.data())};
}

template <class Args>
void run32(void (*Ops::*op)(const Args&, const Lane&), const Args& args) {
  for (int lane = 2; lane >= 0; --lane) (reference_ops().*op)(args, Lane{lane, 3, nullptr, 0});
}

TEST(DistinctRows, NamesEachRowWhereItStandsFirst) {
  const struct {
    Numbers ids;
    int64_t skip;
    Numbers rows, first;
  } cases[] = {
      {{}, -1, {}, {}},
      {{3}, -1, {3}, {0}},
      {{5, 2, 5, 5, 0, 2}, -1, {5, 2, -1, -1, 0, -1}, {0, 1, 0, 0, 4, 1}},
      {{5, 2, 5, 5, 0, 2}, 5, {-1, 2, -1, -1, 0, -1}, {-1, 1, -1, -1, 4, 1}},
      {{1, 1, 1}, 1, {-1, -1, -1}, {-1, -1, -1}},
  };
  for (const auto& c : cases) {
    for (const int32_t before : {0, 1, -7, 1 << 30}) {
      Numbers ids = c.ids, rows(ids.size(), 77), first(ids.size(), 77), visited(6, before);
      run32(&Ops::distinct_rows,
            DistinctRowsArgs{ids_of(ids), ids_of(visited), ids_of(rows), ids_of(first), c.skip});
      EXPECT_EQ(rows, c.rows) << "whatever memory held: " << before;
      EXPECT_EQ(first, c.first);
    }
  }
}

// A table of 9 rows, of which 7, 2 and 4 are named.
struct Table {
  Table() {
    for (std::vector<float>* t : {&p, &m, &v}) {
      for (int i = 0; i < 45; ++i) {
        const float u = Rng(9, t == &p ? 1 : t == &m ? 2 : 3).uniform(static_cast<uint64_t>(i));
        t->push_back(u);
      }
    }
    for (int i = 0; i < 20; ++i) g.push_back(0.1f * static_cast<float>(i) - 1.0f);
  }
  static Tensor matrix(std::vector<float>& x) {
    return f32_matrix(x.data(), static_cast<int64_t>(x.size()) / 5, 5);
  }
  std::vector<float> p, m, v, g, hyper = {0.5f, 0.1f, 0.01f, 0.0f};
  Numbers rows = {7, -1, 2, 4};
};

TEST(SomeRows, AreUpdatedAsRowsOfATableOfTheirOwn) {
  for (int k = 0; k <= static_cast<int>(UpdateKind::lion); ++k) {
    Table t;
    const Table before = t;
    OptimizeArgs args{Table::matrix(t.p), Table::matrix(t.g), Table::matrix(t.m),
                      Table::matrix(t.v), f32_vector(t.hyper.data(), 4)};
    args.kind = static_cast<UpdateKind>(k);
    args.decay = 0.25f;
    args.rows = ids_of(t.rows);
    run32(&Ops::optimize, args);
    Table own = before;
    for (int64_t i = 0; i < 4; ++i) {
      const int64_t row = own.rows[static_cast<size_t>(i)];
      if (row < 0) continue;
      OptimizeArgs one = args;
      one.rows = {};
      one.g = Table::matrix(own.g).slice_rows(i, 1);
      one.p = Table::matrix(own.p).slice_rows(row, 1);
      one.m = Table::matrix(own.m).slice_rows(row, 1);
      one.v = Table::matrix(own.v).slice_rows(row, 1);
      run32(&Ops::optimize, one);
    }
    EXPECT_EQ(t.p, own.p) << k;
    EXPECT_EQ(t.m, own.m) << k;
    EXPECT_EQ(t.v, own.v) << k;
    EXPECT_NE(t.p, before.p) << k;
  }
}

TEST(SomeRows, AreConvertedAndPackedAlone) {
  for (const DTypeInfo& info : dtype_table()) {
    if (!r16_packs_rows(info.dtype)) continue;
    Table t;
    const R16 g = r16_geometry(info.dtype, 9, 5);
    std::vector<std::byte> packed(static_cast<size_t>(g.bytes()));
    PackArgs pack{Table::matrix(t.p), r16_tensor(g, packed.data())};
    run32(&Ops::pack, pack);
    std::vector<float> changed = t.p;
    for (float& x : changed) x = 1.0f - x;
    std::vector<float> expected = t.p;
    for (const int row : {7, 2, 4}) {
      std::copy_n(changed.begin() + row * 5, 5, expected.begin() + row * 5);
    }
    pack.src = Table::matrix(changed);
    pack.rows = ids_of(t.rows);
    run32(&Ops::pack, pack);
    std::vector<std::byte> all_bytes(packed.size());
    run32(&Ops::pack, PackArgs{Table::matrix(expected), r16_tensor(g, all_bytes.data())});
    EXPECT_EQ(packed, all_bytes) << info.name;

    std::vector<float> y(45, 77.0f), all(45);
    run32(&Ops::convert, ConvertArgs{pack.w, Table::matrix(y), pack.rows});
    run32(&Ops::convert, ConvertArgs{pack.w, Table::matrix(all)});
    for (size_t i = 0; i < y.size(); ++i) {
      const bool named = i / 5 == 7 || i / 5 == 2 || i / 5 == 4;
      EXPECT_EQ(y[i], named ? all[i] : 77.0f) << info.name << " at " << i;
    }
  }
}

}  // namespace
}  // namespace loom::core::test
