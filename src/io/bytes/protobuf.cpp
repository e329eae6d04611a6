// See protobuf.hpp. Invariant: a nested reader ends at the end of its field, which is inside the
// enclosing message. So no message reads a byte of another.
#include "io/bytes/protobuf.hpp"

#include "base/numbers/bits.hpp"
#include "base/text.hpp"
#include "io/bytes/utf8.hpp"

namespace loom::core {
namespace {

constexpr uint64_t kMaxFieldNumber = (uint64_t{1} << 29) - 1;

// At most ten bytes, seven bits each; the tenth holds one bit.
Result<uint64_t> read_varint(ByteReader& reader, std::string_view what) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    LOOM_ASSIGN(const uint8_t byte, reader.u8(what));
    if (shift == 63 && byte > 1) break;
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  return reader.error(cat(what, ": a varint of more than 64 bits"));
}

std::string_view wire_name(WireType wire) {
  switch (wire) {
    case WireType::varint: return "a varint";
    case WireType::fixed64: return "8 bytes";
    case WireType::bytes: return "a string or message";
    case WireType::fixed32: return "4 bytes";
  }
  return "";
}

}  // namespace

ProtoReader::ProtoReader(std::span<const std::byte> file, const std::string& where,
                         std::string_view message)
    : ProtoReader(file, where, message, 0, file.size(), 1) {}

ProtoReader::ProtoReader(std::span<const std::byte> file, const std::string& where,
                         std::string_view message, uint64_t begin, uint64_t end, int depth)
    : file_(file),
      where_(where),
      message_(message),
      begin_(begin),
      depth_(depth),
      reader_(file.first(static_cast<size_t>(end)), where) {
  (void)reader_.skip(begin, "message");  // begin <= end: both are of a field that was read
}

Error ProtoReader::error(const ProtoField& field, std::string_view what,
                         std::string_view message) const {
  return bad_file(cat(message_, ".", what, ": ", message), where_,
                  static_cast<int64_t>(field.offset));
}

Error ProtoReader::error(std::string_view message) const {
  return bad_file(cat(message_, ": ", message), where_, static_cast<int64_t>(begin_));
}

// A field is a varint, number << 3 | wire type, and then data of that wire type. Fields come in any
// order. Unused fields are parsed too, to find their end
// (protobuf.dev/programming-guides/encoding).
Result<ProtoField> ProtoReader::next() {
  ProtoField field;
  field.offset = reader_.offset();
  LOOM_ASSIGN(const uint64_t key, read_varint(reader_, message_));
  const uint64_t number = key >> 3, wire = key & 7;
  if (number == 0 || number > kMaxFieldNumber)
    return bad_file(cat(message_, ": field number ", number, " cannot be"), where_,
                    static_cast<int64_t>(field.offset));
  field.number = static_cast<uint32_t>(number);
  const std::string what = cat(message_, ": field ", number);
  switch (wire) {
    case 0: {
      LOOM_ASSIGN(field.value, read_varint(reader_, what));
      break;
    }
    case 1: {
      LOOM_ASSIGN(field.value, reader_.u64(what));
      break;
    }
    case 2: {
      LOOM_ASSIGN(const uint64_t size, read_varint(reader_, what));
      field.begin = reader_.offset();
      LOOM_ASSIGN(field.bytes, reader_.take(size, what));
      break;
    }
    case 5: {
      LOOM_ASSIGN(field.value, reader_.u32(what));
      break;
    }
    default:
      return bad_file(cat(what, wire == 3 || wire == 4 ? " is a group, which is not read"
                                                       : " has a wire type that does not exist"),
                      where_, static_cast<int64_t>(field.offset));
  }
  field.wire = static_cast<WireType>(wire);
  return field;
}

Status ProtoReader::want(const ProtoField& field, WireType wire, std::string_view what) const {
  if (field.wire == wire) return {};
  return error(field, what, cat("expected ", wire_name(wire), ", found ", wire_name(field.wire)));
}

Result<ProtoReader> ProtoReader::enter(const ProtoField& field, std::string_view message) const {
  LOOM_TRY(want(field, WireType::bytes, message));
  if (depth_ >= kMaxDepth)
    return error(field, message, cat("nested deeper than ", kMaxDepth, " messages"));
  return ProtoReader(file_, where_, message, field.begin, field.begin + field.bytes.size(),
                     depth_ + 1);
}

// Negative numbers are written as 64 bits, even those of an int32: ten bytes, without zigzag.
Result<int64_t> ProtoReader::integer(const ProtoField& field, std::string_view what) const {
  LOOM_TRY(want(field, WireType::varint, what));
  return static_cast<int64_t>(field.value);
}

Result<float> ProtoReader::f32(const ProtoField& field, std::string_view what) const {
  LOOM_TRY(want(field, WireType::fixed32, what));
  return f32_from_bits(static_cast<uint32_t>(field.value));
}

Result<std::span<const std::byte>> ProtoReader::bytes(const ProtoField& field,
                                                      std::string_view what) const {
  LOOM_TRY(want(field, WireType::bytes, what));
  return field.bytes;
}

Result<std::string> ProtoReader::text(const ProtoField& field, std::string_view what) const {
  LOOM_TRY(want(field, WireType::bytes, what));
  if (field.bytes.size() > kMaxText)
    return error(field, what, cat("a string of more than ", kMaxText, " bytes"));
  const std::string text(reinterpret_cast<const char*>(field.bytes.data()), field.bytes.size());
  // Names go into messages and into our own files, which are both UTF-8.
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(std::string_view(text).substr(at));
    if (length == 0) return error(field, what, "invalid UTF-8");
    at += length;
  }
  return text;
}

// Most writers pack repeated numbers into one field; others write one per field. A reader accepts
// both, also mixed. So it appends to `out`, and `most` includes the former content.
Status ProtoReader::integers(const ProtoField& field, std::string_view what, size_t most,
                             std::vector<int64_t>& out) const {
  const auto full = [&] { return error(field, what, cat("more than ", most, " values")); };
  if (field.wire != WireType::bytes) {
    LOOM_ASSIGN(const int64_t value, integer(field, what));
    if (out.size() >= most) return full();
    out.push_back(value);
    return {};
  }
  ByteReader packed(file_.first(static_cast<size_t>(field.begin + field.bytes.size())), where_);
  LOOM_TRY(packed.skip(field.begin, what));
  while (packed.remaining() > 0) {
    LOOM_ASSIGN(const uint64_t value, read_varint(packed, what));
    if (out.size() >= most) return full();
    out.push_back(static_cast<int64_t>(value));
  }
  return {};
}

template <class T, class Bits>
Status ProtoReader::fixed(const ProtoField& field, WireType wire, std::string_view what,
                          size_t most, std::vector<T>& out) const {
  const auto full = [&] { return error(field, what, cat("more than ", most, " values")); };
  if (field.wire != WireType::bytes) {
    LOOM_TRY(want(field, wire, what));
    if (out.size() >= most) return full();
    out.push_back(bit_cast<T>(static_cast<Bits>(field.value)));
    return {};
  }
  if (field.bytes.size() % sizeof(T) != 0)
    return error(
        field, what,
        cat(field.bytes.size(), " bytes are not a multiple of ", sizeof(T), "-byte values"));
  const size_t count = field.bytes.size() / sizeof(T);
  // Checked before memory is allocated for them.
  if (out.size() > most || count > most - out.size()) return full();
  out.reserve(out.size() + count);
  for (size_t i = 0; i < count; ++i)
    out.push_back(load_le<T>(field.bytes.subspan(i * sizeof(T), sizeof(T)).data()));
  return {};
}

Status ProtoReader::floats(const ProtoField& field, std::string_view what, size_t most,
                           std::vector<float>& out) const {
  return fixed<float, uint32_t>(field, WireType::fixed32, what, most, out);
}

Status ProtoReader::doubles(const ProtoField& field, std::string_view what, size_t most,
                            std::vector<double>& out) const {
  return fixed<double, uint64_t>(field, WireType::fixed64, what, most, out);
}

void ProtoWriter::varint(uint64_t value) {
  for (; value >= 0x80; value >>= 7) out_.push_back(static_cast<char>(value | 0x80));
  out_.push_back(static_cast<char>(value));
}

void ProtoWriter::key(uint32_t number, WireType wire) {
  varint(uint64_t{number} << 3 | static_cast<uint64_t>(wire));
}

void ProtoWriter::integer(uint32_t number, int64_t value) {
  key(number, WireType::varint);
  varint(static_cast<uint64_t>(value));
}

void ProtoWriter::f32(uint32_t number, float value) {
  key(number, WireType::fixed32);
  const uint32_t bits = f32_bits(value);
  out_.append(reinterpret_cast<const char*>(&bits), 4);
}

void ProtoWriter::f64(uint32_t number, double value) {
  key(number, WireType::fixed64);
  const auto bits = bit_cast<uint64_t>(value);
  out_.append(reinterpret_cast<const char*>(&bits), 8);
}

void ProtoWriter::text(uint32_t number, std::string_view value) {
  bytes(number, std::as_bytes(std::span(value.data(), value.size())));
}

void ProtoWriter::bytes(uint32_t number, std::span<const std::byte> value) {
  key(number, WireType::bytes);
  varint(value.size());
  out_.append(reinterpret_cast<const char*>(value.data()), value.size());
}

void ProtoWriter::integers(uint32_t number, const std::vector<int64_t>& values) {
  ProtoWriter packed;
  for (const int64_t v : values) packed.varint(static_cast<uint64_t>(v));
  message(number, packed);
}

void ProtoWriter::floats(uint32_t number, const std::vector<float>& values) {
  bytes(number, std::as_bytes(std::span(values)));
}

void ProtoWriter::doubles(uint32_t number, const std::vector<double>& values) {
  bytes(number, std::as_bytes(std::span(values)));
}

}  // namespace loom::core
