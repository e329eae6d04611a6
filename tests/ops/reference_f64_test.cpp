// The f64 table of the reference: the ops that inference shares with training, against formulas and
// against the f32 table.
#include <gtest/gtest.h>

#include <cmath>

#include "ops/f64.hpp"
#include "ops/ops.hpp"

namespace loom::core {
namespace {

using test::F64;
using test::run64;

TEST(ReferenceF64, HasEveryRowThatIsNotF32ByDefinition) {
  const Ops& ops = reference_ops_f64();
  EXPECT_EQ(ops.name, "reference-f64");
  EXPECT_EQ(ops.compute, DType::f64);
  EXPECT_EQ(reference_ops().compute, DType::f32);
#define LOOM_OP(op, Args)                                                                       \
  EXPECT_NE(reference_ops().op, nullptr) << #op;                                                \
  EXPECT_EQ(ops.op == nullptr, OpId::op == OpId::quantize_rows || OpId::op == OpId::kv_write || \
                                   OpId::op == OpId::attention || OpId::op == OpId::sample)     \
      << #op;
#include "ops/ops.def"
#undef LOOM_OP
}

TEST(ReferenceF64, MatmulIsTheProductOfTheDecodedWeights) {
  const int64_t rows = 3, n = 17, k = 300;
  for (const DTypeInfo& info : dtype_table()) {
    const F64 x = F64::random(rows, k, 1), source = F64::random(n, k, 2),
              bias = F64::random(1, n, 3), y(rows, n, 2);
    const R16 g = r16_geometry(info.dtype, n, k);
    const Buffer memory = std::move(Buffer::allocate(g.bytes()).value());
    const Tensor w = r16_tensor(g, memory.data());
    run64(&Ops::pack, PackArgs{source.tensor(), w});
    MatmulArgs args;
    args.x = x.tensor(), args.w = w, args.bias = bias.vector(), args.y = y.tensor();
    run64(&Ops::matmul, args);
    const F64 decoded(n, k), gathered(1, k);
    run64(&Ops::convert, ConvertArgs{w, decoded.tensor()});
    int32_t id = static_cast<int32_t>(n - 1);
    const Tensor ids{DType::i32, Layout::plain, Shape{1}, 1, reinterpret_cast<std::byte*>(&id)};
    run64(&Ops::gather_rows, GatherRowsArgs{w, ids, gathered.tensor()});
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t r = 0; r < rows; ++r) {
        double sum = bias[j];
        for (int64_t i = 0; i < k; ++i) sum += x.at(r, i) * decoded.at(j, i);
        ASSERT_NEAR(y.at(r, j), sum, 1e-12) << info.name;
      }
    }
    for (int64_t i = 0; i < k; ++i) {
      ASSERT_EQ(gathered[i], decoded.at(n - 1, i)) << info.name;
      ASSERT_TRUE(info.dtype != DType::f64 || decoded.at(2, i) == source.at(2, i));
    }
  }
}

TEST(ReferenceF64, RopeBackUndoesRope) {
  const int64_t rows = 6, length = 3, heads = 2, half = 4, first = 5;
  std::vector<float> cos, sin;
  for (int64_t i = 0; i < (first + length) * half; ++i) {
    cos.push_back(static_cast<float>(std::cos(0.7 * static_cast<double>(i))));
    sin.push_back(static_cast<float>(std::sin(0.7 * static_cast<double>(i))));
  }
  const F64 x = F64::random(rows, heads * half * 2, 4), y(rows, x.cols(), 1), back(rows, x.cols());
  RopeArgs args{x.tensor(),
                y.tensor(),
                f32_matrix(cos.data(), first + length, half),
                f32_matrix(sin.data(), first + length, half),
                heads,
                first,
                length};
  run64(&Ops::rope, args);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < half; ++i) {
      const auto at = static_cast<size_t>((first + r % length) * half + i);
      const double c = static_cast<double>(cos[at]), s = static_cast<double>(sin[at]);
      EXPECT_EQ(y.at(r, i), x.at(r, i) * c - x.at(r, i + half) * s);
      EXPECT_EQ(y.at(r, i + half), x.at(r, i) * s + x.at(r, i + half) * c);
    }
  }
  args.x = y.tensor(), args.y = back.tensor(), args.inverse = true;
  run64(&Ops::rope, args);
  // The tables are rounded to f32, so a turn keeps lengths to that precision only.
  for (int64_t i = 0; i < x.size(); ++i) EXPECT_NEAR(back[i], x[i], 3e-7);
}

TEST(ReferenceF64, RowOpsHaveThePrecisionOfDoubles) {
  const int64_t rows = 2, n = 37;
  const F64 x = F64::random(rows, n, 6), gamma = F64::random(1, n, 7), y(rows, n), sums(1, rows);
  NormArgs norm;
  norm.x = x.tensor(), norm.gamma = gamma.vector(), norm.y = y.tensor(),
  norm.kind = NormKind::layer;
  run64(&Ops::norm, norm);
  const F64 p(rows, n);
  run64(&Ops::softmax, SoftmaxArgs{x.tensor(), p.tensor(), 2.0f});
  run64(&Ops::reduce, ReduceArgs{x.tensor(), sums.vector(), ReduceKind::sum_squares});
  for (int64_t r = 0; r < rows; ++r) {
    double mean = 0, spread = 0, total = 0, squares = 0;
    for (int64_t i = 0; i < n; ++i) mean += x.at(r, i) / static_cast<double>(n);
    for (int64_t i = 0; i < n; ++i) {
      spread += (x.at(r, i) - mean) * (x.at(r, i) - mean) / static_cast<double>(n);
      total += std::exp(2 * x.at(r, i));
      squares += x.at(r, i) * x.at(r, i);
    }
    EXPECT_NEAR(sums[r], squares, 1e-14 * squares);
    for (int64_t i = 0; i < n; ++i) {
      const double h = (x.at(r, i) - mean) / std::sqrt(spread + static_cast<double>(norm.eps));
      EXPECT_NEAR(y.at(r, i), h * gamma[i], 1e-14);
      EXPECT_NEAR(p.at(r, i), std::exp(2 * x.at(r, i)) / total, 1e-15);
    }
  }
}

TEST(ReferenceF64, BinaryTakesOneRowOrOneColumn) {
  const F64 a = F64::random(3, 5, 8, 2), row = F64::random(1, 5, 9), column = F64::random(3, 1, 10),
            y(3, 5);
  run64(&Ops::binary, BinaryArgs{a.tensor(), row.tensor(), y.tensor(), BinaryKind::sub});
  for (int64_t i = 0; i < a.size(); ++i) EXPECT_EQ(y[i], a[i] - row[i % 5]);
  run64(&Ops::binary, BinaryArgs{a.tensor(), column.tensor(), y.tensor(), BinaryKind::div});
  for (int64_t i = 0; i < a.size(); ++i) EXPECT_EQ(y[i], a[i] / column[i / 5]);
}

}  // namespace
}  // namespace loom::core
