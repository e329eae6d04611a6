#include "io/arrays/array.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/numbers/bits.hpp"
#include "base/numbers/checked.hpp"
#include "base/text.hpp"
#include "dtype/codecs/codec.hpp"
#include "io/bytes/byte_reader.hpp"

namespace loom::core {
namespace {

struct Row {
  std::string_view name;
  uint64_t bytes;
  double (*value)(const std::byte*);
};

template <class T>
double number(const std::byte* p) {
  return static_cast<double>(load_le<T>(p));
}
double truth(const std::byte* p) {
  return load_le<uint8_t>(p) != 0 ? 1.0 : 0.0;
}
double half(const std::byte* p) {
  return static_cast<double>(f32_from_f16(load_le<uint16_t>(p)));
}
double brain(const std::byte* p) {
  return static_cast<double>(f32_from_bf16(load_le<uint16_t>(p)));
}

// In the order of ElementType.
constexpr Row kRows[] = {
    {"bool", 1, truth},          {"u8", 1, number<uint8_t>},
    {"i8", 1, number<int8_t>},   {"u16", 2, number<uint16_t>},
    {"i16", 2, number<int16_t>}, {"u32", 4, number<uint32_t>},
    {"i32", 4, number<int32_t>}, {"u64", 8, number<uint64_t>},
    {"i64", 8, number<int64_t>}, {"f16", 2, half},
    {"bf16", 2, brain},          {"f32", 4, number<float>},
    {"f64", 8, number<double>},
};

const Row& row_of(ElementType type) {
  return kRows[static_cast<size_t>(type)];
}

// Value i; the bytes of a big-endian one are swapped first.
double value_at(const ArrayView& a, const Row& row, int64_t i) {
  const std::byte* p = a.data.data() + static_cast<uint64_t>(i) * row.bytes;
  if (!a.big_endian || row.bytes == 1) return row.value(p);
  std::array<std::byte, 8> swapped{};
  std::reverse_copy(p, p + row.bytes, swapped.begin());
  return row.value(swapped.data());
}

Error value_error(const ArrayView& a, int64_t i, std::string_view what) {
  const uint64_t at = a.file_offset + static_cast<uint64_t>(i) * row_of(a.type).bytes;
  const int64_t first = a.shape.empty() ? 1 : std::max<int64_t>(a.shape[0], 1);
  const int64_t each = std::max<int64_t>(a.count() / first, 1);
  return bad_file(cat("sample ", i / each, ", value ", i % each, " ", what), a.where,
                  static_cast<int64_t>(at));
}

}  // namespace

uint64_t element_bytes(ElementType type) {
  return row_of(type).bytes;
}
std::string_view element_name(ElementType type) {
  return row_of(type).name;
}

int64_t ArrayView::count() const {
  return static_cast<int64_t>(data.size() / element_bytes(type));
}

std::string ArrayView::shape_text() const {
  std::string text;
  for (const int64_t n : shape) text += cat(text.empty() ? "" : ", ", n);
  return "[" + text + "]";
}

std::optional<uint64_t> array_bytes(const std::vector<int64_t>& shape, ElementType type) {
  uint64_t bytes = element_bytes(type);
  for (const int64_t n : shape) {
    if (n < 0 || !checked_mul(bytes, static_cast<uint64_t>(n), bytes)) return {};
  }
  return bytes;
}

Status take_data(ArrayView& array, ByteReader& reader) {
  const auto size = array_bytes(array.shape, array.type);
  if (!size.has_value() || *size != reader.remaining()) {
    const std::string expected =
        size.has_value() ? cat(" takes ", *size, " bytes, ") : " is too large, ";
    return reader.error(cat("an array ", array.shape_text(), " of ", element_name(array.type),
                            expected, reader.remaining(), " remain"));
  }
  LOOM_ASSIGN(array.data, reader.take(*size, "the data"));
  return {};
}

void from_fortran_order(ArrayView& array) {
  const size_t each = element_bytes(array.type), axes = array.shape.size();
  const int64_t count = array.count();
  auto own = std::make_shared<std::vector<std::byte>>(array.data.size());
  std::vector<int64_t> index(axes, 0), step(axes, 1);
  for (size_t a = 1; a < axes; ++a) step[a] = step[a - 1] * array.shape[a - 1];
  int64_t from = 0;
  for (int64_t to = 0; to < count; ++to) {
    std::copy_n(array.data.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(from) * each),
                each, own->begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(to) * each));
    for (size_t a = axes; a-- > 0;) {
      from += step[a];
      if (++index[a] < array.shape[a]) break;
      from -= step[a] * array.shape[a];
      index[a] = 0;
    }
  }
  array.data = *own;
  array.own = std::move(own);
}

Result<uint64_t> stated_size(const ArrayView& array, const ByteReader& reader) {
  const auto size = array_bytes(array.shape, array.type);
  uint64_t end = 0;
  if (size.has_value() && checked_add(*size, reader.offset(), end)) return end;
  return reader.error(cat("an array ", array.shape_text(), " of ", element_name(array.type),
                          " is too large for any memory"));
}

Result<std::vector<float>> array_f32(const ArrayView& array, float scale) {
  const Row& row = row_of(array.type);
  std::vector<float> values(static_cast<size_t>(array.count()));
  for (int64_t i = 0; i < array.count(); ++i) {
    const float value = static_cast<float>(value_at(array, row, i)) * scale;
    if (!std::isfinite(value)) return value_error(array, i, "is not finite");
    values[static_cast<size_t>(i)] = value;
  }
  return values;
}

Result<std::vector<int32_t>> array_i32(const ArrayView& array) {
  const Row& row = row_of(array.type);
  std::vector<int32_t> values(static_cast<size_t>(array.count()));
  for (int64_t i = 0; i < array.count(); ++i) {
    const double value = value_at(array, row, i);
    const bool fits = value >= -2147483648.0 && value <= 2147483647.0;
    if (!fits || value != std::floor(value)) return value_error(array, i, "is not an integer");
    values[static_cast<size_t>(i)] = static_cast<int32_t>(value);
  }
  return values;
}

}  // namespace loom::core
