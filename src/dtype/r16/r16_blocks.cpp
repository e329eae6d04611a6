// GGUF stores the fields of a block consecutively; R16 stores those of sixteen rows together, and
// the codes in runs of four values. A table gives the location of each field in GGUF. Both number
// levels alike, except q8_0, which is signed in GGUF and has a bias of 128 here. Source: the
// structs of ggml-common.h of ggml.
#include "dtype/r16/r16_blocks.hpp"

#include <cstring>

#include "base/numbers/bits.hpp"
#include "dtype/codecs/super_block.hpp"

namespace loom::core {
namespace {

// Bits of the codes: each run of bytes holds the codes of `run` values in its lowest `bits`, those
// of the next `run` values above them, and so on.
struct Plane {
  int at = 0, bits = 0, run = 0;
};

// How the small integers of a super-block are stored.
enum class Smalls : uint8_t { none, nibbles, sixes, pairs, bytes };

struct Form {
  DType dtype;
  int bytes;
  int scale_at, scale_bytes;
  int argmin_of;  // -1 if there is none
  Plane low, high;
  Smalls smalls = Smalls::none;
  int smalls_at = 0;
};

constexpr Form kForms[] = {
    {DType::q4_0, 18, 0, 2, -1, {2, 4, 16}, {}},
    {DType::q4_1, 20, 0, 2, 2, {4, 4, 16}, {}},
    {DType::q5_0, 22, 0, 2, -1, {6, 4, 16}, {2, 1, 1}},
    {DType::q5_1, 24, 0, 2, 2, {8, 4, 16}, {4, 1, 1}},
    {DType::q8_0, 34, 0, 2, -1, {2, 8, 32}, {}},
    {DType::mxfp4, 17, 0, 1, -1, {1, 4, 16}, {}},
    {DType::q2_k, 84, 80, 2, 82, {16, 2, 32}, {}, Smalls::nibbles, 0},
    {DType::q3_k, 110, 108, 2, -1, {32, 2, 32}, {0, 1, 32}, Smalls::sixes, 96},
    {DType::q4_k, 144, 0, 2, 2, {16, 4, 32}, {}, Smalls::pairs, 4},
    {DType::q5_k, 176, 0, 2, 2, {48, 4, 32}, {16, 1, 32}, Smalls::pairs, 4},
    {DType::q6_k, 210, 208, 2, -1, {0, 4, 64}, {128, 2, 32}, Smalls::bytes, 192},
};

const Form* form_of(DType dtype) {
  for (const Form& form : kForms)
    if (form.dtype == dtype) return &form;
  return nullptr;
}

int byte_at(const std::byte* block, int at) {
  return std::to_integer<int>(block[at]);
}

// ---- small integers ----

void read_smalls(const Form& form, const std::byte* s, BlockFields& f) {
  switch (form.smalls) {
    case Smalls::none: return;
    case Smalls::nibbles:
      for (int k = 0; k < 16; ++k) {
        f.small_scales[k] = static_cast<int8_t>(byte_at(s, k) & 15);
        f.small_leasts[k] = static_cast<uint8_t>(byte_at(s, k) >> 4);
      }
      return;
    case Smalls::sixes:  // four low bits in bytes 0 to 7, two high bits in bytes 8 to 11
      for (int k = 0; k < 16; ++k) {
        const int low = byte_at(s, k % 8) >> (k / 8 * 4) & 15;
        const int high = byte_at(s, 8 + k % 4) >> (k / 4 * 2) & 3;
        f.small_scales[k] = static_cast<int8_t>((low | high << 4) - 32);
      }
      return;
    case Smalls::pairs:  // the first four whole, the high bits of the others above those
      for (int k = 0; k < 4; ++k) {
        const int a = byte_at(s, k), b = byte_at(s, k + 4), both = byte_at(s, k + 8);
        f.small_scales[k] = static_cast<int8_t>(a & 63);
        f.small_leasts[k] = static_cast<uint8_t>(b & 63);
        f.small_scales[k + 4] = static_cast<int8_t>((both & 15) | (a >> 2 & 48));
        f.small_leasts[k + 4] = static_cast<uint8_t>(both >> 4 | (b >> 2 & 48));
      }
      return;
    case Smalls::bytes:
      for (int k = 0; k < 16; ++k) f.small_scales[k] = static_cast<int8_t>(s[k]);
      return;
  }
}

// `s` is all zeros.
void write_smalls(const Form& form, const BlockFields& f, std::byte* s) {
  const auto put = [&](int at, int bits) { s[at] |= static_cast<std::byte>(bits); };
  switch (form.smalls) {
    case Smalls::none: return;
    case Smalls::nibbles:
      for (int k = 0; k < 16; ++k) put(k, f.small_scales[k] | f.small_leasts[k] << 4);
      return;
    case Smalls::sixes:
      for (int k = 0; k < 16; ++k) {
        const int six = f.small_scales[k] + 32;
        put(k % 8, (six & 15) << (k / 8 * 4));
        put(8 + k % 4, six >> 4 << (k / 4 * 2));
      }
      return;
    case Smalls::pairs:
      for (int k = 0; k < 4; ++k) {
        const int scale = f.small_scales[k + 4], least = f.small_leasts[k + 4];
        put(k, f.small_scales[k] | scale >> 4 << 6);
        put(k + 4, f.small_leasts[k] | least >> 4 << 6);
        put(k + 8, (scale & 15) | (least & 15) << 4);
      }
      return;
    case Smalls::bytes:
      for (int k = 0; k < 16; ++k) s[k] = static_cast<std::byte>(f.small_scales[k]);
      return;
  }
}

bool smalls_fit(const DTypeInfo& info, const BlockFields& f) {
  if (info.super_block == 0) return true;
  const IntRange range = small_scale_range(info);
  for (int b = 0; b < info.super_block / info.block; ++b) {
    if (f.small_scales[b] < range.lo || f.small_scales[b] > range.hi) return false;
    if (info.shifted() && f.small_leasts[b] > range.hi) return false;
  }
  return true;
}

// ---- codes ----

// Calls fn(byte, shift, value) for each value of a plane.
template <class Fn>
void for_plane(const Plane& p, int values, Fn&& fn) {
  for (int value = 0, byte = p.at; p.bits > 0 && value < values; byte += p.run) {
    for (int shift = 0; shift < 8; shift += p.bits) {
      for (int j = 0; j < p.run; ++j) fn(byte + j, shift, value++);
    }
  }
}

void read_plane(const Plane& p, int to, int values, const std::byte* block, uint8_t* codes) {
  const int mask = (1 << p.bits) - 1;
  for_plane(p, values, [&](int byte, int shift, int value) {
    codes[value] =
        static_cast<uint8_t>(codes[value] | (byte_at(block, byte) >> shift & mask) << to);
  });
}

void write_plane(const Plane& p, int from, int values, const uint8_t* codes, std::byte* block) {
  const int mask = (1 << p.bits) - 1;
  for_plane(p, values, [&](int byte, int shift, int value) {
    block[byte] |= static_cast<std::byte>((codes[value] >> from & mask) << shift);
  });
}

// Converts between signed bytes and bytes with a bias of 128.
void flip_bytes(const Form& form, int values, uint8_t* codes) {
  for (int i = 0; form.low.bits == 8 && i < values; ++i) codes[i] ^= 0x80;
}

uint32_t number_at(const std::byte* at, int bytes) {
  uint32_t value = 0;
  std::memcpy(&value, at, static_cast<size_t>(bytes));
  return value;
}

void read_block(const Form& form, int values, const std::byte* block, BlockFields& f) {
  f.scale = number_at(block + form.scale_at, form.scale_bytes);
  if (form.argmin_of >= 0) f.least = number_at(block + form.argmin_of, 2);
  read_smalls(form, block + form.smalls_at, f);
  std::memset(f.codes, 0, static_cast<size_t>(values));
  read_plane(form.low, 0, values, block, f.codes);
  read_plane(form.high, form.low.bits, values, block, f.codes);
  flip_bytes(form, values, f.codes);
}

void write_block(const Form& form, int values, BlockFields& f, std::byte* block) {
  std::memset(block, 0, static_cast<size_t>(form.bytes));
  std::memcpy(block + form.scale_at, &f.scale, static_cast<size_t>(form.scale_bytes));
  if (form.argmin_of >= 0) std::memcpy(block + form.argmin_of, &f.least, 2);
  write_smalls(form, f, block + form.smalls_at);
  flip_bytes(form, values, f.codes);
  write_plane(form.low, 0, values, f.codes, block);
  write_plane(form.high, form.low.bits, values, f.codes, block);
}

}  // namespace

int64_t gguf_block_bytes(DType dtype) {
  const Form* form = form_of(dtype);
  return form == nullptr ? 0 : form->bytes;
}

int64_t gguf_block_values(DType dtype) {
  return form_of(dtype) == nullptr ? 0 : block_values(dtype_info(dtype));
}

bool r16_put_blocks(const R16& g, const std::byte* blocks, int64_t row, std::byte* matrix) {
  const Form& form = *form_of(g.dtype);
  const int values = block_values(dtype_info(g.dtype));
  std::byte* group = matrix + row / kR16Rows * g.group_bytes;
  BlockFields fields;
  for (int64_t b = 0; b < g.cols / values; ++b, blocks += form.bytes) {
    if (form.scale_bytes == 1 && blocks[0] == std::byte{255}) return false;
    read_block(form, values, blocks, fields);
    put_fields(g, fields, row % kR16Rows, b, group);
  }
  if (row + 1 < g.rows) return true;
  // Absent rows get the same bytes as in packing.
  for (int64_t absent = row + 1; absent % kR16Rows != 0; ++absent)
    r16_pack_row(g, nullptr, absent, nullptr, matrix);
  return true;
}

bool r16_get_blocks(const R16& g, const std::byte* matrix, int64_t row, std::byte* blocks) {
  const Form& form = *form_of(g.dtype);
  const DTypeInfo& info = dtype_info(g.dtype);
  const int values = block_values(info);
  const std::byte* group = matrix + row / kR16Rows * g.group_bytes;
  BlockFields fields;
  for (int64_t b = 0; b < g.cols / values; ++b, blocks += form.bytes) {
    get_fields(g, group, row % kR16Rows, b, fields);
    if (!smalls_fit(info, fields)) return false;
    write_block(form, values, fields, blocks);
  }
  return true;
}

}  // namespace loom::core
