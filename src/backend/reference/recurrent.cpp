// One step of the LSTM and GRU cells, value by value, and their gradients. Gates are adjacent in a
// row: i|f|g|o, and r|z|n. An absent state is zero. Lanes share the rows.
#include "backend/reference/kernels.hpp"
#include "ops/fmath.hpp"

namespace loom::core::reference {
namespace {

// Value i of row r, or 0 when the tensor is absent.
template <class T>
T or_zero(const Tensor& t, int64_t r, int64_t i) {
  return t.empty() ? T(0) : t.row<T>(r)[i];
}

}  // namespace

template <class T>
void lstm_cell(const LstmCellArgs& args, const Lane& lane) {
  const int64_t width = args.h.cols();
  const LaneRange rows = lane.range(args.h.rows());
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const T* x = args.gates.row<T>(r);
    const auto sum = [&](int64_t j) {
      return args.more.empty() ? x[j] : x[j] + args.more.row<T>(r)[j];
    };
    T* acts = args.acts.row<T>(r);
    for (int64_t j = 0; j < width; ++j) {
      const T i = fmath::sigmoid<T>(sum(j));
      const T f = fmath::sigmoid<T>(sum(width + j));
      const T g = fmath::tanh<T>(sum(2 * width + j));
      const T o = fmath::sigmoid<T>(sum(3 * width + j));
      const T c = f * or_zero<T>(args.c_before, r, j) + i * g;
      acts[j] = i;
      acts[width + j] = f;
      acts[2 * width + j] = g;
      acts[3 * width + j] = o;
      args.c.row<T>(r)[j] = c;
      args.h.row<T>(r)[j] = o * fmath::tanh<T>(c);
    }
  }
}

template <class T>
void lstm_cell_dx(const LstmCellDxArgs& args, const Lane& lane) {
  const int64_t width = args.c.cols();
  const LaneRange rows = lane.range(args.c.rows());
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const T* acts = args.acts.row<T>(r);
    T* dx = args.dgates.row<T>(r);
    for (int64_t j = 0; j < width; ++j) {
      const T i = acts[j], f = acts[width + j], g = acts[2 * width + j], o = acts[3 * width + j];
      const T t = fmath::tanh<T>(args.c.row<T>(r)[j]);
      const T dh = or_zero<T>(args.dh, r, j);
      const T dc = (dh * o) * (T(1) - t * t) + or_zero<T>(args.dc_next, r, j);
      const T before = or_zero<T>(args.c_before, r, j);
      dx[j] = (dc * g) * (i * (T(1) - i));
      dx[width + j] = (dc * before) * (f * (T(1) - f));
      dx[2 * width + j] = (dc * i) * (T(1) - g * g);
      dx[3 * width + j] = (dh * t) * (o * (T(1) - o));
      if (!args.dc_before.empty()) args.dc_before.row<T>(r)[j] = dc * f;
    }
  }
}

template <class T>
void gru_cell(const GruCellArgs& args, const Lane& lane) {
  const int64_t width = args.h.cols();
  const LaneRange rows = lane.range(args.h.rows());
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const T* gx = args.gx.row<T>(row);
    const T* gh = args.gh.row<T>(row);
    T* acts = args.acts.row<T>(row);
    for (int64_t j = 0; j < width; ++j) {
      const T r = fmath::sigmoid<T>(gx[j] + gh[j]);
      const T z = fmath::sigmoid<T>(gx[width + j] + gh[width + j]);
      const T n = fmath::tanh<T>(gx[2 * width + j] + r * gh[2 * width + j]);
      acts[j] = r;
      acts[width + j] = z;
      acts[2 * width + j] = n;
      args.h.row<T>(row)[j] = (T(1) - z) * n + z * or_zero<T>(args.h_before, row, j);
    }
  }
}

template <class T>
void gru_cell_dx(const GruCellDxArgs& args, const Lane& lane) {
  const int64_t width = args.dh.cols();
  const LaneRange rows = lane.range(args.dh.rows());
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    const T* acts = args.acts.row<T>(row);
    T* dgx = args.dgx.row<T>(row);
    T* dgh = args.dgh.row<T>(row);
    for (int64_t j = 0; j < width; ++j) {
      const T r = acts[j], z = acts[width + j], n = acts[2 * width + j];
      const T dh = args.dh.row<T>(row)[j];
      const T dn = (dh * (T(1) - z)) * (T(1) - n * n);
      const T dr = (dn * args.gh.row<T>(row)[2 * width + j]) * (r * (T(1) - r));
      const T dz = (dh * (or_zero<T>(args.h_before, row, j) - n)) * (z * (T(1) - z));
      dgx[j] = dr;
      dgh[j] = dr;
      dgx[width + j] = dz;
      dgh[width + j] = dz;
      dgx[2 * width + j] = dn;
      dgh[2 * width + j] = dn * r;
      if (!args.dh_before.empty()) args.dh_before.row<T>(row)[j] = dh * z;
    }
  }
}

LOOM_REFERENCE_BODY(lstm_cell, LstmCellArgs);
LOOM_REFERENCE_BODY(lstm_cell_dx, LstmCellDxArgs);
LOOM_REFERENCE_BODY(gru_cell, GruCellArgs);
LOOM_REFERENCE_BODY(gru_cell_dx, GruCellDxArgs);

}  // namespace loom::core::reference
