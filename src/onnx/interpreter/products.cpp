// MatMul, Gemm and their integer variants. f32 uses the kernels of networks; constant matrices are
// packed once. Other types use plain loops, and integers are exact. See products.hpp.
#include "onnx/interpreter/products.hpp"

#include <algorithm>
#include <cmath>

#include "ops/recording/recorder.hpp"

namespace loom::core::evaluate {

Result<std::shared_ptr<PackedMatrix>> pack_rows(const Call& c, const float* rows, int64_t count,
                                                int64_t cols) {
  auto out = std::make_shared<PackedMatrix>();
  const R16 geometry = r16_geometry(DType::f32, count, cols);
  LOOM_ASSIGN(out->memory, Buffer::allocate(geometry.bytes()));
  out->w = r16_tensor(geometry, out->memory.data());
  PackArgs pack;
  pack.src = f32_matrix(const_cast<float*>(rows), count, cols);
  pack.w = out->w;
  LOOM_TRY(c.rt.recorder.pack(pack));
  LOOM_TRY(c.rt.recorder.flush());
  return out;
}

Status multiply(const Call& c, const float* a, const float* b, float* y, const Product& p) {
  if (p.m == 0 || p.n == 0) return {};
  if (p.k == 0) {
    std::fill_n(y, p.m * p.n, 0.0F);
    return {};
  }
  auto* left = const_cast<float*>(a);
  auto* right = const_cast<float*>(b);
  GemmArgs g;
  g.a = p.a_transposed ? f32_matrix(left, p.k, p.m) : f32_matrix(left, p.m, p.k);
  g.b = p.b_transposed ? f32_matrix(right, p.n, p.k) : f32_matrix(right, p.k, p.n);
  g.y = f32_matrix(y, p.m, p.n);
  g.a_transposed = p.a_transposed;
  g.b_transposed = p.b_transposed;
  return c.rt.recorder.gemm(g);
}

namespace {

// Shapes of a product: vectors get an axis, which is taken away again.
struct Matrices {
  Dims a, b, batch, y;
  Product p;
};
Result<Matrices> matrices(const Call& c, Dims a, Dims b) {
  Matrices m;
  if (a.empty() || b.empty()) return c.bad("takes one axis and more");
  const bool row = a.size() == 1, column = b.size() == 1;
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  m.p = {a[a.size() - 2], a.back(), b.back()};
  if (b[b.size() - 2] != m.p.k)
    return c.bad(cat("inner extents ", m.p.k, " and ", b[b.size() - 2]));
  m.a = a, m.b = b;
  m.batch.assign(a.begin(), a.end() - 2);
  if (!broadcast(m.batch, Dims(b.begin(), b.end() - 2))) return c.bad("batches that do not fit");
  m.y = m.batch;
  if (!row) m.y.push_back(m.p.m);
  if (!column) m.y.push_back(m.p.n);
  return m;
}

}  // namespace

Result<Value> matmul(const Call& c, const Value& a, const Value& b) {
  LOOM_ASSIGN(Matrices m, matrices(c, a.dims, b.dims));
  LOOM_ASSIGN(Value y, c.make(a.type, m.y));
  const Dims a_batch(m.a.begin(), m.a.end() - 2), b_batch(m.b.begin(), m.b.end() - 2);
  // One matrix for all rows: a single product.
  if (product(b_batch) == 1 && product(a_batch) == product(m.batch)) {
    m.p.m *= product(a_batch);
    m.batch.clear();
  }
  const SideBySide walk(
      m.batch, {broadcast_steps(m.batch.empty() ? Dims{} : a_batch, m.batch),
                broadcast_steps(m.batch.empty() ? Dims{} : b_batch, m.batch), steps_of(m.batch)});
  Status status;
  with_type(a.type, [&]<class T>(T) {
    walk.run(0, walk.rows(), [&](const auto& offsets, int64_t n, const auto& step) {
      for (int64_t i = 0; i < n && status.ok(); ++i) {
        const T* left = a.data<T>() + (offsets[0] + i * step[0]) * m.p.m * m.p.k;
        const T* right = b.data<T>() + (offsets[1] + i * step[1]) * m.p.k * m.p.n;
        T* to = y.data<T>() + (offsets[2] + i * step[2]) * m.p.m * m.p.n;
        if constexpr (std::is_same_v<T, float>)
          status = multiply(c, left, right, to, m.p);
        else
          multiply<T>(c, left, right, to, m.p);
      }
    });
  });
  LOOM_TRY(status);
  LOOM_TRY(c.rt.recorder.flush());
  return y;
}

Result<Value> matmul_packed(const Call& c, const Value& a, const PackedMatrix& b,
                            const Value* bias) {
  const int64_t n = b.w.rows(), k = b.w.cols();
  if (a.dims.empty() || a.last() != k) return c.bad(cat("inner extents ", a.last(), " and ", k));
  Dims dims = a.dims;
  dims.back() = n;
  LOOM_ASSIGN(Value y, c.make(OnnxType::f32, dims));
  const int64_t rows = k == 0 ? 0 : a.count() / k;
  if (rows == 0 || n == 0) return y;
  MatmulArgs m;
  m.x = f32_matrix(const_cast<float*>(a.data<float>()), rows, k);
  m.w = b.w;
  m.y = f32_matrix(y.data<float>(), rows, n);
  if (bias != nullptr) m.bias = f32_vector(const_cast<float*>(bias->data<float>()), n);
  LOOM_TRY(c.rt.recorder.matmul(m));
  LOOM_TRY(c.rt.recorder.flush());
  return y;
}

namespace {

using MadeReady = Result<std::shared_ptr<const Prepared>>;

// B [K, N], or [N, K] where it is transposed already.
MadeReady pack_second(const Call& c, bool transposed) {
  if (!c.has(1) || c.value(1).type != OnnxType::f32 || c.value(1).rank() != 2) return {nullptr};
  const Value& b = c.value(1);
  if (b.count() == 0) return {nullptr};
  if (transposed) {
    LOOM_ASSIGN(auto packed, pack_rows(c, b.data<float>(), b.dims[0], b.dims[1]));
    return {std::move(packed)};
  }
  const int64_t k = b.dims[0], n = b.dims[1];
  LOOM_ASSIGN(Value rows, c.make(OnnxType::f32, {n, k}));
  move(c, b, rows, {{n, k}, {1, n}, {k, 1}});
  LOOM_ASSIGN(auto packed, pack_rows(c, rows.data<float>(), n, k));
  return {std::move(packed)};
}

MadeReady prepare_matmul(const Call& c) {
  return pack_second(c, false);
}
MadeReady prepare_gemm(const Call& c) {
  return pack_second(c, c.integer("transB", 0) != 0);
}

Status matmul_operator(const Call& c) {
  LOOM_TRY(c.same_type(0, 1));
  if (c.value(0).type == OnnxType::boolean) return c.bad("takes numbers");
  if (c.prepared != nullptr && c.value(0).type == OnnxType::f32) {
    LOOM_ASSIGN(Value y, matmul_packed(c, c.value(0), static_cast<const PackedMatrix&>(*c.prepared),
                                       nullptr));
    return c.give(std::move(y));
  }
  LOOM_ASSIGN(const Value a, c.widened(0));
  LOOM_ASSIGN(const Value b, c.widened(1));
  LOOM_ASSIGN(const Value y, matmul(c, a, b));
  return c.give_as(y, c.value(0).type);
}

// alpha A B + beta C for a computing type.
template <class T>
Status scale_and_add(const Call& c, Value& y, const Value* bias) {
  const auto alpha = static_cast<T>(c.real("alpha", 1)), beta = static_cast<T>(c.real("beta", 1));
  if (alpha != 1) {
    for (int64_t i = 0, n = y.count(); i < n; ++i) y.data<T>()[i] *= alpha;
  }
  if (bias == nullptr) return {};
  LOOM_ASSIGN(const Dims dims, shape_of_both(c, y.dims, bias->dims));
  if (dims != y.dims) return c.bad("a C that does not fit");
  Value added = *bias;
  if (beta != 1) {
    LOOM_ASSIGN(added, c.make(bias->type, bias->dims));
    for (int64_t i = 0, n = added.count(); i < n; ++i)
      added.data<T>()[i] = beta * bias->data<T>()[i];
  }
  LOOM_ASSIGN(y, combine(c, Pair::add, y, added));
  return {};
}

Status gemm(const Call& c) {
  LOOM_TRY(c.same_type(0, 1));
  const bool ta = c.integer("transA", 0) != 0, tb = c.integer("transB", 0) != 0;
  const Value &p = c.value(0), &q = c.value(1);
  if (p.rank() != 2 || q.rank() != 2) return c.bad("takes matrices");
  LOOM_ASSIGN(const Value a, c.widened(0));
  const Product m{p.dims[ta ? 1 : 0], p.dims[ta ? 0 : 1], q.dims[tb ? 0 : 1], ta, tb};
  if (q.dims[tb ? 1 : 0] != m.k) return c.bad("inner extents that differ");
  Value bias;
  if (c.has(2)) {
    LOOM_TRY(c.same_type(0, 2));
    LOOM_ASSIGN(bias, c.widened(2));
  }
  const bool plain = !ta && c.real("alpha", 1) == 1 && c.real("beta", 1) == 1;
  if (c.prepared != nullptr && plain && p.type == OnnxType::f32 &&
      (!c.has(2) || (bias.count() == m.n && bias.last() == m.n))) {
    LOOM_ASSIGN(Value y, matmul_packed(c, a, static_cast<const PackedMatrix&>(*c.prepared),
                                       c.has(2) ? &bias : nullptr));
    return c.give(std::move(y));
  }
  LOOM_ASSIGN(const Value b, c.widened(1));
  LOOM_ASSIGN(Value y, c.make(a.type, {m.m, m.n}));
  const Status done = with_type(a.type, [&]<class T>(T) -> Status {
    if constexpr (std::is_same_v<T, float>) {
      LOOM_TRY(multiply(c, a.data<T>(), b.data<T>(), y.data<T>(), m));
      LOOM_TRY(c.rt.recorder.flush());
    } else {
      multiply<T>(c, a.data<T>(), b.data<T>(), y.data<T>(), m);
    }
    return scale_and_add<T>(c, y, c.has(2) ? &bias : nullptr);
  });
  LOOM_TRY(done);
  return c.give_as(y, c.value(0).type);
}

// The determinant of the last two axes, by elimination with pivots, in double precision.
double determinant(std::vector<double> a, int64_t n) {
  double out = 1;
  const auto at = [&](int64_t r, int64_t k) -> double& {
    return a[static_cast<size_t>(r * n + k)];
  };
  for (int64_t k = 0; k < n; ++k) {
    int64_t best = k;
    for (int64_t r = k + 1; r < n; ++r) {
      if (std::abs(at(r, k)) > std::abs(at(best, k))) best = r;
    }
    if (at(best, k) == 0) return 0;
    if (best != k) {
      out = -out;
      for (int64_t j = k; j < n; ++j) std::swap(at(k, j), at(best, j));
    }
    out *= at(k, k);
    for (int64_t r = k + 1; r < n; ++r) {
      const double f = at(r, k) / at(k, k);
      for (int64_t j = k; j < n; ++j) at(r, j) -= f * at(k, j);
    }
  }
  return out;
}

Status det(const Call& c) {
  LOOM_ASSIGN(const Value x, c.as(0, OnnxType::f64));
  const int rank = x.rank();
  if (rank < 2 || x.dims.back() != x.dims[static_cast<size_t>(rank - 2)])
    return c.bad("takes square matrices");
  const int64_t n = x.dims.back();
  LOOM_ASSIGN(Value y, c.make(OnnxType::f64, Dims(x.dims.begin(), x.dims.end() - 2)));
  for (int64_t i = 0; i < y.count(); ++i) {
    const double* from = x.data<double>() + i * n * n;
    y.data<double>()[i] = determinant(std::vector<double>(from, from + n * n), n);
  }
  return c.give_as(y, c.value(0).type);
}

constexpr Operator kProducts[] = {
    {"", "MatMul", matmul_operator, {}, "", Operator::none, prepare_matmul},
    {"", "Gemm", gemm, {}, "", Operator::none, prepare_gemm},
    {"", "Det", det, "a"},
};

}  // namespace

std::span<const Operator> product_operators() {
  return kProducts;
}

}  // namespace loom::core::evaluate
