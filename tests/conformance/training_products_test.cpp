// gemm, matmul_dx and squared_distance: tile edges in every extent, chunks of 256 in the summed
// one, every dtype of packed weights. Former contents are kept or added to.
#include "base/text.hpp"
#include "conformance/training.hpp"

namespace loom::core::test {
namespace {

struct Extents {
  int64_t m, n, k;
};

// Chunk edges in k with few shapes of the output, then tile edges in n, then in m.
std::vector<Extents> product_extents() {
  std::vector<Extents> all = {{0, 5, 33}, {3, 0, 33}, {33, 70, 300}};
  for (int64_t k : {0, 1, 3, 15, 16, 17, 255, 256, 257, 513}) {
    for (const auto& [m, n] : {std::pair<int64_t, int64_t>{1, 17}, {5, 33}, {13, 16}})
      all.push_back({m, n, k});
  }
  for (int64_t n : {1, 15, 16, 17, 31, 32, 33, 64, 65}) all.push_back({3, n, 40});
  for (int64_t m : {1, 2, 3, 4, 5, 6, 7, 8, 12, 15, 16, 17}) all.push_back({m, 17, 33});
  return all;
}

void conform_gemm_of(const Extents& e, bool a_transposed, bool b_transposed, uint64_t variant) {
  const Values kind = values_of(variant);
  const int64_t gap = variant % 2 == 0 ? 0 : 5;
  const Rows a(a_transposed ? e.k : e.m, a_transposed ? e.m : e.k, gap, variant, kind);
  const Rows b(b_transposed ? e.n : e.k, b_transposed ? e.k : e.n, gap, variant + 1, kind);
  for (bool accumulate : {false, true}) {
    expect_same_bits(
        cat("[", e.m, ", ", e.n, "], depth ", e.k, a_transposed ? ", A^T" : "",
            b_transposed ? ", B^T" : "", accumulate ? ", added" : "", ", variant ", variant),
        [&](const Runner& run) {
          const Rows y = filled(e.m, e.n, gap);
          run(&Ops::gemm,
              GemmArgs{a.tensor(), b.tensor(), y.tensor(), a_transposed, b_transposed, accumulate});
          return image_of({&y});
        });
  }
}

// dx [m, n] from dy [m, k] and w [k, n].
void conform_matmul_dx_of(DType dtype, const Extents& e, uint64_t variant) {
  const Values kind = values_of(variant);
  const int64_t gap = variant % 2 == 0 ? 0 : 5;
  const Rows dy(e.m, e.k, gap, variant, kind);
  const Packed w(dtype, e.k, e.n, variant + 1,
                 kind == Values::smooth ? Values::smooth : Values::mixed);
  for (bool accumulate : {false, true}) {
    expect_same_bits(
        cat(dtype_name(dtype), ": dy [", e.m, ", ", e.k, "], w [", e.k, ", ", e.n,
            accumulate ? "], added" : "]", ", variant ", variant),
        [&](const Runner& run) {
          const Rows dx = filled(e.m, e.n, gap);
          run(&Ops::matmul_dx, MatmulDxArgs{dy.tensor(), w.tensor(), dx.tensor(), accumulate});
          return image_of({&dx});
        });
  }
}

// y [m, n] from x [m, k] and c [n, k].
void conform_distance_of(DType dtype, const Extents& e, uint64_t variant) {
  const Values kind = values_of(variant);
  const int64_t gap = variant % 2 == 0 ? 0 : 5;
  const Rows x(e.m, e.k, gap, variant, kind);
  const Packed c(dtype, e.n, e.k, variant + 1,
                 kind == Values::smooth ? Values::smooth : Values::mixed);
  expect_same_bits(
      cat(dtype_name(dtype), ": x [", e.m, ", ", e.k, "], c [", e.n, ", ", e.k, "], variant ",
          variant),
      [&](const Runner& run) {
        const Rows y(e.m, e.n, gap);
        run(&Ops::squared_distance, SquaredDistanceArgs{x.tensor(), c.tensor(), y.tensor()});
        return image_of({&y});
      });
}

// All extents for a few dtypes that are stored in different ways, some for every other.
template <class Body>
void each_packed_product(Body body) {
  uint64_t variant = 0;
  for (DType dtype : {DType::f32, DType::bf16, DType::f64}) {
    for (const Extents& e : product_extents()) body(dtype, e, variant++);
  }
  for (const DTypeInfo& info : dtype_table()) {
    for (const Extents& e : {Extents{3, 33, 17}, {2, 65, 40}, {5, 16, 257}, {1, 64, 64}}) {
      body(info.dtype, e, variant++);
    }
  }
}

}  // namespace

void conform_gemm() {
  uint64_t variant = 0;
  for (const Extents& e : product_extents()) {
    for (bool a_transposed : {false, true}) {
      for (bool b_transposed : {false, true}) {
        conform_gemm_of(e, a_transposed, b_transposed, variant++);
      }
    }
  }
}

void conform_matmul_dx() {
  each_packed_product(conform_matmul_dx_of);
}

void conform_squared_distance() {
  each_packed_product(conform_distance_of);
}

}  // namespace loom::core::test
