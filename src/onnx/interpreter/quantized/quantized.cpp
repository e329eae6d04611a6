// Products and convolutions of integers, rounded once if the operator asks for quantized results.
// Operands of 8 bits use the kernels for f32, and are exact. Sums below 2^24 are integers that f32
// has, in any order. So an inner axis is cut into pieces whose sums cannot reach more, and pieces
// are added as integers. Weights stay in 8 bits, with scale 1. Others are computed in 64 bits by
// plain loops. See products.hpp and windows.hpp.
#include <algorithm>
#include <cmath>

#include "onnx/interpreter/neural/windows.hpp"
#include "onnx/interpreter/parts.hpp"
#include "ops/recording/recorder.hpp"

namespace loom::core::evaluate {
namespace {

constexpr double kExact = 1 << 24;

bool has_8_bits(const Value& v) {
  return v.type == OnnxType::u8 || v.type == OnnxType::i8;
}
// Input i, and its zero point z where it has one.
bool of_8_bits(const Call& c, size_t i, size_t z) {
  return has_8_bits(c.value(i)) && (!c.has(z) || has_8_bits(c.value(z)));
}

// Input i as numbers of `type` less its zero point: input z, of one number, or one per place of
// `axis`.
Result<Value> less_zero(const Call& c, size_t i, size_t z, int axis, OnnxType type) {
  if (is_real(c.value(i).type)) return c.bad("takes integers");
  LOOM_ASSIGN(const Value x, c.as(i, type));
  if (!c.has(z)) return x;
  LOOM_ASSIGN(const Dims zero, c.int_list(z));
  Dims list_dims(x.dims.size(), 1);
  if (zero.size() != 1) {
    LOOM_ASSIGN(const int at, c.axis(axis, x.rank()));
    if (static_cast<int64_t>(zero.size()) != x.dims[static_cast<size_t>(at)])
      return c.bad("zero points that do not fit");
    list_dims[static_cast<size_t>(at)] = static_cast<int64_t>(zero.size());
  }
  LOOM_ASSIGN(Value list, c.make(type, list_dims));
  with_type(type, [&]<class T>(T) {
    for (size_t k = 0; k < zero.size(); ++k) list.data<T>()[k] = static_cast<T>(zero[k]);
  });
  return combine(c, Pair::sub, x, list);
}

float largest(const Value& v) {
  float most = 0;
  const float* at = v.data<float>();
  for (int64_t i = 0, n = v.count(); i < n; ++i) most = std::max(most, std::abs(at[i]));
  return most;
}

// How many products have a sum below 2^24.
int64_t exact_products(float a, float b) {
  const double each = std::max(1.0, static_cast<double>(a) * static_cast<double>(b));
  return std::max<int64_t>(1, static_cast<int64_t>(kExact / each));
}

// Sums of a piece, to those before it.
void add_sums(const Call& c, const Value& from, Value& to, bool first) {
  const float* sums = from.data<float>();
  auto* out = to.data<int32_t>();
  c.parallel(to.count(), 0.5, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto before = first ? 0U : static_cast<uint32_t>(out[i]);
      out[i] = static_cast<int32_t>(before + static_cast<uint32_t>(static_cast<int32_t>(sums[i])));
    }
  });
}

// Rows of integers as weights. If they fit in 8 bits, each is its own code.
Result<std::shared_ptr<PackedMatrix>> pack_whole(const Call& c, const Value& rows, float most) {
  constexpr float kMaxCode = 127;
  const int64_t count = rows.dims[0], cols = count == 0 ? 0 : rows.count() / count;
  if (most > kMaxCode) return pack_rows(c, rows.data<float>(), count, cols);
  auto out = std::make_shared<PackedMatrix>();
  const R16 geometry = r16_geometry(DType::i8, count, cols);
  LOOM_ASSIGN(out->memory, Buffer::allocate(geometry.bytes()));
  out->w = r16_tensor(geometry, out->memory.data());
  std::vector<float> ranges(static_cast<size_t>(count), kMaxCode);
  PackArgs pack;
  pack.src = f32_matrix(const_cast<float*>(rows.data<float>()), count, cols);
  pack.w = out->w;
  pack.ranges = f32_vector(ranges.data(), count);
  pack.band = 0x1.fffffep-1F;  // the ranges stay, and with them a scale of 1
  LOOM_TRY(c.rt.recorder.pack(pack));
  LOOM_TRY(c.rt.recorder.flush());
  return out;
}

// The second operand in pieces of `each` places of its inner axis, or of its channels.
struct WholeWeights : Prepared {
  Dims dims;  // of the operand
  int64_t each = 1;
  std::vector<std::shared_ptr<PackedMatrix>> pieces;
};
using WholeReady = Result<std::shared_ptr<WholeWeights>>;

// `of` cut along axis 1, each piece packed.
WholeReady pack_pieces(const Call& c, const Value& of, const Dims& dims, int64_t each, float most) {
  auto out = std::make_shared<WholeWeights>();
  out->dims = dims;
  out->each = each;
  for (int64_t first = 0; first < of.dims[1]; first += each) {
    LOOM_ASSIGN(const Value part, part_of(c, of, 1, first, std::min(each, of.dims[1] - first)));
    LOOM_ASSIGN(auto packed, pack_whole(c, part, most));
    out->pieces.push_back(std::move(packed));
  }
  return out;
}

// B [K, N] (input i, less input z), for a first operand whose numbers are up to 255.
WholeReady pack_matrix(const Call& c, size_t i, size_t z) {
  LOOM_ASSIGN(const Value b, less_zero(c, i, z, -1, OnnxType::f32));
  const int64_t k = b.dims[0], n = b.dims[1];
  LOOM_ASSIGN(Value rows, c.make(OnnxType::f32, {n, k}));
  move(c, b, rows, {{n, k}, {1, n}, {k, 1}});
  const float most = largest(b);
  return pack_pieces(c, rows, b.dims, std::min(k, exact_products(255, most)), most);
}

// W [F, C / groups, taps...]: a piece has so many of the channels. One piece where there are
// groups.
WholeReady pack_filters(const Call& c, size_t i, size_t z) {
  LOOM_ASSIGN(const Value w, less_zero(c, i, z, 0, OnnxType::f32));
  const float most = largest(w);
  const int64_t taps = std::max<int64_t>(product(w.dims, 2, w.rank()), 1);
  const int64_t each =
      std::clamp<int64_t>(exact_products(255, most) / taps, 1, std::max<int64_t>(w.dims[1], 1));
  return pack_pieces(c, w, w.dims, each, most);
}

// Whether input i less input z is the same in every run, of 8 bits, and something.
bool is_constant(const Call& c, size_t i, size_t z) {
  const bool moving = z < c.node.inputs.size() && !c.node.inputs[z].empty() && !c.has(z);
  return c.has(i) && !moving && of_8_bits(c, i, z) && c.value(i).count() > 0;
}

using MadeReady = Result<std::shared_ptr<const Prepared>>;

template <size_t kWeights, size_t kZero>
MadeReady prepare_product(const Call& c) {
  if (!is_constant(c, kWeights, kZero) || c.value(kWeights).rank() != 2) return {nullptr};
  LOOM_ASSIGN(auto made, pack_matrix(c, kWeights, kZero));
  return {std::move(made)};
}
template <size_t kWeights, size_t kZero>
MadeReady prepare_filters(const Call& c) {
  if (!is_constant(c, kWeights, kZero) || c.value(kWeights).rank() < 3) return {nullptr};
  LOOM_ASSIGN(auto made, pack_filters(c, kWeights, kZero));
  return {std::move(made)};
}

// A B of numbers of 8 bits with packed or other second matrices, as i32.
Result<Value> product_pieces(const Call& c, const Value& a, const Value* b,
                             const WholeWeights* packed) {
  const int64_t k = a.last();
  const int64_t inner =
      b != nullptr ? b->dims[static_cast<size_t>(std::max(0, b->rank() - 2))] : packed->dims[0];
  if (k != inner) return c.bad(cat("inner extents ", k, " and ", inner));
  const int64_t each =
      b == nullptr ? packed->each : std::min(k, exact_products(largest(a), largest(*b)));
  Value sums;
  for (int64_t first = 0; first == 0 || first < k; first += std::max<int64_t>(each, 1)) {
    const int64_t count = std::min(each, k - first);
    LOOM_ASSIGN(const Value left, part_of(c, a, a.rank() - 1, first, count));
    Value piece;
    if (b == nullptr) {
      const auto& w = *packed->pieces[static_cast<size_t>(first / each)];
      LOOM_ASSIGN(piece, matmul_packed(c, left, w, nullptr));
    } else {
      LOOM_ASSIGN(const Value right, part_of(c, *b, std::max(0, b->rank() - 2), first, count));
      LOOM_ASSIGN(piece, matmul(c, left, right));
    }
    if (first == 0) {
      LOOM_ASSIGN(sums, c.make(OnnxType::i32, piece.dims));
    }
    add_sums(c, piece, sums, first == 0);
  }
  return sums;
}

// a: input of A, its zero point; b: the same of B. In i32.
Result<Value> product_sums(const Call& c, size_t a, size_t a_zero, size_t b, size_t b_zero) {
  const bool bytes = of_8_bits(c, a, a_zero) && of_8_bits(c, b, b_zero) && c.value(a).rank() > 0 &&
                     c.value(b).rank() > 0;
  if (!bytes) {
    LOOM_ASSIGN(const Value left, less_zero(c, a, a_zero, -2, OnnxType::i64));
    LOOM_ASSIGN(const Value right, less_zero(c, b, b_zero, -1, OnnxType::i64));
    LOOM_ASSIGN(const Value y, matmul(c, left, right));
    return cast(c.rt.memory, y, OnnxType::i32);
  }
  LOOM_ASSIGN(const Value left, less_zero(c, a, a_zero, -2, OnnxType::f32));
  if (c.prepared != nullptr)
    return product_pieces(c, left, nullptr, static_cast<const WholeWeights*>(c.prepared));
  LOOM_ASSIGN(const Value right, less_zero(c, b, b_zero, -1, OnnxType::f32));
  return product_pieces(c, left, &right, nullptr);
}

Status matmul_integer(const Call& c) {
  LOOM_ASSIGN(Value y, product_sums(c, 0, 2, 1, 3));
  return c.give(std::move(y));
}

// clamp(round(sum * (a_scale * b_scale / y_scale)) + y_zero), scales being one number or one per
// place along `axis` of y.
Status requantized(const Call& c, const Value& sums, const size_t scales[3], size_t zero,
                   int axis) {
  const OnnxType type = c.value(zero).type;
  if (type != OnnxType::u8 && type != OnnxType::i8) return c.bad("results must be 8 bits");
  LOOM_ASSIGN(const int64_t origin, c.whole_number(zero, 0));
  Value factor[3];
  for (int k = 0; k < 3; ++k) {
    LOOM_ASSIGN(factor[k], c.as(scales[k], OnnxType::f32));
    const int64_t n = factor[k].count();
    if (n != 1 && (k != 1 || n != sums.dims[static_cast<size_t>(axis)]))
      return c.bad("scales that do not fit");
  }
  const int64_t inner = product(sums.dims, axis + 1, sums.rank());
  const int64_t extent = axis < sums.rank() ? sums.dims[static_cast<size_t>(axis)] : 1;
  std::vector<double> by(static_cast<size_t>(factor[1].count()));
  for (size_t k = 0; k < by.size(); ++k)
    by[k] = static_cast<double>(*factor[0].data<float>()) *
            static_cast<double>(factor[1].data<float>()[k]) /
            static_cast<double>(*factor[2].data<float>());
  LOOM_ASSIGN(Value y, c.make(type, sums.dims));
  const double low = type == OnnxType::u8 ? 0 : -128, high = low + 255;
  const auto* from = sums.data<int32_t>();
  auto* to = y.data<uint8_t>();
  const int64_t rows = inner == 0 ? 0 : sums.count() / inner;
  c.parallel(rows, 2.0 * static_cast<double>(inner), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * inner; i < end * inner; ++i) {
      const double scale = by.size() == 1 ? by[0] : by[static_cast<size_t>(i / inner % extent)];
      const double v = std::nearbyint(static_cast<double>(from[i]) * scale);
      const double code = std::clamp(v + static_cast<double>(origin), low, high);
      to[i] = static_cast<uint8_t>(static_cast<int32_t>(code));
    }
  });
  return c.give(std::move(y));
}

// a, scale, zero, b, scale, zero, y scale, zero.
Status linear_matmul(const Call& c) {
  LOOM_ASSIGN(const Value sums, product_sums(c, 0, 2, 3, 5));
  const size_t scales[3] = {1, 4, 6};
  return requantized(c, sums, scales, 7, std::max(0, sums.rank() - 1));
}

// The geometry of a convolution of x by weights of these extents.
Result<Windows> whole_windows(const Call& c, const Dims& x, const Dims& w) {
  if (w.size() != x.size() || x.size() < 3) return c.bad("weights of another rank");
  LOOM_ASSIGN(Windows win, windows_of(c, x, Dims(w.begin() + 2, w.end())));
  ConvShape& s = win.shape;
  s.groups = c.integer("group", 1);
  s.channels = x[1], s.filters = w[0];
  if (s.groups < 1 || s.channels % s.groups != 0 || s.filters % s.groups != 0 ||
      w[1] != s.channels / s.groups)
    return c.bad("channels, groups and weights that do not fit");
  return win;
}

Tensor image_rows(const Value& v, int64_t batch) {
  return f32_matrix(const_cast<float*>(v.data<float>()), batch, v.count() / batch);
}

Result<Value> conv_pieces(const Call& c, const Value& x, const WholeWeights& w,
                          const Windows& win) {
  const int64_t batch = x.dims[0];
  LOOM_ASSIGN(Value sums, c.make(OnnxType::i32, win.out_dims(batch, win.shape.filters)));
  LOOM_ASSIGN(const Value piece, c.make(OnnxType::f32, sums.dims));
  for (size_t p = 0; p < w.pieces.size(); ++p) {
    const int64_t first = static_cast<int64_t>(p) * w.each;
    const bool whole = w.pieces.size() == 1;
    const int64_t count = whole ? x.dims[1] : std::min(w.each, x.dims[1] - first);
    LOOM_ASSIGN(const Value part, part_of(c, x, 1, first, count));
    ConvArgs args;
    args.x = image_rows(part, batch);
    args.w = w.pieces[p]->w;
    args.y = image_rows(piece, batch);
    args.shape = win.shape;
    args.shape.channels = count;
    LOOM_TRY(c.rt.recorder.conv(args));
    LOOM_TRY(c.rt.recorder.flush());
    add_sums(c, piece, sums, p == 0);
  }
  return sums;
}

// x: input of the images, its zero point; w: the same of the weights. In i32.
Result<Value> conv_sums(const Call& c, size_t x, size_t x_zero, size_t w, size_t w_zero) {
  LOOM_ASSIGN(const Windows win, whole_windows(c, c.value(x).dims, c.value(w).dims));
  if (c.value(w).count() > 0 && c.value(x).count() > 0 && of_8_bits(c, x, x_zero) &&
      of_8_bits(c, w, w_zero)) {
    std::shared_ptr<WholeWeights> made;
    const auto* packed = static_cast<const WholeWeights*>(c.prepared);
    if (packed == nullptr) {
      LOOM_ASSIGN(made, pack_filters(c, w, w_zero));
      packed = made.get();
    }
    if (packed->pieces.size() == 1 || win.shape.groups == 1) {
      LOOM_ASSIGN(const Value image, less_zero(c, x, x_zero, 0, OnnxType::f32));
      return conv_pieces(c, image, *packed, win);
    }
  }
  LOOM_ASSIGN(const Value image, less_zero(c, x, x_zero, 0, OnnxType::i64));
  LOOM_ASSIGN(const Value weights, less_zero(c, w, w_zero, 0, OnnxType::i64));
  LOOM_ASSIGN(Value y, c.make(OnnxType::i64, win.out_dims(image.dims[0], win.shape.filters)));
  convolve_plainly<int64_t>(c, image.data<int64_t>(), weights.data<int64_t>(), y.data<int64_t>(),
                            image.dims[0], win.shape);
  return cast(c.rt.memory, y, OnnxType::i32);
}

Status conv_integer(const Call& c) {
  LOOM_ASSIGN(Value y, conv_sums(c, 0, 2, 1, 3));
  return c.give(std::move(y));
}

// x, scale, zero, w, scale, zero, y scale, zero, bias (int32, in units of both scales).
Status linear_conv(const Call& c) {
  LOOM_ASSIGN(Value sums, conv_sums(c, 0, 2, 3, 5));
  if (c.has(8)) {
    LOOM_ASSIGN(const Value bias, c.as(8, OnnxType::i32));
    const int64_t filters = sums.dims[1], inner = product(sums.dims, 2, sums.rank());
    if (bias.count() != filters) return c.bad("a bias per filter is needed");
    auto* to = sums.data<int32_t>();
    for (int64_t i = 0, n = sums.count(); i < n; ++i)
      to[i] =
          static_cast<int32_t>(static_cast<uint32_t>(to[i]) +
                               static_cast<uint32_t>(bias.data<int32_t>()[i / inner % filters]));
  }
  const size_t scales[3] = {1, 4, 6};
  return requantized(c, sums, scales, 7, 1);
}

constexpr Operator kQuantized[] = {
    {"", "MatMulInteger", matmul_integer, "aa?aa", "", Operator::none, prepare_product<1, 3>},
    {"", "QLinearMatMul", linear_matmul, "aaaaaaaa", "", Operator::none, prepare_product<3, 5>},
    {"", "ConvInteger", conv_integer, "aa?aa auto_pad dilations group kernel_shape pads strides",
     "", Operator::none, prepare_filters<1, 3>},
    {"", "QLinearConv", linear_conv,
     "aaaaaaaa?a auto_pad dilations group kernel_shape pads strides", "", Operator::none,
     prepare_filters<3, 5>},
};

}  // namespace

std::span<const Operator> quantized_operators() {
  return kQuantized;
}

}  // namespace loom::core::evaluate
