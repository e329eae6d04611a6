// The reader of .entity files: see entity.hpp.
#include "io/weights/entity.hpp"

#include <algorithm>
#include <cstring>

#include "base/numbers/checked.hpp"
#include "base/text.hpp"
#include "io/bytes/byte_reader.hpp"
#include "io/bytes/hash.hpp"

namespace loom::core {
namespace {

constexpr std::string_view kMagic("ENTITY\0\0", 8);
constexpr size_t kHashDigits = 32;
constexpr uint64_t kMaxValues = uint64_t{1} << 48;  // of a blob

bool is_hash(std::string_view text) {
  return text.size() == kHashDigits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

uint64_t padded(uint64_t length) {
  return (length + kEntityAlign - 1) / kEntityAlign * kEntityAlign;
}

}  // namespace

std::string_view blob_layout_name(BlobLayout layout) {
  constexpr std::string_view kNames[] = {"plain", "r16", "text"};
  return kNames[static_cast<size_t>(layout)];
}

// Extents of 0 must not hide oversized ones.
bool entity_shape_fits(const Shape& shape) {
  uint64_t product = 1;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] < 0) return false;
    const uint64_t extent = std::max<uint64_t>(static_cast<uint64_t>(shape[axis]), 1);
    if (!checked_mul(product, extent, product)) return false;
  }
  return product <= kMaxValues;
}

uint16_t entity_version(std::span<const std::byte> bytes) {
  uint16_t version = 0;
  if (bytes.size() < kMagic.size() + sizeof version ||
      std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0)
    return 0;
  std::memcpy(&version, bytes.data() + kMagic.size(), sizeof version);
  return version;
}

Result<std::unique_ptr<Entity>> Entity::open(const FileRef& path) {
  auto entity = std::make_unique<Entity>();
  LOOM_ASSIGN(entity->map_, MappedFile::open(path));
  entity->bytes_ = entity->map_.bytes();
  entity->where_ = path;
  LOOM_TRY(entity->read());
  return entity;
}

Result<std::unique_ptr<Entity>> Entity::parse(std::span<const std::byte> bytes,
                                              const std::string& where) {
  if (reinterpret_cast<uintptr_t>(bytes.data()) % alignof(double) != 0) {
    return invalid(
        cat("the bytes of a file in memory must begin at a multiple of ", alignof(double)), where);
  }
  auto entity = std::make_unique<Entity>();
  entity->bytes_ = bytes;
  entity->where_ = where;
  LOOM_TRY(entity->read());
  return entity;
}

Status Entity::check_header(std::string_view header, uint64_t file_bytes,
                            const std::string& where) {
  Entity entity;
  entity.where_ = where;
  return entity.read_header(header, file_bytes);
}

Error Entity::bad(const JsonValue& at, std::string_view location, std::string_view message) const {
  const int64_t offset = at.offset() < 0 ? -1 : at.offset() + static_cast<int64_t>(kEntityFixed);
  return bad_file(cat(location, location.empty() ? "" : ": ", message), where_, offset);
}

Status Entity::read_fixed(uint64_t& header_length) {
  ByteReader reader(bytes_, where_);
  LOOM_ASSIGN(const auto magic, reader.take(8, "the magic"));
  if (std::memcmp(magic.data(), kMagic.data(), 8) != 0)
    return bad_file("does not begin with ENTITY and two zero bytes: not an .entity file", where_,
                    0);
  LOOM_ASSIGN(const uint16_t version, reader.u16("the version"));
  if (version != kEntityVersion) {
    return Error{Code::unsupported,
                 cat("has version ", version, "; this release reads version ", kEntityVersion,
                     version == 1 ? " (loom convert reads version 1)" : ""),
                 where_, 8};
  }
  LOOM_ASSIGN(const uint16_t flags, reader.u16("the flags"));
  if (flags != 1) return bad_file(cat("flags are ", flags, ", must be 1"), where_, 10);
  LOOM_ASSIGN(header_length, reader.u64("the header length"));
  LOOM_ASSIGN(const uint32_t zero, reader.u32("the reserved bytes"));
  LOOM_ASSIGN(const uint64_t length, reader.u64("the file length"));
  LOOM_ASSIGN(const uint64_t header_hash, reader.u64("the header hash"));
  LOOM_ASSIGN(const uint64_t zero2, reader.u64("the reserved bytes"));
  LOOM_ASSIGN(const uint64_t zero3, reader.u64("the reserved bytes"));
  LOOM_ASSIGN(const uint64_t fixed_hash, reader.u64("the hash of the first 56 bytes"));
  if (fixed_hash != hash64(bytes_.first(56)))
    return bad_file("the first 56 bytes do not match their hash: the file is damaged", where_, 56);
  if (zero != 0 || zero2 != 0 || zero3 != 0)
    return bad_file("reserved bytes are not zero", where_, zero != 0 ? 20 : zero2 != 0 ? 40 : 48);
  if (header_length > kMaxEntityHeader) {
    return bad_file(
        cat("header length ", header_length, " is above the limit of ", kMaxEntityHeader), where_,
        12);
  }
  if (header_length % kEntityAlign != 0) {
    return bad_file(cat("header length ", header_length, " is not a multiple of ", kEntityAlign),
                    where_, 12);
  }
  if (length != bytes_.size()) {
    return bad_file(cat("says it has ", length, " bytes, but has ", bytes_.size(),
                        length > bytes_.size() ? ": it is cut short" : ": something follows"),
                    where_, 24);
  }
  LOOM_ASSIGN(const auto header, reader.take(header_length, "the header"));
  if (hash64(header) != header_hash) {
    return bad_file("the header does not match its hash: the file is damaged", where_,
                    static_cast<int64_t>(kEntityFixed));
  }
  return {};
}

Status Entity::read() {
  uint64_t length = 0;
  LOOM_TRY(read_fixed(length));
  const auto header = bytes_.subspan(kEntityFixed, static_cast<size_t>(length));
  return read_header({reinterpret_cast<const char*>(header.data()), header.size()}, bytes_.size());
}

Status Entity::read_header(std::string_view text, uint64_t file_bytes) {
  Result<JsonValue> json = parse_json(text, where_);
  if (!json.ok()) {
    Error error = json.error();
    if (error.offset >= 0) error.offset += static_cast<int64_t>(kEntityFixed);
    return error;
  }
  if (!json->is_object()) return bad(*json, "", "the header is not a JSON object");
  const JsonValue* version = json->find("entity");
  if (version == nullptr) return bad(*json, "entity", "must be 2");
  const Result<int64_t> number = version->as_int("");
  if (!number.ok() || *number != kEntityVersion) return bad(*version, "entity", "must be 2");
  const JsonValue* list = json->find("blobs");
  if (list == nullptr || !list->is_array()) return bad(*json, "blobs", "must be a list of blobs");
  const uint64_t payload = kEntityFixed + text.size();
  LOOM_TRY(read_blobs(*list, payload, file_bytes - payload));
  header_ = JsonValue::object();
  for (const auto& [key, value] : json->members()) {
    if (key != "blobs" && key != "entity") header_.add(key, value);
  }
  return {};
}

Result<EntityBlob> Entity::read_blob(const JsonValue& item, const std::string& location) const {
  EntityBlob blob;
  if (!item.is_object())
    return bad(item, location, cat("expected an object, found ", item.describe()));
  const auto member = [&](const char* key) { return item.find(key); };
  for (const auto& [key, value] : item.members()) {
    const bool known = key == "path" || key == "layout" || key == "dtype" || key == "shape" ||
                       key == "offset" || key == "length" || key == "hash";
    if (!known) return bad(value, location, cat("unknown key '", printable(key), "'"));
  }
  for (const char* key : {"path", "layout", "hash"}) {
    if (member(key) == nullptr || !member(key)->is_string())
      return bad(item, location, cat(key, " must be a text"));
  }
  blob.path = member("path")->text();
  if (blob.path.empty() || blob.path.size() > kMaxEntityPath)
    return bad(*member("path"), location, cat("path must have 1 to ", kMaxEntityPath, " bytes"));
  blob.hash = member("hash")->text();
  if (!is_hash(blob.hash)) return bad(*member("hash"), location, "hash must be 32 hex digits");
  const std::string& layout = member("layout")->text();
  if (layout != "plain" && layout != "r16" && layout != "text")
    return bad(*member("layout"), location, "layout must be plain, r16 or text");
  blob.layout = layout == "plain" ? BlobLayout::plain
                : layout == "r16" ? BlobLayout::r16
                                  : BlobLayout::text;
  if ((member("dtype") == nullptr) != (blob.layout == BlobLayout::text))
    return bad(item, location, "dtype is needed with all layouts but text");
  if (blob.layout != BlobLayout::text) {
    const Result<DType> dtype = parse_dtype(member("dtype")->text());
    if (!dtype.ok() || dtype_name(*dtype) != member("dtype")->text())
      return bad(*member("dtype"), location, "dtype is not a number type");
    blob.dtype = *dtype;
  }
  const JsonValue* shape = member("shape");
  if (shape == nullptr || !shape->is_array() || shape->elements().size() > Shape::kMaxRank)
    return bad(item, location, cat("shape must be a list of up to ", Shape::kMaxRank, " extents"));
  for (size_t i = shape->elements().size(); i-- > 0;) {
    const Result<int64_t> extent = shape->elements()[i].as_int("");
    if (!extent.ok() || *extent < 0)
      return bad(shape->elements()[i], location, "an extent must be an integer from 0 up");
    blob.shape = blob.shape.after(*extent);
  }
  for (const auto& [key, to] :
       {std::pair<const char*, uint64_t*>{"offset", &blob.offset}, {"length", &blob.length}}) {
    const JsonValue* value = member(key);
    if (value == nullptr || !value->is_int() || !value->as_int("").ok() || *value->as_int("") < 0)
      return bad(value == nullptr ? item : *value, location,
                 cat(key, " must be an integer from 0 up"));
    *to = static_cast<uint64_t>(*value->as_int(""));
  }
  return blob;
}

Status Entity::check_size(const EntityBlob& blob, const JsonValue& item,
                          const std::string& name) const {
  if (!entity_shape_fits(blob.shape)) return bad(item, name, "the shape is too large");
  if (blob.layout == BlobLayout::r16 && blob.shape.rank() != 2)
    return bad(item, name, "layout r16 is for matrices");
  if (blob.layout == BlobLayout::text && blob.shape.rank() != 1)
    return bad(item, name, "layout text has one axis");
  const int64_t needs = blob.layout == BlobLayout::r16
                            ? r16_geometry(blob.dtype, blob.shape[0], blob.shape[1]).bytes()
                            : plain_bytes(blob.dtype, blob.shape);
  if (static_cast<uint64_t>(needs) == blob.length) return {};
  return bad(item, name, cat("has ", blob.length, " bytes, its shape needs ", needs));
}

Status Entity::read_blobs(const JsonValue& list, uint64_t payload, uint64_t available) {
  if (list.elements().size() > kMaxEntityBlobs)
    return bad(list, "blobs", cat("more than ", kMaxEntityBlobs));
  uint64_t next = 0;
  for (size_t i = 0; i < list.elements().size(); ++i) {
    const JsonValue& item = list.elements()[i];
    const std::string location = cat("blobs[", i, "]");
    LOOM_ASSIGN(EntityBlob blob, read_blob(item, location));
    const std::string name = cat(location, " ", printable(blob.path));
    if (!index_.emplace(blob.path, i).second) return bad(item, name, "the path occurs twice");
    if (blob.offset != next)
      return bad(item, name, cat("offset is ", blob.offset, ", must be ", next));
    if (blob.length > available - next) {
      return bad(
          item, name,
          cat("its ", blob.length, " bytes do not fit the ", available - next, " that are left"));
    }
    LOOM_TRY(check_size(blob, item, name));
    next += padded(blob.length);
    if (next > available) return bad(item, name, "its padding is beyond the end of the file");
    blob.offset += payload;
    TensorEntry entry{
        blob.path,
        std::string(blob.layout == BlobLayout::text ? "text" : dtype_name(blob.dtype)),
        {},
        blob.offset,
        blob.length};
    for (int axis = 0; axis < blob.shape.rank(); ++axis) entry.shape.push_back(blob.shape[axis]);
    entries_.push_back(std::move(entry));
    blobs_.push_back(std::move(blob));
  }
  if (next == available) return {};
  return bad_file(cat(available - next, " bytes follow the last blob"), where_,
                  static_cast<int64_t>(payload + next));
}

int64_t Entity::find(std::string_view path) const {
  const auto found = index_.find(std::string(path));
  return found == index_.end() ? -1 : static_cast<int64_t>(found->second);
}

std::span<const std::byte> Entity::bytes(size_t index) const {
  const EntityBlob& blob = blobs_[index];
  return bytes_.subspan(static_cast<size_t>(blob.offset), static_cast<size_t>(blob.length));
}

Status Entity::verify(size_t index) const {
  const EntityBlob& blob = blobs_[index];
  const auto all =
      bytes_.subspan(static_cast<size_t>(blob.offset), static_cast<size_t>(padded(blob.length)));
  const auto offset = static_cast<int64_t>(blob.offset);
  if (hash_hex(all) != blob.hash) {
    return bad_file(cat(printable(blob.path), " does not match its hash: the file is damaged"),
                    where_, offset);
  }
  const auto padding = all.subspan(static_cast<size_t>(blob.length));
  if (std::any_of(padding.begin(), padding.end(), [](std::byte b) { return b != std::byte{0}; })) {
    return bad_file(cat(printable(blob.path), " has padding that is not zero"), where_,
                    offset + static_cast<int64_t>(blob.length));
  }
  if (blob.layout == BlobLayout::r16 &&
      !r16_valid(r16_geometry(blob.dtype, blob.shape[0], blob.shape[1]), bytes(index).data())) {
    return bad_file(cat(printable(blob.path), " has a zero point that is not a code of ",
                        dtype_name(blob.dtype)),
                    where_, offset);
  }
  return {};
}

Tensor Entity::tensor(size_t index) const {
  const EntityBlob& blob = blobs_[index];
  // The map is read-only; tensors over it are never written.
  auto* data = const_cast<std::byte*>(bytes(index).data());
  if (blob.layout == BlobLayout::r16)
    return r16_tensor(r16_geometry(blob.dtype, blob.shape[0], blob.shape[1]), data);
  Tensor t;
  t.dtype = blob.dtype;
  t.shape = blob.shape;
  t.row_stride = blob.shape.last();
  t.data = data;
  return t;
}

Result<std::string> Entity::text(std::string_view path) const {
  const int64_t index = find(path);
  if (index < 0) return std::string();
  const auto i = static_cast<size_t>(index);
  if (blobs_[i].layout != BlobLayout::text)
    return bad_file(cat(printable(path), " is not text"), where_,
                    static_cast<int64_t>(blobs_[i].offset));
  LOOM_TRY(verify(i));
  const auto all = bytes(i);
  return std::string(reinterpret_cast<const char*>(all.data()), all.size());
}

Status Entity::to_f32(size_t index, int64_t first, int64_t count, float* out) const {
  const EntityBlob& blob = blobs_[index];
  const int64_t total = entries_[index].count();
  if (first < 0 || count < 0 || first > total || count > total - first)
    return make_error(Code::out_of_range, cat(count, " values from ", first, " on, of ", total),
                      blob.path);
  if (blob.layout == BlobLayout::text) return unsupported("is a text, no tensor", blob.path);
  const Tensor t = tensor(index);
  if (blob.layout == BlobLayout::r16) {
    const R16 g = r16_geometry(blob.dtype, blob.shape[0], blob.shape[1]);
    while (count > 0) {
      const int64_t row = first / g.cols, k = first % g.cols;
      const int64_t n = std::min(count, g.cols - k);
      r16_decode(g, t.data, row, k, n, out);
      first += n;
      out += n;
      count -= n;
    }
    return {};
  }
  if (blob.dtype == DType::f64) {
    for (int64_t i = 0; i < count; ++i)
      out[i] = static_cast<float>(reinterpret_cast<const double*>(t.data)[first + i]);
    return {};
  }
  if (blob.dtype != DType::f32)
    return unsupported(cat("a plain blob of ", dtype_name(blob.dtype), " is not a tensor"),
                       blob.path);
  std::copy_n(t.f32() + first, count, out);
  return {};
}

void Entity::release(size_t index) const {
  map_.release(blobs_[index].offset, blobs_[index].length);
}

}  // namespace loom::core
