// Weights of 2, 4 and 8 bits with a scale for each block (com.microsoft: MatMulNBits, MatMulBnb4,
// GatherBlockQuantized). They stay as the file has them: a product decodes a few rows at a time,
// and a table the rows that are asked for. Formulas: ContribOperators.md of ONNX Runtime;
// bitsandbytes.
#include <algorithm>

#include "onnx/interpreter/families.hpp"
#include "onnx/interpreter/parts.hpp"
#include "onnx/interpreter/products.hpp"
#include "ops/recording/recorder.hpp"

namespace loom::core::evaluate {
namespace {

constexpr std::string_view kMs = "com.microsoft";
constexpr int64_t kRowsAtATime = 64;

// Code i of a run of codes of `bits` each, the first in the low bits.
int64_t code_at(const uint8_t* codes, int64_t i, int64_t bits) {
  const int64_t each = 8 / bits;
  return codes[i / each] >> (i % each * bits) & ((1 << bits) - 1);
}

// A matrix [N, K] of codes: rows are decoded by row(n, K floats).
using Decode = std::function<void(int64_t, float*)>;

// Y = A B^T + bias, of a B that is decoded.
Status decoded_product(const Call& c, int64_t n, int64_t k, const Value* bias,
                       const Decode& decode) {
  LOOM_ASSIGN(const Value a, c.as(0, OnnxType::f32));
  if (a.dims.empty() || a.last() != k) return c.bad(cat("inner extents ", a.last(), " and ", k));
  Dims dims = a.dims;
  dims.back() = n;
  const int64_t rows = k == 0 ? 0 : a.count() / k;
  LOOM_ASSIGN(Value y, c.make(OnnxType::f32, {rows, n}));
  LOOM_ASSIGN(Value some, c.make(OnnxType::f32, {std::min(n, kRowsAtATime), k}));
  LOOM_ASSIGN(Value made, c.make(OnnxType::f32, {rows, std::min(n, kRowsAtATime)}));
  for (int64_t first = 0; first < n; first += kRowsAtATime) {
    const int64_t count = std::min(kRowsAtATime, n - first);
    c.parallel(count, 2.0 * static_cast<double>(k), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) decode(first + r, some.data<float>() + r * k);
    });
    LOOM_TRY(multiply(c, a.data<float>(), some.data<float>(), made.data<float>(),
                      {rows, k, count, false, true}));
    LOOM_TRY(c.rt.recorder.flush());
    for (int64_t r = 0; r < rows; ++r)
      std::copy_n(made.data<float>() + r * count, count, y.data<float>() + r * n + first);
  }
  if (bias != nullptr) {
    LOOM_ASSIGN(const Value shift, cast(c.rt.memory, *bias, OnnxType::f32));
    if (shift.dims != Dims{n}) return c.bad("a bias of N is needed");
    LOOM_ASSIGN(y, combine(c, Pair::add, y, shift));
  }
  return c.give_as(y.view_as(dims), c.value(0).type);
}

// The weights of MatMulNBits.
struct Blocks {
  int64_t n, k, bits, block, count;  // count: blocks of a row
  Value scales, zeros;               // f32; zeros as codes where `packed`
  bool packed = false;
  Dims groups;  // block of each of K; empty: in order
};

Result<Blocks> blocks_of(const Call& c) {
  Blocks b{c.integer("N", 0),
           c.integer("K", 0),
           c.integer("bits", 4),
           c.integer("block_size", 0),
           0,
           {},
           {}};
  if (c.integer("weight_prepacked", 0) != 0) return c.not_done("weight_prepacked");
  if (b.bits != 2 && b.bits != 4 && b.bits != 8) return c.not_done(cat(b.bits, " bits"));
  if (b.n < 1 || b.k < 1 || b.block < 16 || (b.block & (b.block - 1)) != 0)
    return c.bad("N, K and block_size must be 1 or more, block_size a power of 2 from 16 on");
  b.count = (b.k - 1) / b.block + 1;
  const Value& codes = c.value(1);
  if (codes.type != OnnxType::u8 || codes.count() != b.n * b.count * (b.block * b.bits / 8))
    return c.bad("weights must be uint8 [N, blocks, bytes of a block]");
  LOOM_ASSIGN(b.scales, c.as(2, OnnxType::f32));
  if (b.scales.count() != b.n * b.count) return c.bad("scales must be [N, blocks]");
  if (c.has(3)) {
    b.packed = c.value(3).type == OnnxType::u8;
    b.zeros = c.value(3);
    if (!b.packed) {
      LOOM_ASSIGN(b.zeros, c.as(3, OnnxType::f32));
    }
    const int64_t row = b.packed ? (b.count * b.bits + 7) / 8 : b.count;
    if (b.zeros.count() != b.n * row) return c.bad("zero_points that do not fit");
  }
  LOOM_ASSIGN(b.groups, c.int_list(4));
  if (c.has(4) && static_cast<int64_t>(b.groups.size()) < b.k) return c.bad("g_idx must be [K]");
  const auto outside = [&](int64_t g) { return g < 0 || g >= b.count; };
  if (std::ranges::any_of(b.groups, outside)) return c.bad("g_idx names no block");
  return b;
}

// Places [first, end) of a row, which have one scale. The count of bits is a constant, for speed.
template <int64_t kBits>
void decode_run(const uint8_t* row, int64_t first, int64_t end, float zero, float scale,
                float* to) {
  for (int64_t i = first; i < end; ++i)
    to[i] = (static_cast<float>(code_at(row, i, kBits)) - zero) * scale;
}

// Row n in floats.
void decode_row(const Blocks& b, const uint8_t* codes, int64_t n, float* to) {
  const uint8_t* row = codes + n * b.count * (b.block * b.bits / 8);
  const float* scales = b.scales.data<float>() + n * b.count;
  const auto zero = [&](int64_t g) {
    if (b.zeros.dims.empty()) return static_cast<float>(int64_t{1} << (b.bits - 1));
    if (!b.packed) return b.zeros.data<float>()[n * b.count + g];
    return static_cast<float>(
        code_at(b.zeros.data<uint8_t>() + n * ((b.count * b.bits + 7) / 8), g, b.bits));
  };
  for (int64_t i = 0; !b.groups.empty() && i < b.k; ++i) {
    const int64_t g = b.groups[static_cast<size_t>(i)];
    to[i] = (static_cast<float>(code_at(row, i, b.bits)) - zero(g)) * scales[g];
  }
  for (int64_t first = 0, g = 0; b.groups.empty() && first < b.k; first += b.block, ++g) {
    const int64_t end = std::min(b.k, first + b.block);
    switch (b.bits) {
      case 2: decode_run<2>(row, first, end, zero(g), scales[g], to); break;
      case 4: decode_run<4>(row, first, end, zero(g), scales[g], to); break;
      default: decode_run<8>(row, first, end, zero(g), scales[g], to); break;
    }
  }
}

Status matmul_nbits(const Call& c) {
  LOOM_ASSIGN(const Blocks b, blocks_of(c));
  return decoded_product(c, b.n, b.k, optional(c, 5), [&](int64_t n, float* to) {
    decode_row(b, c.value(1).data<uint8_t>(), n, to);
  });
}

// Codes of bitsandbytes: FP4 by its bits, NF4 by quantiles of a normal distribution.
constexpr float kFp4[16] = {
    0,     5.208333333e-03F,  0.66666667F,  1,  0.33333333F,  0.5F,  0.16666667F,  0.25F,
    -0.0F, -5.208333333e-03F, -0.66666667F, -1, -0.33333333F, -0.5F, -0.16666667F, -0.25F};
constexpr float kNf4[16] = {-1.0F,
                            -0.6961928009986877F,
                            -0.5250730514526367F,
                            -0.39491748809814453F,
                            -0.28444138169288635F,
                            -0.18477343022823334F,
                            -0.09105003625154495F,
                            0.0F,
                            0.07958029955625534F,
                            0.16093020141124725F,
                            0.24611230194568634F,
                            0.33791524171829224F,
                            0.44070982933044434F,
                            0.5626170039176941F,
                            0.7229568362236023F,
                            1.0F};

Status matmul_bnb4(const Call& c) {
  const int64_t n = c.integer("N", 0), k = c.integer("K", 0), block = c.integer("block_size", 0);
  const int64_t kind = c.integer("quant_type", 0);
  if (c.integer("transB", 1) != 1) return c.not_done("transB 0");
  if (n < 1 || k < 1 || block < 16 || (kind != 0 && kind != 1))
    return c.bad("an invalid N, K, block_size or quant_type");
  LOOM_ASSIGN(const Value scales, c.as(2, OnnxType::f32));
  if (c.value(1).type != OnnxType::u8 || c.value(1).count() != (n * k + 1) / 2 ||
      scales.count() != (n * k + block - 1) / block)
    return c.bad("weights or scales that do not fit");
  const float* table = kind == 0 ? kFp4 : kNf4;
  return decoded_product(c, n, k, nullptr, [&](int64_t r, float* to) {
    for (int64_t i = 0; i < k; ++i) {
      const int64_t at = r * k + i;  // the first of a pair is in the high bits
      const uint8_t pair = c.value(1).data<uint8_t>()[at / 2];
      to[i] = table[at % 2 == 0 ? pair >> 4 : pair & 15] * scales.data<float>()[at / block];
    }
  });
}

// A table of codes: uint8 packs `each` of them into a byte along its last axis.
struct Table {
  Dims dims;  // of the codes
  int64_t block, bits, each, blocks;
  int gather, quantized;
  Value scales;
};
Result<Table> table_of(const Call& c) {
  const Value& data = c.value(0);
  Table t{data.dims, c.integer("block_size", 128), 8, 1, 0, 0, 0, {}};
  const int rank = data.rank();
  if (data.type == OnnxType::u8)
    t.bits = c.integer("bits", 4), t.each = 8 / std::max<int64_t>(1, t.bits);
  const bool known =
      data.type == OnnxType::u8 || data.type == OnnxType::u4 || data.type == OnnxType::i4;
  if (!known || (t.bits != 2 && t.bits != 4 && t.bits != 8))
    return c.not_done(cat("a table of ", onnx_type_name(data.type)));
  if (rank < 1 || t.block < 16) return c.bad("takes a table and a block_size of 16 or more");
  LOOM_ASSIGN(t.gather, c.axis(c.integer("gather_axis", 0), rank));
  LOOM_ASSIGN(t.quantized, c.axis(c.integer("quantize_axis", 1), rank));
  if (t.each > 1 && t.gather == rank - 1) return c.bad("gathers along the axis that is packed");
  t.dims.back() *= t.each;
  Dims blocks = t.dims;
  int64_t& own = blocks[static_cast<size_t>(t.quantized)];
  own = t.blocks = (own + t.block - 1) / t.block;
  LOOM_ASSIGN(t.scales, c.as(2, OnnxType::f32));
  if (t.scales.dims != blocks) return c.bad("scales that do not fit");
  return t;
}

// Code `i` of an input, less its zero point.
float table_code(const Value& v, const Table& t, int64_t i) {
  if (v.type == OnnxType::i4) return static_cast<float>(v.data<int8_t>()[i]);
  if (t.each == 1) return static_cast<float>(v.data<uint8_t>()[i]);
  const int64_t row = v.last() * t.each;  // of the codes, a row's last byte may be in part
  return static_cast<float>(code_at(v.data<uint8_t>() + i / row * v.last(), i % row, t.bits));
}

Status gather_block_quantized(const Call& c) {
  LOOM_ASSIGN(const Table t, table_of(c));
  LOOM_ASSIGN(const Dims at, c.int_list(1));
  const int64_t extent = t.dims[static_cast<size_t>(t.gather)];
  const int rank = static_cast<int>(t.dims.size());
  const int64_t inner = product(t.dims, t.gather + 1, rank), outer = product(t.dims, 0, t.gather);
  const int64_t inner_steps = product(t.dims, t.quantized + 1, rank);
  const int64_t along = t.dims[static_cast<size_t>(t.quantized)];
  Dims dims(t.dims.begin(), t.dims.begin() + t.gather);
  dims.insert(dims.end(), c.value(1).dims.begin(), c.value(1).dims.end());
  dims.insert(dims.end(), t.dims.begin() + t.gather + 1, t.dims.end());
  LOOM_ASSIGN(Value y, c.make(OnnxType::f32, dims));
  // Zero points that pack a row's last byte in part: their row is known by the scales.
  const int64_t zero_row = t.each == 1 ? 0 : (t.scales.last() + t.each - 1) / t.each;
  const bool fits = !c.has(3) || (c.value(3).type == c.value(0).type &&
                                  c.value(3).count() * (t.each == 1 ? 1 : t.scales.last()) ==
                                      t.scales.count() * (t.each == 1 ? 1 : zero_row));
  if (!fits) return c.bad("zero_points that do not fit");
  const auto zero = [&](int64_t s) {
    if (!c.has(3))
      return c.value(0).type == OnnxType::u8 ? static_cast<float>(1 << (t.bits - 1)) : 0;
    if (t.each == 1) return table_code(c.value(3), t, s);
    const int64_t wide = t.scales.last();
    return static_cast<float>(
        code_at(c.value(3).data<uint8_t>() + s / wide * zero_row, s % wide, t.bits));
  };
  const auto count = static_cast<int64_t>(at.size());
  for (int64_t r = 0; r < outer * count; ++r) {
    int64_t row = at[static_cast<size_t>(r % count)];
    row += row < 0 ? extent : 0;
    float* to = y.data<float>() + r * inner;
    std::fill_n(to, inner, 0.0F);  // where there is no such row
    for (int64_t i = 0; row >= 0 && row < extent && i < inner; ++i) {
      const int64_t from = (r / count * extent + row) * inner + i;
      const int64_t s =
          (from / (inner_steps * along) * t.blocks + from / inner_steps % along / t.block) *
              inner_steps +
          from % inner_steps;
      to[i] = (table_code(c.value(0), t, from) - zero(s)) * t.scales.data<float>()[s];
    }
  }
  return c.give_as(y, c.value(2).type);
}

constexpr Operator kBlockwise[] = {
    {kMs, "MatMulNBits", matmul_nbits,
     "aaa?aaa K N accuracy_level bits block_size weight_prepacked"},
    {kMs, "MatMulBnb4", matmul_bnb4, "aaa K N block_size quant_type training_mode transB"},
    {kMs, "GatherBlockQuantized", gather_block_quantized,
     "aaa?a bits block_size gather_axis quantize_axis"},
};

}  // namespace

std::span<const Operator> blockwise_operators() {
  return kBlockwise;
}

}  // namespace loom::core::evaluate
