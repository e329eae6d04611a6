// GGUF blocks of 32 values, byte for byte as ggml's reference quantizers write them. q4_0 pairs
// value j with j + 16 in one byte, q8_0 holds signed bytes, both after an f16 scale. Products and
// sums are rounded separately, as in ggml's C code. A ggml built with FMA contraction may differ by
// one code if a value is on a rounding boundary.
#include <cstring>

#include "base/numbers/bits.hpp"
#include "dtype/elements.hpp"
#include "dtype/scale.hpp"

namespace loom::core {
namespace {

constexpr int kValues = 32;
constexpr int kHeader = 2;

// Writes the scale and returns the factor that turns values into codes.
float begin_block(DType dtype, const float* x, std::byte* block) {
  const BlockScale b = block_scale(dtype_info(dtype), x, kValues, 0.0f);
  const auto d = static_cast<uint16_t>(b.stored);
  std::memcpy(block, &d, sizeof(d));
  return static_cast<float>(b.scale.inv);
}

}  // namespace

void encode_block_q4_0(const float* x, std::byte* block) {
  const float inv = begin_block(DType::q4_0, x, block);
  for (int j = 0; j < kValues / 2; ++j) {
    const int low = gguf_code<4>(x[j] * inv);
    const int high = gguf_code<4>(x[j + kValues / 2] * inv);
    block[kHeader + j] = static_cast<std::byte>(low | high << 4);
  }
}

void encode_block_q8_0(const float* x, std::byte* block) {
  const float inv = begin_block(DType::q8_0, x, block);
  for (int j = 0; j < kValues; ++j) {
    block[kHeader + j] = static_cast<std::byte>(gguf_code_q8(x[j] * inv) ^ 0x80);  // bias 128 off
  }
}

void decode_block_q4_0(const std::byte* block, float* x) {
  const float d = f32_from_f16(load_le<uint16_t>(block));
  for (int j = 0; j < kValues / 2; ++j) {
    const int pair = std::to_integer<int>(block[kHeader + j]);
    x[j] = static_cast<float>((pair & 15) - 8) * d;
    x[j + kValues / 2] = static_cast<float>((pair >> 4) - 8) * d;
  }
}

void decode_block_q8_0(const std::byte* block, float* x) {
  const float d = f32_from_f16(load_le<uint16_t>(block));
  for (int j = 0; j < kValues; ++j) {
    x[j] = static_cast<float>(static_cast<int8_t>(block[kHeader + j])) * d;
  }
}

}  // namespace loom::core
