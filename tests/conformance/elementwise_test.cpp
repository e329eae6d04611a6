// unary, binary, gated, fill: every kind, widths around every vector length, strided and in place,
// special values.
#include "base/text.hpp"
#include "conformance/support.hpp"
#include "ops/activation.hpp"

namespace loom::core::test {
namespace {

constexpr int kBinaryKinds = static_cast<int>(BinaryKind::min) + 1;

struct Matrix {
  int64_t rows, cols, gap;
};
constexpr Matrix kMatrices[] = {{0, 5, 0},  {3, 0, 0},   {1, 1, 0},   {1, 16, 0},
                                {1, 17, 0}, {1, 33, 0},  {2, 7, 1},   {5, 31, 0},
                                {5, 32, 3}, {13, 15, 2}, {33, 65, 0}, {2, 257, 1}};

// A sweep over magnitudes of both signs that covers the branches of the functions, and special
// values.
Rows sweep() {
  std::vector<float> values = make_values(3, 256, Values::wild);
  const bool tame = tame_values();
  for (int exponent = tame ? -120 : -149; exponent <= (tame ? 3 : 127); ++exponent) {
    const float power = __builtin_ldexpf(1.0f, exponent);
    for (float factor : {1.0f, -1.0f, 1.3f, -1.7f}) values.push_back(power * factor);
  }
  for (float edge : {0.625f, 0.70710678f, 1.0f, 2.0f, 3.0f, 20.0f, 87.33f, 88.72f, 88.73f, 89.0f,
                     103.9f, 104.0f, 105.0f}) {
    if (tame && edge > 16.0f) break;
    for (float x : {edge, -edge, edge * 1.0000001f, edge * 0.9999999f, edge * -1.0000001f})
      values.push_back(x);
  }
  Rows rows(1, static_cast<int64_t>(values.size()));
  for (size_t i = 0; i < values.size(); ++i) rows.at(0, static_cast<int64_t>(i)) = values[i];
  return rows;
}

Rows copy_of(const Rows& x) {
  Rows copy(x.tensor().rows(), x.tensor().cols());
  for (int64_t r = 0; r < x.tensor().rows(); ++r) {
    for (int64_t c = 0; c < x.tensor().cols(); ++c) copy.at(r, c) = x.tensor().f32_row(r)[c];
  }
  return copy;
}

Image image_of(const Rows& y) {
  Image image;
  image.add(y.memory());
  return image;
}

void conform_unary_of(const Rows& x, UnaryKind kind) {
  const std::string what = cat("kind ", static_cast<int>(kind), " of ", x.tensor().shape.str());
  expect_same_bits(what, [&](const Runner& run) {
    const Rows y(x.tensor().rows(), x.tensor().cols(), 1);
    run(&Ops::unary, UnaryArgs{x.tensor(), y.tensor(), kind});
    return image_of(y);
  });
  expect_same_bits(what + " in place", [&](const Runner& run) {
    const Rows y = copy_of(x);
    run(&Ops::unary, UnaryArgs{y.tensor(), y.tensor(), kind});
    return image_of(y);
  });
}

// The operand of a binary op that the result overwrites.
enum class Target { fresh, a, b };

void conform_binary_of(const Rows& a, const Rows& b, BinaryKind kind, Target target) {
  const std::string what =
      cat("kind ", static_cast<int>(kind), " of ", a.tensor().shape.str(), " and ",
          b.tensor().shape.str(), ", target ", static_cast<int>(target));
  expect_same_bits(what, [&](const Runner& run) {
    const Rows mine_a = copy_of(a), mine_b = copy_of(b),
               fresh(a.tensor().rows(), a.tensor().cols(), 3);
    const Rows& y = target == Target::a ? mine_a : (target == Target::b ? mine_b : fresh);
    run(&Ops::binary,
        BinaryArgs{target == Target::a ? mine_a.tensor() : a.tensor(),
                   target == Target::b ? mine_b.tensor() : b.tensor(), y.tensor(), kind});
    return image_of(y);
  });
}

}  // namespace

void conform_unary() {
  for (int k = 0; k < kUnaryKinds; ++k) {
    const auto kind = static_cast<UnaryKind>(k);
    uint64_t seed = 20;
    for (const Matrix& m : kMatrices)
      conform_unary_of(Rows(m.rows, m.cols, m.gap, seed++, Values::mixed), kind);
    conform_unary_of(sweep(), kind);
  }
}

void conform_binary() {
  for (int k = 0; k < kBinaryKinds; ++k) {
    const auto kind = static_cast<BinaryKind>(k);
    uint64_t seed = 40;
    for (const Matrix& m : kMatrices) {
      const Rows a(m.rows, m.cols, m.gap, seed++, Values::wild);
      const Rows b(m.rows, m.cols, 0, seed++, Values::wild);
      const Rows vector(1, m.cols, 0, seed++, Values::wild);
      const Rows column(m.rows, 1, m.gap, seed++, Values::wild);
      for (Target target : {Target::fresh, Target::a, Target::b})
        conform_binary_of(a, b, kind, target);
      for (const Rows* shared : {&vector, &column}) {
        for (Target target : {Target::fresh, Target::a})
          conform_binary_of(a, *shared, kind, target);
      }
    }
  }
}

void conform_gated() {
  for (int k = 0; k < kActivations; ++k) {
    const auto kind = static_cast<Activation>(k);
    uint64_t seed = 70;
    for (const Matrix& m : kMatrices) {
      const Rows gate(m.rows, m.cols, m.gap, seed++, Values::mixed);
      const Rows up(m.rows, m.cols, 2, seed++, Values::wild);
      for (bool in_place : {false, true}) {
        expect_same_bits(cat("activation ", k, " of ", gate.tensor().shape.str()),
                         [&](const Runner& run) {
                           const Rows mine = copy_of(gate), fresh(m.rows, m.cols, 1);
                           const Rows& y = in_place ? mine : fresh;
                           run(&Ops::gated, GatedArgs{in_place ? mine.tensor() : gate.tensor(),
                                                      up.tensor(), y.tensor(), kind});
                           return image_of(y);
                         });
      }
    }
  }
}

void conform_fill() {
  for (const Matrix& m : kMatrices) {
    for (float value : {0.0f, -0.0f, 1.5f, __builtin_inff()}) {
      expect_same_bits(cat(value, " into [", m.rows, ", ", m.cols, "]"), [&](const Runner& run) {
        const Rows y(m.rows, m.cols, m.gap);
        run(&Ops::fill, FillArgs{y.tensor(), value});
        return image_of(y);
      });
    }
  }
}

}  // namespace loom::core::test
