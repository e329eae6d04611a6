#include "io/arrays/idx.hpp"

#include "base/text.hpp"
#include "io/bytes/byte_reader.hpp"

namespace loom::core {
namespace {

constexpr int kMaxAxes = 8;

Result<ElementType> type_of(uint8_t code, const ByteReader& reader) {
  switch (code) {
    case 0x08: return ElementType::u8;
    case 0x09: return ElementType::i8;
    case 0x0B: return ElementType::i16;
    case 0x0C: return ElementType::i32;
    case 0x0D: return ElementType::f32;
    case 0x0E: return ElementType::f64;
    default:
      return reader.error(cat("unknown type code ", static_cast<int>(code), " of an IDX file"));
  }
}

// Reads everything but the data.
Result<ArrayView> read_header(ByteReader& reader, const std::string& where) {
  LOOM_ASSIGN(const uint16_t zeros, reader.u16("the IDX magic number"));
  if (zeros != 0) return bad_file("not an IDX file: it must begin with two zero bytes", where, 0);
  ArrayView array;
  array.where = where;
  array.big_endian = true;
  const ByteReader at_type = reader;
  LOOM_ASSIGN(const uint8_t code, reader.u8("the IDX type"));
  LOOM_ASSIGN(array.type, type_of(code, at_type));
  const ByteReader at_axes = reader;
  LOOM_ASSIGN(const uint8_t axes, reader.u8("the number of axes"));
  if (axes < 1 || axes > kMaxAxes)
    return at_axes.error(cat(static_cast<int>(axes), " axes, must be 1 to ", kMaxAxes));
  for (int i = 0; i < axes; ++i) {
    LOOM_ASSIGN(const uint32_t extent, reader.u32("an extent"));
    array.shape.push_back(static_cast<int64_t>(__builtin_bswap32(extent)));
  }
  array.file_offset = reader.offset();
  return array;
}

}  // namespace

bool is_idx(std::span<const std::byte> bytes) {
  return bytes.size() >= 4 && bytes[0] == std::byte{0} && bytes[1] == std::byte{0} &&
         bytes[2] >= std::byte{0x08} && bytes[2] <= std::byte{0x0E};
}

Result<uint64_t> idx_size(std::span<const std::byte> head, const std::string& where) {
  ByteReader reader(head, where);
  LOOM_ASSIGN(const ArrayView array, read_header(reader, where));
  return stated_size(array, reader);
}

Result<ArrayView> parse_idx(std::span<const std::byte> bytes, const std::string& where) {
  ByteReader reader(bytes, where);
  LOOM_ASSIGN(ArrayView array, read_header(reader, where));
  LOOM_TRY(take_data(array, reader));
  return array;
}

}  // namespace loom::core
