// The sparse gradient of gather_rows: the rows of the dense one that the ids name, each once, with
// the same bits. No other op may read such a table.
#include <gtest/gtest.h>

#include "backend/reference/reference.hpp"
#include "base/numbers/rng.hpp"
#include "ops/gradients/gradient.hpp"
#include "ops/recording/program.hpp"

namespace loom::core::test {
namespace {

constexpr int64_t kRows = 7, kCols = 3, kPlaces = 8;

// A table of f64 weights.
struct Table {
  Table() {
    const R16 g = r16_geometry(DType::f64, kRows, kCols);
    memory = std::move(Buffer::allocate(g.bytes()).value());
    std::vector<double> values;
    for (int64_t i = 0; i < kRows * kCols; ++i) {
      values.push_back(Rng(5, 1).uniform(static_cast<uint64_t>(i)));
    }
    r16_pack(g, values.data(), 0, kRows, ScaleScope::per_row, {}, memory.data());
    tensor = r16_tensor(g, memory.data());
  }
  Buffer memory;
  Tensor tensor;
};

// The sparse gradient of a table, and the ids of its rows.
struct Gradient {
  std::vector<double> values;
  std::vector<int32_t> rows;
};

Gradient gradient_of(const std::vector<int32_t>& ids, int64_t skip, bool sparse) {
  const Table table;
  ThreadPool pool(1, true);
  Trace trace(DType::f64, true);
  Recorder recorder(trace);
  Tensor id = trace.fresh(Shape{2, 4}, DType::i32);
  const Tensor y = trace.fresh(Shape{kPlaces, kCols}), z = trace.fresh(y.shape);
  EXPECT_TRUE(recorder.gather_rows({table.tensor, id, y, skip, sparse}).ok());
  EXPECT_TRUE(recorder.unary({y, z, UnaryKind::tanh}).ok());
  Differentiator d(trace);
  Tensor dz = trace.fresh(z.shape);
  d.want(table.tensor);
  d.seed(z, dz);
  EXPECT_TRUE(d.run().ok());
  Tensor g = d.gradient(table.tensor), rows = d.rows(table.tensor);
  EXPECT_EQ(rows.empty(), !sparse);
  std::vector<Tensor*> pins = {&id, &dz, &g};
  if (sparse) pins.push_back(&rows);
  Result<Program> program = Program::compile(std::move(trace), pins, reference_ops_f64(), pool);
  EXPECT_TRUE(program.ok()) << program.error().str();
  std::copy(ids.begin(), ids.end(), id.i32());
  for (int64_t i = 0; i < dz.shape.count(); ++i) {
    dz.values<double>()[i] = Rng(5, 2).uniform(static_cast<uint64_t>(i));
  }
  EXPECT_TRUE(program->run().ok());
  const double* at = g.values<double>();
  Gradient result{{at, at + g.shape.count()}, {}};
  if (sparse) result.rows.assign(rows.i32(), rows.i32() + kPlaces);
  return result;
}

TEST(SparseGradient, IsTheDenseOneRowByRow) {
  for (const std::vector<int32_t>& ids : {std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 0},
                                          {3, 3, 3, 3, 3, 3, 3, 3},
                                          {6, 2, 6, 0, 2, 2, 5, 6}}) {
    for (const int64_t skip : {-1, 2, 3}) {
      const Gradient dense = gradient_of(ids, skip, false), sparse = gradient_of(ids, skip, true);
      ASSERT_EQ(sparse.values.size(), static_cast<size_t>(kPlaces * kCols));
      std::vector<double> spread(static_cast<size_t>(kRows * kCols));
      std::vector<int> times(kRows);
      for (size_t r = 0; r < kPlaces; ++r) {
        const double* row = sparse.values.data() + r * kCols;
        if (sparse.rows[r] < 0) {
          for (int64_t c = 0; c < kCols; ++c) EXPECT_EQ(row[c], 0.0);
          continue;
        }
        const auto to = static_cast<size_t>(sparse.rows[r]);
        ++times[to];
        std::copy_n(row, kCols, spread.begin() + static_cast<int64_t>(to) * kCols);
      }
      EXPECT_EQ(spread, dense.values);
      for (int64_t row = 0; row < kRows; ++row) {
        const bool named = row != skip && std::find(ids.begin(), ids.end(), row) != ids.end();
        EXPECT_EQ(times[static_cast<size_t>(row)], named ? 1 : 0);
      }
    }
  }
}

// Two readers of one table, `first` recorded first: 's' a sparse gather, 'g' a dense one, 'm' a
// product with it.
std::string two_readers(const char* kinds) {
  const Table table;
  Trace trace(DType::f64, true);
  Recorder recorder(trace);
  Tensor sum;
  for (const char* kind = kinds; *kind != 0; ++kind) {
    Tensor y = trace.fresh(Shape{kPlaces, *kind == 'm' ? kRows : kCols});
    if (*kind == 'm') {
      EXPECT_TRUE(recorder.matmul({trace.fresh(Shape{kPlaces, kCols}), table.tensor, {}, y}).ok());
    } else {
      const Tensor ids = trace.fresh(Shape{kPlaces}, DType::i32);
      EXPECT_TRUE(recorder.gather_rows({table.tensor, ids, y, -1, *kind == 's'}).ok());
    }
    const Tensor one = trace.fresh(Shape{kPlaces}), next = trace.fresh(Shape{kPlaces});
    EXPECT_TRUE(recorder.reduce({y, one, ReduceKind::sum}).ok());
    EXPECT_TRUE(sum.empty() || recorder.binary({sum, one, next, BinaryKind::add}).ok());
    sum = sum.empty() ? one : next;
  }
  Differentiator d(trace);
  d.want(table.tensor);
  d.seed(sum, trace.fresh(sum.shape));
  const Status status = d.run();
  return status.ok() ? "" : status.error().str();
}

TEST(SparseGradient, IsRefusedWhereTheTableHasAnotherReader) {
  const std::string why =
      ": a table [7, 3] with a sparse gradient may have one reader; set sparse to false where it "
      "is shared or tied";
  EXPECT_EQ(two_readers("gg"), "");
  EXPECT_EQ(two_readers("gm"), "");
  EXPECT_EQ(two_readers("s"), "");
  EXPECT_EQ(two_readers("ss"), "gradient of gather_rows" + why);
  EXPECT_EQ(two_readers("sg"), "gradient of gather_rows" + why);
  EXPECT_EQ(two_readers("gs"), "gradient of gather_rows" + why);
  EXPECT_EQ(two_readers("sm"), "gradient of gather_rows" + why);
  EXPECT_EQ(two_readers("ms"), "gradient of matmul" + why);
}

}  // namespace
}  // namespace loom::core::test
