#include "formats/original/blobs.hpp"

#include <algorithm>

#include "base/numbers/bits.hpp"
#include "base/numbers/checked.hpp"
#include "base/text.hpp"
#include "dtype/codecs/loom1_codes.hpp"
#include "io/bytes/byte_reader.hpp"

namespace loom::core {
namespace {

constexpr std::string_view kMagic("ENTITY\0\0", 8);
constexpr uint64_t kBlock = 32;

std::string quoted(std::string_view path) {
  return cat('"', printable(path), '"');
}

}  // namespace

Error Loom1Entity::fault(const JsonValue& at, std::string_view message) const {
  return bad_file(std::string(message), where_,
                  static_cast<int64_t>(kLoom1EntityStart) + at.offset());
}

Error Loom1Entity::bad(const Loom1Blob& blob, std::string_view message) const {
  return bad_file(cat("blob ", quoted(blob.path), ": ", message), where_, blob.at);
}

// ENTITY\0\0 | u16 version | u16 flags | u64 length | JSON of that length | payload, to the end.
// Little-endian. Blobs are byte ranges of the payload, so that offsets in the JSON begin after it.
Result<Loom1Entity> Loom1Entity::parse(std::span<const std::byte> bytes, const std::string& where) {
  ByteReader reader(bytes, where);
  const ByteReader start = reader;
  LOOM_ASSIGN(const auto magic, reader.take(kMagic.size(), "the magic"));
  if (std::string_view(reinterpret_cast<const char*>(magic.data()), magic.size()) != kMagic)
    return start.error("not an entity file: it must begin with ENTITY and two zero bytes");
  const ByteReader at_version = reader;
  LOOM_ASSIGN(const uint16_t version, reader.u16("the version"));
  if (version != 1) return at_version.error(cat("version ", version, ", expected 1"));
  const ByteReader at_flags = reader;
  LOOM_ASSIGN(const uint16_t flags, reader.u16("the flags field"));
  if (flags != 0) return at_flags.error(cat("flags ", flags, ", version 1 has none"));
  const ByteReader at_length = reader;
  LOOM_ASSIGN(const uint64_t length, reader.u64("the header length"));
  if (length > kMaxLoom1Header) {
    return at_length.error(cat("a header of ", length, " bytes; the limit is ", kMaxLoom1Header));
  }
  LOOM_ASSIGN(const auto text, reader.take(length, "the header"));
  Loom1Entity file;
  file.where_ = where;
  Result<JsonValue> header =
      parse_json({reinterpret_cast<const char*>(text.data()), text.size()}, where);
  if (!header.ok()) {
    Error error = header.error();
    if (error.offset >= 0) error.offset += static_cast<int64_t>(kLoom1EntityStart);
    return error;
  }
  file.header_ = std::move(*header);
  LOOM_TRY(file.read_blobs(bytes.subspan(static_cast<size_t>(reader.offset()))));
  return file;
}

Result<Loom1Blob> Loom1Entity::read_blob(const JsonValue& value,
                                         const std::string& location) const {
  if (!value.is_object())
    return fault(value, cat(location, ": expected a blob, found ", value.describe()));
  Loom1Blob blob;
  blob.at = static_cast<int64_t>(kLoom1EntityStart) + value.offset();
  bool seen[3] = {};
  for (const auto& [key, item] : value.members()) {
    const std::string here = cat(location, ".", printable(key), ": ");
    if (key == "path" || key == "dtype") {
      if (!item.is_string())
        return fault(item, cat(here, "expected text, found ", item.describe()));
      (key == "path" ? blob.path : blob.dtype) = item.text();
      if (key == "path") seen[0] = true;
    } else if (key == "offset" || key == "length") {
      const Result<int64_t> number = item.as_int("");
      if (!number.ok() || *number < 0)
        return fault(item, cat(here, "expected a count of bytes, found ", item.describe()));
      (key == "offset" ? blob.offset : blob.length) = static_cast<uint64_t>(*number);
      seen[key == "offset" ? 1 : 2] = true;
    } else if (key == "scale") {
      const Result<double> number = item.as_double("");
      if (!number.ok()) return fault(item, cat(here, "expected a number, found ", item.describe()));
      blob.scale = *number;
    } else if (key == "native") {
      if (!item.is_bool())
        return fault(item, cat(here, "expected true or false, found ", item.describe()));
      blob.native = *item.as_bool("");
    } else {
      // An ignored key could define the meaning of the weights.
      return fault(item, cat(here,
                             "unknown key; a blob has path, offset, length, dtype, scale, "
                             "native"));
    }
  }
  if (!seen[0] || !seen[1] || !seen[2])
    return fault(value, cat(location, ": path, offset or length is absent"));
  return blob;
}

Status Loom1Entity::read_blobs(std::span<const std::byte> payload) {
  if (!header_.is_object())
    return fault(header_, cat("expected an object, found ", header_.describe()));
  const JsonValue* list = header_.find("blobs");
  if (list != nullptr && !list->is_null() && !list->is_array())
    return fault(*list, cat("blobs: expected a list, found ", list->describe()));
  for (size_t i = 0; list != nullptr && i < list->elements().size(); ++i) {
    const JsonValue& item = list->elements()[i];
    LOOM_ASSIGN(Loom1Blob blob, read_blob(item, cat("blobs[", i, "]")));
    uint64_t end = 0;
    if (!checked_add(blob.offset, blob.length, end) || end > payload.size()) {
      return bad(blob, cat("bytes [", blob.offset, ", +", blob.length, ") of a payload of ",
                           payload.size()));
    }
    blob.bytes =
        payload.subspan(static_cast<size_t>(blob.offset), static_cast<size_t>(blob.length));
    const std::string path = blob.path;
    if (!blobs_.emplace(path, std::move(blob)).second)
      return fault(item, cat("blob ", quoted(path), " occurs twice"));
  }
  return check_tiling(payload.size());
}

// Blobs must cover the payload exactly once. A gap may be lost weights; an overlap may be two
// layers that read each other's. Empty blobs come before the one at the same offset, so they count
// as neither.
Status Loom1Entity::check_tiling(uint64_t payload) const {
  std::vector<const Loom1Blob*> order;
  for (const auto& [path, blob] : blobs_) order.push_back(&blob);
  std::stable_sort(order.begin(), order.end(), [](const Loom1Blob* a, const Loom1Blob* b) {
    return a->offset != b->offset ? a->offset < b->offset : a->length < b->length;
  });
  uint64_t end = 0;
  for (const Loom1Blob* blob : order) {
    if (blob->offset > end)
      return bad(*blob, cat("a hole of ", blob->offset - end, " bytes before it"));
    if (blob->offset < end)
      return bad(*blob, cat("overlaps the one before it by ", end - blob->offset, " bytes"));
    end = blob->offset + blob->length;
  }
  if (end == payload) return {};
  return bad_file(cat(payload - end, " bytes after the last blob"), where_);
}

const Loom1Blob* Loom1Entity::take(const std::string& path) {
  const auto at = blobs_.find(path);
  if (at == blobs_.end()) return nullptr;
  at->second.used = true;
  return &at->second;
}

bool Loom1Entity::has_below(const std::string& prefix) const {
  const auto at = blobs_.lower_bound(prefix);
  return at != blobs_.end() && at->first.starts_with(prefix);
}

Status Loom1Entity::check_all_taken() const {
  for (const auto& [path, blob] : blobs_) {
    if (!blob.used) return bad(blob, "belongs to no layer");
  }
  return {};
}

Status Loom1Entity::plain(const Loom1Blob& blob, uint64_t count, std::vector<float>& out) const {
  DType dtype = DType::f32;
  if (blob.native) {
    const Result<DType> known = parse_dtype(blob.dtype);
    if (!known.ok() || !loom1_has(*known))
      return bad(blob, cat("unknown dtype '", printable(blob.dtype), "'"));
    dtype = *known;
    if (loom1_scaled(dtype) && !(blob.scale > 0))
      return bad(blob, cat("native ", dtype_name(dtype), " weights need a scale"));
  }
  if (loom1_bytes(dtype, count) != blob.length) {
    return bad(blob, cat(count, " values of ", dtype_name(dtype), " take ",
                         loom1_bytes(dtype, count), " bytes, found ", blob.length));
  }
  out.resize(out.size() + count);
  loom1_unpack(dtype, blob.bytes, blob.scale, std::span(out).last(count));
  return {};
}

// u32 scales | u32 words | f32 per scale | words of eight 4-bit codes. Blocks of 32 cover all
// values regardless of rows, and the last may be short. There may be more words than the values
// need.
Status Loom1Entity::q4_0(const Loom1Blob& blob, uint64_t count, std::vector<float>& out) const {
  ByteReader reader(blob.bytes, cat(where_, ": blob ", quoted(blob.path)));
  LOOM_ASSIGN(const uint32_t scales, reader.u32("the count of scales"));
  LOOM_ASSIGN(const uint32_t words, reader.u32("the count of words"));
  const uint64_t blocks = count / kBlock + (count % kBlock > 0 ? 1 : 0);
  if (scales != blocks || words < 4 * blocks) {
    return bad(blob, cat(count, " values are ", blocks, " blocks, found ", scales, " scales and ",
                         words, " words"));
  }
  LOOM_ASSIGN(const auto scale, reader.take(uint64_t{4} * scales, "the scale array"));
  LOOM_ASSIGN(const auto codes, reader.take(uint64_t{4} * words, "the word array"));
  if (reader.remaining() > 0) return bad(blob, cat(reader.remaining(), " bytes after the words"));
  out.reserve(out.size() + count);
  for (uint64_t i = 0; i < count; ++i) {
    const auto d = static_cast<double>(load_le<float>(scale.data() + i / kBlock * 4));
    const double code = loom1_value(DType::i4, loom1_word_field(codes.data(), 4, i));
    out.push_back(static_cast<float>(d == 0 ? 0.0 : code * d));
  }
  return {};
}

// Six u32, then words of sixteen 2-bit codes, where each row starts a word: 0, 1, 2 are -1, 0, 1.
// Rows, columns and the offset among the layer's weights are in the blob and in the layer, and must
// agree.
Status Loom1Entity::bitnet(const Loom1Blob& blob, const Shape& shape, uint64_t flat_offset,
                           std::vector<float>& out) const {
  ByteReader reader(blob.bytes, cat(where_, ": blob ", quoted(blob.path)));
  LOOM_ASSIGN(const uint32_t rows, reader.u32("the row count"));
  LOOM_ASSIGN(const uint32_t cols, reader.u32("the column count"));
  LOOM_ASSIGN(const uint32_t offset, reader.u32("the offset"));
  LOOM_ASSIGN(const uint32_t scale_bits, reader.u32("the scale"));
  LOOM_ASSIGN(const uint32_t row_words, reader.u32("the row width"));
  LOOM_ASSIGN(const uint32_t words, reader.u32("the count of words"));
  if (rows != shape[0] || cols != shape[1] || offset != flat_offset) {
    return bad(blob, cat("a matrix [", rows, ", ", cols, "] at ", offset, ", expected ",
                         shape.str(), " at ", flat_offset));
  }
  uint64_t needed = 0;
  if (row_words != cols / 16 + (cols % 16 > 0 ? 1 : 0) || !checked_mul(rows, row_words, needed) ||
      words < needed) {
    return bad(blob, cat(row_words, " words in a row and ", words, " in all do not hold [", rows,
                         ", ", cols, "]"));
  }
  LOOM_ASSIGN(const auto codes, reader.take(uint64_t{4} * words, "the word array"));
  if (reader.remaining() > 0) return bad(blob, cat(reader.remaining(), " bytes after the words"));
  const auto scale = static_cast<double>(f32_from_bits(scale_bits));
  out.reserve(out.size() + static_cast<size_t>(uint64_t{rows} * cols));
  for (uint64_t r = 0; r < rows; ++r) {
    const std::byte* row = codes.data() + r * row_words * 4;
    for (uint64_t c = 0; c < cols; ++c) {
      const uint32_t code = loom1_word_field(row, 2, c);
      if (code == 3) return bad(blob, cat("code 3 at row ", r, ", column ", c));
      out.push_back(static_cast<float>((static_cast<double>(code) - 1.0) * scale));
    }
  }
  return {};
}

}  // namespace loom::core
