// copy: planes of the two axes that matter most, in pieces that lanes share. The inner axis is the
// one with the smallest stride in y. The outer axis is the one in which x is contiguous, if there
// is one, so that a transpose runs tile by tile.

// Values to[i * to_outer + j * to_inner] = from[i * from_outer + j * from_inner].
struct Plane {
  int64_t outer = 1, inner = 1;
  int64_t from_outer = 0, from_inner = 0, to_outer = 0, to_inner = 0;
};

LOOM_INLINE int64_t min_of(int64_t a, int64_t b) {
  return a < b ? a : b;
}

// Values of a piece; its sides are multiples of a tile.
constexpr int64_t kPieceInner = 4096, kPieceValues = 16384, kCopyTile = 16;

template <class T>
inline void copy_strided(const T* from, T* to, const Plane& p) {
  for (int64_t i = 0; i < p.outer; ++i) {
    const T* x = from + i * p.from_outer;
    T* y = to + i * p.to_outer;
    for (int64_t j = 0; j < p.inner; ++j) y[j * p.to_inner] = x[j * p.from_inner];
  }
}

// Few contiguous values in y: walks the long axis, in which x has no gaps.
template <class T>
inline void copy_narrow(const T* from, T* to, const Plane& p) {
  copy_strided(from, to,
               Plane{p.inner, p.outer, p.from_inner, p.from_outer, p.to_inner, p.to_outer});
}

// y has no gaps in the inner axis, x none in the outer one.
template <class T>
inline void copy_transposed(const T* from, T* to, const Plane& p) {
  const int64_t outer = p.outer / kCopyTile * kCopyTile, inner = p.inner / kCopyTile * kCopyTile;
  for (int64_t i = 0; i < outer; i += kCopyTile) {
    for (int64_t j = 0; j < inner; j += kCopyTile) {
      transpose16(reinterpret_cast<const float*>(from + i + j * p.from_inner), p.from_inner,
                  reinterpret_cast<float*>(to + i * p.to_outer + j), p.to_outer);
    }
  }
  Plane rest = p;
  if (inner < p.inner && outer > 0) {
    rest.outer = outer;
    rest.inner = p.inner - inner;
    copy_narrow(from + inner * p.from_inner, to + inner, rest);
  }
  rest = p;
  rest.outer = p.outer - outer;
  if (rest.outer > 0) copy_strided(from + outer, to + outer * p.to_outer, rest);
}

template <class T>
inline void copy_plane(const T* from, T* to, const Plane& p) {
  static_assert(sizeof(T) == sizeof(float));
  const bool dense = p.to_inner == 1;
  if (dense && p.from_inner == 1) {
    for (int64_t i = 0; i < p.outer; ++i) {
      std::memcpy(to + i * p.to_outer, from + i * p.from_outer,
                  static_cast<size_t>(p.inner) * sizeof(T));
    }
  } else if (dense && p.from_inner == 0) {
    for (int64_t i = 0; i < p.outer; ++i) {
      T* y = to + i * p.to_outer;
      for (int64_t j = 0; j < p.inner; ++j) y[j] = from[i * p.from_outer];
    }
  } else if (dense && p.from_outer == 1 && p.inner >= kCopyTile) {
    copy_transposed(from, to, p);
  } else if (p.outer > p.inner) {
    copy_narrow(from, to, p);
  } else {
    copy_strided(from, to, p);
  }
}

// The axes of a copy, merged: the two of the plane, and the others, which count its repeats.
struct CopyPlan {
  Plane plane;
  CopyArgs repeats;
};

inline CopyPlan plan_copy(const CopyArgs& args) {
  CopyPlan plan{{}, merged(args)};
  CopyArgs& m = plan.repeats;
  if (m.rank == 0) return plan;
  const int inner = --m.rank;
  plan.plane.inner = m.extent[inner];
  plan.plane.from_inner = m.x_step[inner];
  plan.plane.to_inner = m.y_step[inner];
  if (m.rank == 0) return plan;
  int outer = m.rank - 1;
  for (int k = 0; k < m.rank && plan.plane.from_inner != 1; ++k) {
    if (m.x_step[k] == 1) outer = k;
  }
  plan.plane.outer = m.extent[outer];
  plan.plane.from_outer = m.x_step[outer];
  plan.plane.to_outer = m.y_step[outer];
  for (int k = outer; k + 1 < m.rank; ++k) {
    m.extent[k] = m.extent[k + 1];
    m.x_step[k] = m.x_step[k + 1];
    m.y_step[k] = m.y_step[k + 1];
  }
  --m.rank;
  return plan;
}

template <class T>
inline void copy_values(const CopyArgs& args, const Lane& lane) {
  const CopyPlan plan = plan_copy(args);
  const CopyArgs& repeats = plan.repeats;
  const Plane& whole = plan.plane;
  const int64_t piece_inner = min_of(whole.inner, kPieceInner);
  const int64_t piece_outer = (kPieceValues / piece_inner + kCopyTile - 1) / kCopyTile * kCopyTile;
  const int64_t inner_pieces = (whole.inner + piece_inner - 1) / piece_inner;
  const int64_t pieces = inner_pieces * ((whole.outer + piece_outer - 1) / piece_outer);
  const LaneRange mine = lane.range(pieces * repeats.count());
  for (int64_t i = mine.begin; i < mine.end; ++i) {
    const T* from = args.x.values<T>() + repeats.x_first;
    T* to = args.y.values<T>() + repeats.y_first;
    int64_t rest = i / pieces;
    for (int k = repeats.rank - 1; k >= 0; --k) {
      from += rest % repeats.extent[k] * repeats.x_step[k];
      to += rest % repeats.extent[k] * repeats.y_step[k];
      rest /= repeats.extent[k];
    }
    const int64_t outer = i % pieces / inner_pieces * piece_outer;
    const int64_t inner = i % inner_pieces * piece_inner;
    Plane p = whole;
    p.outer = min_of(piece_outer, whole.outer - outer);
    p.inner = min_of(piece_inner, whole.inner - inner);
    copy_plane(from + outer * p.from_outer + inner * p.from_inner,
               to + outer * p.to_outer + inner * p.to_inner, p);
  }
}

inline void copy(const CopyArgs& args, const Lane& lane) {
  if (args.count() == 0) return;
  if (args.x.dtype == DType::i32) {
    copy_values<int32_t>(args, lane);
  } else {
    copy_values<float>(args, lane);
  }
}
