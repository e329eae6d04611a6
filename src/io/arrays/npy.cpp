// One NPY array: see npy.hpp. Its header is a Python dict literal of three known keys, parsed by
// hand; no Python is evaluated.
#include "io/arrays/npy.hpp"

#include <charconv>

#include "base/text.hpp"
#include "io/bytes/byte_reader.hpp"

namespace loom::core {
namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr uint64_t kMaxHeader = uint64_t{1} << 20;
constexpr size_t kMaxNpyAxes = 32;

struct Header {
  std::string descr;
  bool fortran = false;
  std::vector<int64_t> shape;
};

// The dict literal, parsed from front to back.
class NpyHeaderReader {
 public:
  NpyHeaderReader(std::string_view text, std::string where, int64_t offset)
      : text_(text), where_(std::move(where)), offset_(offset) {}
  Result<Header> read();

 private:
  Error error(std::string message) const {
    return bad_file("NPY header: " + std::move(message), where_,
                    offset_ + static_cast<int64_t>(at_));
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool take(std::string_view token) {
    skip_space();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  Result<std::string> string();
  Status shape(std::vector<int64_t>& out);
  Status member(Header& header);

  std::string_view text_;
  std::string where_;
  int64_t offset_;
  size_t at_ = 0;
  bool seen_[3] = {};
};

Result<std::string> NpyHeaderReader::string() {
  skip_space();
  const char quote = at_ < text_.size() ? text_[at_] : '\0';
  if (quote != '\'' && quote != '"') return error("expected a quoted string");
  const size_t end = text_.find(quote, at_ + 1);
  if (end == std::string_view::npos) return error("a string is never closed");
  std::string value(text_.substr(at_ + 1, end - at_ - 1));
  at_ = end + 1;
  return value;
}

Status NpyHeaderReader::shape(std::vector<int64_t>& out) {
  if (!take("(")) return error("expected a shape in parentheses");
  while (!take(")")) {
    skip_space();
    int64_t extent = 0;
    const char* first = text_.data() + at_;
    const auto [end, code] = std::from_chars(first, text_.data() + text_.size(), extent);
    if (code != std::errc() || extent < 0)
      return error("expected an extent, an integer below 2^63");
    at_ += static_cast<size_t>(end - first);
    if (out.size() == kMaxNpyAxes) return error(cat("more than ", kMaxNpyAxes, " axes"));
    out.push_back(extent);
    if (!take(",")) {
      if (!take(")")) return error("expected , or )");
      // "(1)" is not a tuple in Python.
      if (out.size() == 1) return error("a shape of one axis needs a comma");
      return {};
    }
  }
  return {};
}

Status NpyHeaderReader::member(Header& header) {
  LOOM_ASSIGN(const std::string key, string());
  if (!take(":")) return error("expected :");
  const int which = key == "descr" ? 0 : key == "fortran_order" ? 1 : key == "shape" ? 2 : -1;
  if (which < 0) return error(cat("unknown key '", printable(key), "'"));
  if (seen_[which]) return error(cat("'", key, "' occurs twice"));
  seen_[which] = true;
  if (which == 0) {
    skip_space();
    if (at_ < text_.size() && text_[at_] == '[')
      return error("arrays of records cannot be read; save plain numbers");
    LOOM_ASSIGN(header.descr, string());
    return {};
  }
  if (which == 2) return shape(header.shape);
  header.fortran = take("True");
  if (!header.fortran && !take("False")) return error("expected True or False");
  return {};
}

Result<Header> NpyHeaderReader::read() {
  Header header;
  if (!take("{")) return error("expected {");
  while (!take("}")) {
    LOOM_TRY(member(header));
    if (take(",")) continue;
    if (!take("}")) return error("expected , or }");
    break;
  }
  skip_space();
  if (at_ != text_.size()) return error("text after the closing brace");
  if (!seen_[0] || !seen_[1] || !seen_[2]) return error("descr, fortran_order or shape is absent");
  return header;
}

// "<f4": byte order, kind, bytes.
Status set_type(const Header& header, const ByteReader& reader, ArrayView& array) {
  constexpr struct {
    std::string_view name;
    ElementType type;
  } kTypes[] = {{"b1", ElementType::boolean}, {"u1", ElementType::u8},  {"i1", ElementType::i8},
                {"u2", ElementType::u16},     {"i2", ElementType::i16}, {"u4", ElementType::u32},
                {"i4", ElementType::i32},     {"u8", ElementType::u64}, {"i8", ElementType::i64},
                {"f2", ElementType::f16},     {"f4", ElementType::f32}, {"f8", ElementType::f64}};
  const std::string_view descr = header.descr;
  const char order = descr.empty() ? '\0' : descr[0];
  for (const auto& row : kTypes) {
    if (descr.empty() || descr.substr(1) != row.name) continue;
    if (order != '<' && order != '>' && order != '|' && order != '=') break;
    array.type = row.type;
    array.big_endian = order == '>';
    return {};
  }
  return reader.error(cat("type '", printable(descr),
                          "' cannot be read; save integers or floats of 16 to 64 bits"));
}

// Magic, version and the header's length.
Result<uint64_t> read_start(ByteReader& reader) {
  LOOM_TRY(reader.skip(kNpyMagic.size(), "the magic"));
  const ByteReader at_version = reader;
  LOOM_ASSIGN(const uint8_t major, reader.u8("the version"));
  LOOM_ASSIGN(const uint8_t minor, reader.u8("the version"));
  if (major < 1 || major > 3 || minor != 0) {
    return at_version.error(cat("NPY version ", static_cast<int>(major), ".",
                                static_cast<int>(minor), ", must be 1.0, 2.0 or 3.0"));
  }
  const ByteReader at_length = reader;
  uint64_t length = 0;
  if (major == 1) {
    LOOM_ASSIGN(length, reader.u16("the header length"));
  } else {
    LOOM_ASSIGN(length, reader.u32("the header length"));
  }
  if (length <= kMaxHeader) return length;
  return at_length.error(cat("an NPY header of ", length, " bytes; the limit is ", kMaxHeader));
}

// Everything but the data. Offsets count from the start of the array.
Result<ArrayView> read_array_header(ByteReader& reader, std::span<const std::byte> bytes,
                                    const std::string& where, bool& fortran) {
  if (!is_npy(bytes)) return bad_file("not an NPY array: it must begin with \\x93NUMPY", where, 0);
  LOOM_ASSIGN(const uint64_t length, read_start(reader));
  const ByteReader at_header = reader;
  LOOM_ASSIGN(const auto text, reader.take(length, "the NPY header"));
  const std::string_view literal(reinterpret_cast<const char*>(text.data()), text.size());
  LOOM_ASSIGN(const Header header,
              NpyHeaderReader(literal, where, static_cast<int64_t>(at_header.offset())).read());
  fortran = header.fortran;
  ArrayView array;
  array.where = where;
  array.shape = header.shape;
  LOOM_TRY(set_type(header, at_header, array));
  array.file_offset = reader.offset();
  return array;
}

Result<ArrayView> read_npy(std::span<const std::byte> bytes, const std::string& where) {
  ByteReader reader(bytes, where);
  bool fortran = false;
  LOOM_ASSIGN(ArrayView array, read_array_header(reader, bytes, where, fortran));
  LOOM_TRY(take_data(array, reader));
  if (fortran) from_fortran_order(array);
  return array;
}

}  // namespace

bool is_npy(std::span<const std::byte> bytes) {
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size())
      .starts_with(kNpyMagic);
}

Result<uint64_t> npy_size(std::span<const std::byte> head, const std::string& where) {
  ByteReader reader(head, where);
  bool fortran = false;
  LOOM_ASSIGN(const ArrayView array, read_array_header(reader, head, where, fortran));
  return stated_size(array, reader);
}

Result<ArrayView> parse_npy(std::span<const std::byte> bytes, const std::string& where,
                            uint64_t base) {
  Result<ArrayView> array = read_npy(bytes, where);
  if (array.ok()) {
    array->file_offset += base;
    return array;
  }
  Error error = array.error();
  error.offset += static_cast<int64_t>(base);
  return error;
}

}  // namespace loom::core
