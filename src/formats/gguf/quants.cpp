// Decoders of ggml's blocks. Every product and sum is one f32 operation, in the order of the
// reference, so that values agree bit for bit. Blocks are complete; their fields are read at fixed
// offsets within the table's `bytes`.
#include "formats/gguf/quants.hpp"

#include "base/numbers/bits.hpp"
#include "dtype/codecs/codec.hpp"

namespace loom::core {
namespace {

constexpr int kK = 256;  // values of a "K" block

int byte_at(const std::byte* block, int at) {
  return std::to_integer<int>(block[at]);
}
int signed_at(const std::byte* block, int at) {
  return static_cast<int8_t>(byte_at(block, at));
}
float half_at(const std::byte* block, int at) {
  return f32_from_f16(load_le<uint16_t>(block + at));
}
float real(int value) {
  return static_cast<float>(value);
}

// ---- one number each ----

template <class T>
void number(const std::byte* at, float* out) {
  *out = static_cast<float>(load_le<T>(at));
}
void number_f16(const std::byte* at, float* out) {
  *out = half_at(at, 0);
}
void number_bf16(const std::byte* at, float* out) {
  *out = f32_from_bits(static_cast<uint32_t>(load_le<uint16_t>(at)) << 16);
}

// ---- blocks of 32: codes j and j + 16 share a byte ----

void q4_0(const std::byte* b, float* out) {
  const float d = half_at(b, 0);
  for (int j = 0; j < 16; ++j) {
    out[j] = d * real((byte_at(b, 2 + j) & 15) - 8);
    out[j + 16] = d * real((byte_at(b, 2 + j) >> 4) - 8);
  }
}

void q4_1(const std::byte* b, float* out) {
  const float d = half_at(b, 0), m = half_at(b, 2);
  for (int j = 0; j < 16; ++j) {
    out[j] = d * real(byte_at(b, 4 + j) & 15) + m;
    out[j + 16] = d * real(byte_at(b, 4 + j) >> 4) + m;
  }
}

// Bit j of the mask at `high` is the fifth bit of code j.
int five_bits(const std::byte* b, int high, int low, int j) {
  const uint32_t bit = load_le<uint32_t>(b + high) >> j & 1u;
  const int pair = byte_at(b, low + j % 16);
  return (j < 16 ? pair & 15 : pair >> 4) | static_cast<int>(bit << 4);
}

void q5_0(const std::byte* b, float* out) {
  const float d = half_at(b, 0);
  for (int j = 0; j < 32; ++j) out[j] = d * real(five_bits(b, 2, 6, j) - 16);
}

void q5_1(const std::byte* b, float* out) {
  const float d = half_at(b, 0), m = half_at(b, 2);
  for (int j = 0; j < 32; ++j) out[j] = d * real(five_bits(b, 4, 8, j)) + m;
}

void q8_0(const std::byte* b, float* out) {
  const float d = half_at(b, 0);
  for (int j = 0; j < 32; ++j) out[j] = real(signed_at(b, 2 + j)) * d;
}

void iq4_nl(const std::byte* b, float* out) {
  static constexpr int8_t kLevels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                         1,    13,   25,  38,  53,  69,  89,  113};
  const float d = half_at(b, 0);
  for (int j = 0; j < 16; ++j) {
    out[j] = d * real(kLevels[byte_at(b, 2 + j) & 15]);
    out[j + 16] = d * real(kLevels[byte_at(b, 2 + j) >> 4]);
  }
}

// Levels are twice those of E2M1, so the scale is half of 2^(e - 127); 255 is a number here.
void mxfp4(const std::byte* b, float* out) {
  static constexpr int8_t kLevels[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  const auto e = std::to_integer<uint32_t>(b[0]);
  const float d = f32_from_bits(e < 2 ? uint32_t{0x00200000} << e : (e - 1) << 23);
  for (int j = 0; j < 16; ++j) {
    out[j] = d * real(kLevels[byte_at(b, 1 + j) & 15]);
    out[j + 16] = d * real(kLevels[byte_at(b, 1 + j) >> 4]);
  }
}

// ---- blocks of 256 ----

// Value i of `bits`-bit codes in runs of 32 bytes: each byte holds the codes of places
// j, j + 32, j + 64, ... of its run.
int strided(const std::byte* codes, int bits, int i) {
  const int per_run = 32 * (8 / bits);
  const int byte = i / per_run * 32 + i % 32;
  return byte_at(codes, byte) >> (i % per_run / 32 * bits) & ((1 << bits) - 1);
}

void q2_k(const std::byte* b, float* out) {
  const float d = half_at(b, 80), m = half_at(b, 82);
  for (int i = 0; i < kK; ++i) {
    const int scale = byte_at(b, i / 16);
    out[i] = d * real(scale & 15) * real(strided(b + 16, 2, i)) - m * real(scale >> 4);
  }
}

// Six-bit scale k of sixteen: four low bits in bytes 0-7, two high bits in bytes 8-11.
int q3_scale(const std::byte* scales, int k) {
  const int low = byte_at(scales, k % 8) >> (k / 8 * 4) & 15;
  const int high = byte_at(scales, 8 + k % 4) >> (k / 4 * 2) & 3;
  return (low | high << 4) - 32;
}

void q3_k(const std::byte* b, float* out) {
  const float d = half_at(b, 108);
  for (int i = 0; i < kK; ++i) {
    const int high = strided(b, 1, i);
    const int q = strided(b + 32, 2, i) - (high != 0 ? 0 : 4);
    out[i] = d * real(q3_scale(b + 96, i / 16)) * real(q);
  }
}

// Scale and minimum k of eight, six bits each, in twelve bytes (q4_K, q5_K).
struct ScaleMin {
  int scale, min;
};
ScaleMin scale_min(const std::byte* s, int k) {
  if (k < 4) return {byte_at(s, k) & 63, byte_at(s, k + 4) & 63};
  const int both = byte_at(s, k + 4);
  return {(both & 15) | (byte_at(s, k - 4) >> 2 & 48), both >> 4 | (byte_at(s, k) >> 2 & 48)};
}

void q4_k(const std::byte* b, float* out) {
  const float d = half_at(b, 0), m = half_at(b, 2);
  for (int k = 0; k < 8; ++k) {
    const ScaleMin s = scale_min(b + 4, k);
    const float step = d * real(s.scale), low = m * real(s.min);
    for (int i = 32 * k; i < 32 * k + 32; ++i) out[i] = step * real(strided(b + 16, 4, i)) - low;
  }
}

void q5_k(const std::byte* b, float* out) {
  const float d = half_at(b, 0), m = half_at(b, 2);
  for (int k = 0; k < 8; ++k) {
    const ScaleMin s = scale_min(b + 4, k);
    const float step = d * real(s.scale), low = m * real(s.min);
    for (int i = 32 * k; i < 32 * k + 32; ++i) {
      const int q = strided(b + 48, 4, i) | strided(b + 16, 1, i) << 4;
      out[i] = step * real(q) - low;
    }
  }
}

void q6_k(const std::byte* b, float* out) {
  const float d = half_at(b, 208);
  for (int i = 0; i < kK; ++i) {
    // Low nibbles are in runs of 64 bytes, high pairs in runs of 32.
    const int low = byte_at(b, i / 128 * 64 + i % 64) >> (i % 128 / 64 * 4) & 15;
    const int q = (low | strided(b + 128, 2, i) << 4) - 32;
    out[i] = d * real(signed_at(b, 192 + i / 16)) * real(q);
  }
}

// Five digits of base 3 in a byte, as the fraction byte / 256: digit n is the integer part of 3 *
// fraction(3^n * byte / 256).
int trit(int byte, int n) {
  static constexpr int kPower[5] = {1, 3, 9, 27, 81};
  return ((byte * kPower[n] & 255) * 3 >> 8) - 1;
}

void tq1_0(const std::byte* b, float* out) {
  const float d = half_at(b, 52);
  for (int i = 0; i < 160; ++i) out[i] = d * real(trit(byte_at(b, i % 32), i / 32));
  for (int i = 0; i < 80; ++i) out[160 + i] = d * real(trit(byte_at(b, 32 + i % 16), i / 16));
  for (int i = 0; i < 16; ++i) out[240 + i] = d * real(trit(byte_at(b, 48 + i % 4), i / 4));
}

void tq2_0(const std::byte* b, float* out) {
  const float d = half_at(b, 64);
  for (int i = 0; i < kK; ++i) out[i] = d * real(strided(b, 2, i) - 1);
}

template <void (*kBlock)(const std::byte*, float*), int kBytes, int kValues>
void run(const std::byte* blocks, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) kBlock(blocks + i * kBytes, out + i * kValues);
}

template <void (*kBlock)(const std::byte*, float*), int kBytes, int kValues = 1>
constexpr GgmlType type(uint32_t id, std::string_view name) {
  return {id, name, kValues, kBytes, run<kBlock, kBytes, kValues>};
}
constexpr GgmlType listed(uint32_t id, std::string_view name, uint32_t values, uint32_t bytes) {
  return {id, name, values, bytes, nullptr};
}

constexpr GgmlType kGgmlTypes[] = {
    type<number<float>, 4>(0, "F32"),    type<number_f16, 2>(1, "F16"),
    type<q4_0, 18, 32>(2, "Q4_0"),       type<q4_1, 20, 32>(3, "Q4_1"),
    type<q5_0, 22, 32>(6, "Q5_0"),       type<q5_1, 24, 32>(7, "Q5_1"),
    type<q8_0, 34, 32>(8, "Q8_0"),       listed(9, "Q8_1", 32, 36),
    type<q2_k, 84, kK>(10, "Q2_K"),      type<q3_k, 110, kK>(11, "Q3_K"),
    type<q4_k, 144, kK>(12, "Q4_K"),     type<q5_k, 176, kK>(13, "Q5_K"),
    type<q6_k, 210, kK>(14, "Q6_K"),     listed(15, "Q8_K", kK, 292),
    listed(16, "IQ2_XXS", kK, 66),       listed(17, "IQ2_XS", kK, 74),
    listed(18, "IQ3_XXS", kK, 98),       listed(19, "IQ1_S", kK, 50),
    type<iq4_nl, 18, 32>(20, "IQ4_NL"),  listed(21, "IQ3_S", kK, 110),
    listed(22, "IQ2_S", kK, 82),         listed(23, "IQ4_XS", kK, 136),
    type<number<int8_t>, 1>(24, "I8"),   type<number<int16_t>, 2>(25, "I16"),
    type<number<int32_t>, 4>(26, "I32"), type<number<int64_t>, 8>(27, "I64"),
    type<number<double>, 8>(28, "F64"),  listed(29, "IQ1_M", kK, 56),
    type<number_bf16, 2>(30, "BF16"),    type<tq1_0, 54, kK>(34, "TQ1_0"),
    type<tq2_0, 66, kK>(35, "TQ2_0"),    type<mxfp4, 17, 32>(39, "MXFP4"),
    listed(40, "NVFP4", 64, 36),
};

}  // namespace

std::span<const GgmlType> ggml_types() {
  return kGgmlTypes;
}

const GgmlType* find_ggml_type(uint32_t id) {
  for (const GgmlType& type : kGgmlTypes)
    if (type.id == id) return &type;
  return nullptr;
}

const GgmlType* find_ggml_type(std::string_view name) {
  for (const GgmlType& type : kGgmlTypes)
    if (type.name == name) return &type;
  return nullptr;
}

}  // namespace loom::core
