// Reads GGUF: header, metadata, tensor infos, then checks the tensor ranges against the file size.
// Sizes are computed once, in 64 bits with overflow checks. Counts are compared with the remaining
// bytes before anything is allocated. Typed access is in values.cpp.
#include "formats/gguf/file.hpp"

#include <algorithm>

#include "base/numbers/bits.hpp"
#include "base/numbers/checked.hpp"
#include "base/text.hpp"

namespace loom::core {
namespace {

constexpr std::string_view kGgufMagic = "GGUF";
// The smallest value and tensor info: an empty key or name, and so on.
constexpr uint64_t kMinValue = 8 + 4 + 1;
constexpr uint64_t kMinTensor = 8 + 4 + 4 + 8;

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Result<std::string_view> read_string(ByteReader& reader, std::string_view what) {
  LOOM_ASSIGN(const uint64_t length, reader.u64(what));
  LOOM_ASSIGN(const auto bytes, reader.take(length, what));
  return text_of(bytes);
}

bool round_up_checked(uint64_t value, uint64_t alignment, uint64_t& out) {
  if (!checked_add(value, alignment - 1, out)) return false;
  out &= ~(alignment - 1);
  return true;
}

}  // namespace

Error Gguf::fault(uint64_t offset, std::string message) const {
  return bad_file(std::move(message), where_, static_cast<int64_t>(offset));
}

Status Gguf::read_header(ByteReader& reader, uint64_t& tensors, uint64_t& values) {
  LOOM_ASSIGN(const auto magic, reader.take(4, "the magic number"));
  if (text_of(magic) != kGgufMagic)
    return fault(0, "a GGUF file begins with 'GGUF', this one does not");
  LOOM_ASSIGN(version_, reader.u32("the version"));
  if (version_ == 1) return fault(4, "GGUF version 1 is not read; convert the model again");
  if (version_ >= 1u << 16 && version_ % (1u << 16) == 0) {
    return fault(4, "a big-endian GGUF file; only little-endian ones are read");
  }
  if (version_ != 2 && version_ != 3) {
    return fault(4, cat("GGUF version ", version_, "; versions 2 and 3 are read"));
  }
  LOOM_ASSIGN(tensors, reader.u64("the number of tensors"));
  LOOM_ASSIGN(values, reader.u64("the number of metadata values"));
  if (tensors > reader.remaining() / kMinTensor) {
    return fault(8, cat(tensors, " tensors cannot be described in ", reader.remaining(), " bytes"));
  }
  if (values > reader.remaining() / kMinValue) {
    return fault(16, cat(values, " values do not fit in ", reader.remaining(), " bytes"));
  }
  return {};
}

Result<GgufType> Gguf::read_type(ByteReader& reader, const std::string& what) const {
  const uint64_t at = reader.offset();
  LOOM_ASSIGN(const uint32_t id, reader.u32("the type of " + what));
  if (id <= static_cast<uint32_t>(GgufType::f64)) return static_cast<GgufType>(id);
  return fault(at, cat(what, " has type ", id, ", which is not one of GGUF's"));
}

Status Gguf::read_array(ByteReader& reader, GgufValue& value, const std::string& what) {
  const uint64_t at = reader.offset();
  LOOM_ASSIGN(value.type, read_type(reader, "the elements of " + what));
  if (value.type == GgufType::array) return fault(at, what + " is an array of arrays");
  LOOM_ASSIGN(const uint64_t count, reader.u64("the length of " + what));
  value.offset = reader.offset();
  const uint64_t least = value.type == GgufType::string ? 8 : gguf_type_bytes(value.type);
  if (count > reader.remaining() / least) {
    return fault(at + 4, cat(what, " has ", count, " elements of type ", gguf_type_name(value.type),
                             ", ", reader.remaining(), " bytes remain"));
  }
  if (value.type != GgufType::string) {
    LOOM_ASSIGN(value.bytes, reader.take(count * least, what));
    return {};
  }
  value.strings.reserve(static_cast<size_t>(count));
  for (uint64_t i = 0; i < count; ++i) {
    LOOM_ASSIGN(const std::string_view text, read_string(reader, what));
    value.strings.push_back(text);
  }
  return {};
}

Status Gguf::read_value(ByteReader& reader) {
  const uint64_t at = reader.offset();
  LOOM_ASSIGN(const std::string_view key, read_string(reader, "a metadata key"));
  if (key.empty()) return fault(at, "an empty metadata key");
  if (key.size() > kMaxGgufKey) {
    return fault(at, cat("a metadata key of ", key.size(), " bytes; the limit is ", kMaxGgufKey));
  }
  const std::string what = cat("gguf key '", printable(key), "'");
  if (!keys_.emplace(key, metadata_.size()).second) return fault(at, what + " occurs twice");
  GgufValue value;
  value.key = key;
  LOOM_ASSIGN(value.type, read_type(reader, what));
  value.offset = reader.offset();
  if (value.type == GgufType::array) {
    value.is_array = true;
    LOOM_TRY(read_array(reader, value, what));
  } else if (value.type == GgufType::string) {
    LOOM_ASSIGN(const std::string_view text, read_string(reader, what));
    value.strings.push_back(text);
  } else {
    LOOM_ASSIGN(value.bytes, reader.take(gguf_type_bytes(value.type), what));
  }
  if (value.type == GgufType::boolean) {
    for (const std::byte b : value.bytes) {
      if (b > std::byte{1}) {
        return fault(value.offset, cat(what, " holds the boolean ", std::to_integer<int>(b)));
      }
    }
  }
  metadata_.push_back(std::move(value));
  return {};
}

Status Gguf::read_alignment() {
  constexpr std::string_view kKey = "general.alignment";
  const GgufValue* value = find_value(kKey);
  if (value == nullptr) return {};
  LOOM_ASSIGN(alignment_, u32(kKey));
  const bool power = alignment_ != 0 && (alignment_ & (alignment_ - 1)) == 0;
  if (power && alignment_ >= kMinGgufAlignment && alignment_ <= kMaxGgufAlignment) return {};
  return fault(value->offset, cat("gguf key 'general.alignment' is ", alignment_,
                                  "; it must be a power of two from ", kMinGgufAlignment, " to ",
                                  kMaxGgufAlignment));
}

Status Gguf::read_tensor(ByteReader& reader) {
  const uint64_t at = reader.offset();
  LOOM_ASSIGN(const std::string_view name, read_string(reader, "a tensor name"));
  if (name.size() > kMaxGgufName) {
    return fault(at, cat("a tensor name of ", name.size(), " bytes; the limit is ", kMaxGgufName));
  }
  TensorEntry entry;
  entry.name = std::string(name);
  const std::string what = cat("tensor '", printable(name), "'");
  if (!names_.emplace(entry.name, entries_.size()).second) return fault(at, what + " occurs twice");
  LOOM_ASSIGN(const uint32_t dims, reader.u32("the number of dimensions of " + what));
  if (dims > kMaxGgufDims) {
    return fault(reader.offset() - 4,
                 cat(what, " has ", dims, " dimensions; the limit is ", kMaxGgufDims));
  }
  entry.shape.resize(dims);
  uint64_t count = 1, largest = 1;
  for (uint32_t i = 0; i < dims; ++i) {
    LOOM_ASSIGN(const uint64_t extent, reader.u64("the shape of " + what));
    // Zero extents must not hide an overflow of the others.
    if (!checked_mul(largest, extent == 0 ? 1 : extent, largest) || largest > INT64_MAX) {
      return fault(reader.offset() - 8, what + " has more values than can be counted");
    }
    count *= extent;
    entry.shape[dims - 1 - i] = static_cast<int64_t>(extent);
  }
  const uint64_t type_at = reader.offset();
  LOOM_ASSIGN(const uint32_t id, reader.u32("the type of " + what));
  const GgmlType* type = find_ggml_type(id);
  if (type == nullptr) return fault(type_at, cat(what, " has the unknown type ", id));
  entry.dtype = std::string(type->name);
  const uint64_t row = dims == 0 ? 1 : static_cast<uint64_t>(entry.shape[dims - 1]);
  if (row % type->values != 0) {
    return fault(type_at, cat(what, " has rows of ", row, " values; ", type->name,
                              " needs a multiple of ", type->values));
  }
  if (!checked_mul(count / type->values, type->bytes, entry.bytes)) {
    return fault(type_at, what + " has more bytes than can be counted");
  }
  LOOM_ASSIGN(entry.offset, reader.u64("the offset of " + what));
  entries_.push_back(std::move(entry));
  types_.push_back(type);
  return {};
}

Status Gguf::check_padding(uint64_t begin, uint64_t end) const {
  for (uint64_t i = begin; i < end; ++i) {
    if (bytes_[i] != std::byte{0}) return fault(i, "padding that is not zero");
  }
  return {};
}

// Offsets count from the end of the header, rounded up. Afterwards they count from the start of the
// file.
Status Gguf::place_tensors(uint64_t header_end) {
  const uint64_t size = bytes_.size();
  uint64_t data = 0;
  if (!round_up_checked(header_end, alignment_, data))
    return fault(header_end, "the file is too large");
  if (entries_.empty() && size == header_end) return {};
  if (data > size) {
    return fault(header_end, cat("the data begins at ", data, ", the file has ", size, " bytes"));
  }
  LOOM_TRY(check_padding(header_end, data));
  uint64_t end = data, unpadded = data;
  for (TensorEntry& entry : entries_) {
    const std::string what = cat("tensor '", printable(entry.name), "'");
    if (entry.offset != end - data) {
      return fault(end > size ? size : end, cat(what, " has offset ", entry.offset,
                                                ", the one before it ends at ", end - data));
    }
    if (end > size || entry.bytes > size - end) {
      return fault(end > size ? size : end,
                   cat(what, " needs ", entry.bytes, " bytes, ", end > size ? 0 : size - end,
                       " remain; copy or download it again"));
    }
    entry.offset = end;
    unpadded = end + entry.bytes;
    // No overflow: unpadded <= size, which is below 2^63.
    end = (unpadded + alignment_ - 1) & ~(alignment_ - 1);
    LOOM_TRY(check_padding(unpadded, end < size ? end : size));
  }
  if (size == end || size == unpadded) return {};
  if (size < end)
    return fault(size, cat("the last tensor is padded to ", end, " bytes or not at all"));
  return fault(end, cat(size - end, " bytes after the last tensor"));
}

Status Gguf::read(std::span<const std::byte> bytes) {
  bytes_ = bytes;
  ByteReader reader(bytes, where_);
  uint64_t tensors = 0, values = 0;
  LOOM_TRY(read_header(reader, tensors, values));
  for (uint64_t i = 0; i < values; ++i) LOOM_TRY(read_value(reader));
  LOOM_TRY(read_alignment());
  for (uint64_t i = 0; i < tensors; ++i) LOOM_TRY(read_tensor(reader));
  return place_tensors(reader.offset());
}

Result<Gguf> Gguf::open(const FileRef& path) {
  Gguf gguf;
  LOOM_ASSIGN(gguf.file_, MappedFile::open(path));
  gguf.where_ = path;
  LOOM_TRY(gguf.read(gguf.file_.bytes()));
  return gguf;
}

Result<Gguf> Gguf::parse(std::span<const std::byte> bytes, const std::string& where) {
  Gguf gguf;
  gguf.where_ = where;
  LOOM_TRY(gguf.read(bytes));
  return gguf;
}

Status Gguf::to_f32(size_t index, int64_t first, int64_t count, float* out) const {
  const TensorEntry& entry = entries_[index];
  const GgmlType& type = *types_[index];
  if (type.decode == nullptr) {
    return unsupported(cat("tensor '", printable(entry.name), "' has type ", type.name,
                           ", whose values are not read"),
                       where_);
  }
  const int64_t all = entry.count();
  if (first < 0 || count < 0 || first > all || count > all - first) {
    return make_error(Code::out_of_range,
                      cat("values ", first, " to ", first + count, " of tensor '",
                          printable(entry.name), "', which has ", all));
  }
  const std::byte* data = bytes(index).data();
  const int64_t values = type.values;
  for (const int64_t end = first + count; first < end;) {
    const int64_t block = first / values, inside = first % values;
    const int64_t whole = inside == 0 ? (end - first) / values : 0;
    int64_t done = whole * values;
    if (whole > 0) {
      type.decode(data + block * type.bytes, whole, out);
    } else {
      float one[kMaxGgmlBlock];
      type.decode(data + block * type.bytes, 1, one);
      done = std::min(values - inside, end - first);
      std::copy_n(one + inside, done, out);
    }
    first += done;
    out += done;
  }
  return {};
}

std::span<const std::byte> Gguf::bytes(size_t index) const {
  const TensorEntry& entry = entries_[index];
  return bytes_.subspan(static_cast<size_t>(entry.offset), static_cast<size_t>(entry.bytes));
}

void Gguf::release(size_t index) const {
  if (file_.bytes().empty()) return;
  file_.release(entries_[index].offset, entries_[index].bytes);
}

int64_t Gguf::find_tensor(std::string_view name) const {
  const auto found = names_.find(std::string(name));
  return found == names_.end() ? -1 : static_cast<int64_t>(found->second);
}

}  // namespace loom::core
