#include "backend/webgpu/kernels/attention/cache.hpp"

namespace loom::core::webgpu {
namespace {

constexpr std::string_view kBase = "var<private> cache_base: u32;\n";

constexpr std::string_view kFloatCache = R"(
fn key_number(i: u32) -> f32 { return keys_at(cache_base + i); }
fn value_number(i: u32) -> f32 { return values_at(cache_base + i); }
fn as_kept(x: f32) -> f32 { return x; }
)";

constexpr std::string_view kKeepFloats = R"(
fn keep_key(i: u32, x: f32) { keys_set(cache_base + i, x); }
fn keep_values(i: u32, x: f32, y: f32) {
  values_set(cache_base + i, x);
  values_set(cache_base + i + 1u, y);
}
)";

// Codes are rounded to nearest even in integers, because the rounding of WGSL's own conversion
// depends on the device.
constexpr std::string_view kF16 = R"(
fn half_code(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  let a = bits & 0x7fffffffu;
  let sign = (bits >> 16u) & 0x8000u;
  if (a >= 0x477ff000u) { return sign | select(0x7c00u, 0x7e00u, a > 0x7f800000u); }
  if (a >= 0x38800000u) {
    let t = a - 0x38000000u;
    return sign | ((t + 0xfffu + ((t >> 13u) & 1u)) >> 13u);
  }
  let shift = 126u - (a >> 23u);
  if (shift > 24u) { return sign; }
  let m = (a & 0x7fffffu) | 0x800000u;
  let code = m >> shift;
  let rest = m & ((1u << shift) - 1u);
  let tie = 1u << (shift - 1u);
  return sign | (code + u32(rest > tie || (rest == tie && (code & 1u) == 1u)));
}
fn half_value(code: u32) -> f32 { return unpack2x16float(code).x; }
)";

constexpr std::string_view kBF16 = R"(
fn half_code(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) { return (bits >> 16u) | 0x40u; }
  return (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
}
fn half_value(code: u32) -> f32 { return bitcast<f32>(code << 16u); }
)";

constexpr std::string_view kHalfCache = R"(
fn half_of(word: u32, i: u32) -> f32 { return half_value((word >> (i % 2u * 16u)) & 0xffffu); }
fn key_number(i: u32) -> f32 { return half_of(keys_word(cache_base + i / 2u), i); }
fn value_number(i: u32) -> f32 { return half_of(values_word(cache_base + i / 2u), i); }
fn as_kept(x: f32) -> f32 { return half_value(half_code(x)); }
fn with_half(word: u32, i: u32, x: f32) -> u32 {
  let shift = i % 2u * 16u;
  return (word & (0xffff0000u >> shift)) | (half_code(x) << shift);
}
)";

constexpr std::string_view kKeepHalves = R"(
fn keep_key(i: u32, x: f32) {
  let word = cache_base + i / 2u;
  keys_put(word, with_half(keys_word(word), i, x));
}
fn keep_values(i: u32, x: f32, y: f32) {
  values_put(cache_base + i / 2u, half_code(x) | (half_code(y) << 16u));
}
)";

// Blocks of 32 with a step each. Step i of keys belongs to numbers i / 16 * 512 + i % 16 + 16 n.
constexpr std::string_view kByteCache = R"(
fn number_of(word: u32, i: u32, steps: u32, s: u32) -> f32 {
  let code = i32(word << (24u - i % 4u * 8u)) >> 24u;
  return f32(code) * half_value((steps >> (s % 2u * 16u)) & 0xffffu);
}
fn key_number(i: u32) -> f32 {
  let s = i / 512u * 16u + i % 16u;
  return number_of(keys_word(cache_base + i / 4u), i,
                   keys_word(cache_base + p.steps_at + s / 2u), s);
}
fn value_number(i: u32) -> f32 {
  let s = i / 32u;
  return number_of(values_word(cache_base + i / 4u), i,
                   values_word(cache_base + p.steps_at + s / 2u), s);
}
fn as_kept(x: f32) -> f32 { return x; }
)";

}  // namespace

bool reads_cache(const KvCache& cache) {
  const bool half = cache.dtype == DType::f16 || cache.dtype == DType::bf16;
  const bool bytes = cache.dtype == DType::q8_0 && cache.head_dim % 32 == 0;
  return cache.dtype == DType::f32 || (half && cache.head_dim % 2 == 0) || bytes;
}

Call& cache_numbers(Call& call, const KvCache& cache, Access access) {
  call.text(kBase);
  if (cache.dtype == DType::f32) {
    call.floats("keys", cache.f32_keys(), access).floats("values", cache.f32_values(), access);
    call.text(kFloatCache);
    return access == Access::read ? call : call.text(kKeepFloats);
  }
  call.words("keys", cache.keys, access).words("values", cache.values, access);
  if (dtype_info(cache.dtype).block > 0)
    return call.text(kF16).text(kByteCache).value("steps_at", cache.sequence_numbers() / 4);
  call.text(cache.dtype == DType::f16 ? kF16 : kBF16).text(kHalfCache);
  return access == Access::read ? call : call.text(kKeepHalves);
}

}  // namespace loom::core::webgpu
