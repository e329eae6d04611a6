// One step of the LSTM and GRU cells, and their gradients, sixteen values of the state at a time.

// Sixteen values of a row of a tensor that may be absent.
LOOM_INLINE V16 or_zero16(const Tensor& t, int64_t r, int64_t c, int64_t n) {
  return t.empty() ? set16(0.0f) : load16_n(t.f32_row(r) + c, n);
}

// Gates and cell state of units [j, j + n) of row r. lstm_hidden() is a second step, so that
// nothing waits for the long chain from the gates to h. `more` is added to the gates and may be
// null.
LOOM_INLINE void lstm_gates(const LstmCellArgs& a, const Tensor* more, int64_t r, int64_t j,
                            int64_t n) {
  const int64_t width = a.h.cols();
  const float* x = a.gates.f32_row(r) + j;
  float* acts = a.acts.f32_row(r) + j;
  V16 i = load16_n(x, n), f = load16_n(x + width, n);
  V16 g = load16_n(x + 2 * width, n), o = load16_n(x + 3 * width, n);
  if (more != nullptr) {
    const float* p = more->f32_row(r) + j;
    i = add16(i, load16_n(p, n));
    f = add16(f, load16_n(p + width, n));
    g = add16(g, load16_n(p + 2 * width, n));
    o = add16(o, load16_n(p + 3 * width, n));
  }
  V16 c = or_zero16(a.c_before, r, j, n);
  LOOM_EACH(k) {
    i.v[k] = fmath::sigmoid<Vf>(i.v[k]);
    f.v[k] = fmath::sigmoid<Vf>(f.v[k]);
    g.v[k] = fmath::tanh<Vf>(g.v[k]);
    o.v[k] = fmath::sigmoid<Vf>(o.v[k]);
    c.v[k] = f.v[k] * c.v[k] + i.v[k] * g.v[k];
  }
  store16_n(acts, i, n);
  store16_n(acts + width, f, n);
  store16_n(acts + 2 * width, g, n);
  store16_n(acts + 3 * width, o, n);
  store16_n(a.c.f32_row(r) + j, c, n);
}

LOOM_INLINE void lstm_hidden(const LstmCellArgs& a, int64_t r, int64_t j, int64_t n) {
  V16 o = load16_n(a.acts.f32_row(r) + 3 * a.h.cols() + j, n);
  const V16 c = load16_n(a.c.f32_row(r) + j, n);
  LOOM_EACH(k) o.v[k] = o.v[k] * fmath::tanh<Vf>(c.v[k]);
  store16_n(a.h.f32_row(r) + j, o, n);
}

// Products and cell in one. A lane has its own rows if there are enough for a tile, else its own
// units in all four gates. So no lane waits between the two, and its results stay in its cache.
inline void lstm_products_cell(const LstmCellArgs& a, const Lane& lane) {
  const int64_t width = a.h.cols();
  const bool by_rows = a.h.rows() >= 8 * lane.count;
  const LaneRange all_rows{0, a.h.rows()}, all_units{0, width};
  const LaneRange rows = by_rows ? lane.range(a.h.rows()) : all_rows;
  const LaneRange units = by_rows ? all_units : lane.range(width, 16);
  if (rows.begin >= rows.end || units.begin >= units.end) return;
  const MatmulArgs m{a.h_before, a.w, {}, a.acts};
  const R16 w = r16_geometry(a.w.dtype, a.w.shape[0], a.w.shape[1]);
  LaneRange groups[4];
  for (int64_t gate = 0; gate < 4; ++gate) {
    groups[gate] = {(gate * width + units.begin) / 16, (gate * width + units.end) / 16};
  }
  matmul_float_ranges(m, w, rows, groups, lane);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    for (int64_t j = units.begin; j < units.end; j += 16) lstm_gates(a, &a.acts, r, j, 16);
    for (int64_t j = units.begin; j < units.end; j += 16) lstm_hidden(a, r, j, 16);
  }
}

inline void lstm_cell(const LstmCellArgs& a, const Lane& lane) {
  if (!a.w.empty()) return lstm_products_cell(a, lane);
  const Tensor* more = a.more.empty() ? nullptr : &a.more;
  each16(a.h.rows(), a.h.cols(), lane,
         [&](int64_t r, int64_t j, int64_t n) { lstm_gates(a, more, r, j, n); });
  each16(a.h.rows(), a.h.cols(), lane,
         [&](int64_t r, int64_t j, int64_t n) { lstm_hidden(a, r, j, n); });
}

inline void lstm_cell_dx(const LstmCellDxArgs& a, const Lane& lane) {
  const int64_t width = a.c.cols();
  each16(a.c.rows(), width, lane, [&](int64_t r, int64_t j, int64_t n) {
    const float* acts = a.acts.f32_row(r) + j;
    float* dx = a.dgates.f32_row(r) + j;
    V16 i = load16_n(acts, n), f = load16_n(acts + width, n);
    V16 g = load16_n(acts + 2 * width, n), o = load16_n(acts + 3 * width, n);
    const V16 c = load16_n(a.c.f32_row(r) + j, n), before = or_zero16(a.c_before, r, j, n);
    const V16 dh = or_zero16(a.dh, r, j, n);
    V16 carry = or_zero16(a.dc_next, r, j, n);
    LOOM_EACH(k) {
      const Vf t = fmath::tanh<Vf>(c.v[k]);
      const Vf dc = (dh.v[k] * o.v[k]) * (1.0f - t * t) + carry.v[k];
      carry.v[k] = dc * f.v[k];
      const Vf di = (dc * g.v[k]) * (i.v[k] * (1.0f - i.v[k]));
      f.v[k] = (dc * before.v[k]) * (f.v[k] * (1.0f - f.v[k]));
      g.v[k] = (dc * i.v[k]) * (1.0f - g.v[k] * g.v[k]);
      o.v[k] = (dh.v[k] * t) * (o.v[k] * (1.0f - o.v[k]));
      i.v[k] = di;
    }
    store16_n(dx, i, n);
    store16_n(dx + width, f, n);
    store16_n(dx + 2 * width, g, n);
    store16_n(dx + 3 * width, o, n);
    if (!a.dc_before.empty()) store16_n(a.dc_before.f32_row(r) + j, carry, n);
  });
}

inline void gru_cell(const GruCellArgs& a, const Lane& lane) {
  const int64_t width = a.h.cols();
  each16(a.h.rows(), width, lane, [&](int64_t row, int64_t j, int64_t count) {
    const float *gx = a.gx.f32_row(row) + j, *gh = a.gh.f32_row(row) + j;
    float* acts = a.acts.f32_row(row) + j;
    V16 r = load16_n(gx, count), z = load16_n(gx + width, count);
    V16 n = load16_n(gx + 2 * width, count);
    const V16 hr = load16_n(gh, count), hz = load16_n(gh + width, count);
    const V16 hn = load16_n(gh + 2 * width, count);
    V16 h = or_zero16(a.h_before, row, j, count);
    LOOM_EACH(k) {
      r.v[k] = fmath::sigmoid<Vf>(r.v[k] + hr.v[k]);
      z.v[k] = fmath::sigmoid<Vf>(z.v[k] + hz.v[k]);
      n.v[k] = fmath::tanh<Vf>(n.v[k] + r.v[k] * hn.v[k]);
      h.v[k] = (1.0f - z.v[k]) * n.v[k] + z.v[k] * h.v[k];
    }
    store16_n(acts, r, count);
    store16_n(acts + width, z, count);
    store16_n(acts + 2 * width, n, count);
    store16_n(a.h.f32_row(row) + j, h, count);
  });
}

inline void gru_cell_dx(const GruCellDxArgs& a, const Lane& lane) {
  const int64_t width = a.dh.cols();
  each16(a.dh.rows(), width, lane, [&](int64_t row, int64_t j, int64_t count) {
    const float* acts = a.acts.f32_row(row) + j;
    float *dgx = a.dgx.f32_row(row) + j, *dgh = a.dgh.f32_row(row) + j;
    V16 r = load16_n(acts, count), z = load16_n(acts + width, count);
    V16 n = load16_n(acts + 2 * width, count);
    const V16 hn = load16_n(a.gh.f32_row(row) + 2 * width + j, count);
    const V16 before = or_zero16(a.h_before, row, j, count);
    V16 dh = load16_n(a.dh.f32_row(row) + j, count), dnr;
    LOOM_EACH(k) {
      const Vf dn = (dh.v[k] * (1.0f - z.v[k])) * (1.0f - n.v[k] * n.v[k]);
      const Vf dz = (dh.v[k] * (before.v[k] - n.v[k])) * (z.v[k] * (1.0f - z.v[k]));
      dh.v[k] = dh.v[k] * z.v[k];
      dnr.v[k] = dn * r.v[k];
      r.v[k] = (dn * hn.v[k]) * (r.v[k] * (1.0f - r.v[k]));
      z.v[k] = dz;
      n.v[k] = dn;
    }
    store16_n(dgx, r, count);
    store16_n(dgh, r, count);
    store16_n(dgx + width, z, count);
    store16_n(dgh + width, z, count);
    store16_n(dgx + 2 * width, n, count);
    store16_n(dgh + 2 * width, dnr, count);
    if (!a.dh_before.empty()) store16_n(a.dh_before.f32_row(row) + j, dh, count);
  });
}
