#include "io/weights/torch_file.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "base/numbers/checked.hpp"
#include "base/text.hpp"
#include "io/bytes/byte_reader.hpp"
#include "io/bytes/zip_directory.hpp"
#include "io/weights/pickle.hpp"

namespace loom::core {
namespace {

using namespace std::string_view_literals;

constexpr size_t kMaxNesting = 8;
constexpr size_t kHead = 4096;  // bytes that tell the kind of a file
// The first pickle of the older stream: the number 0x1950a86a20f9469cfc6c.
constexpr std::string_view kStreamPickle = "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."sv;

struct NamedType {
  std::string_view name;  // in "torch NAMEStorage", or of a dtype
  SafeDType dtype;
};
constexpr NamedType kStorages[] = {{"Float", SafeDType::f32},     {"Half", SafeDType::f16},
                                   {"BFloat16", SafeDType::bf16}, {"Double", SafeDType::f64},
                                   {"Long", SafeDType::i64},      {"Int", SafeDType::i32},
                                   {"Short", SafeDType::i16},     {"Char", SafeDType::i8},
                                   {"Byte", SafeDType::u8},       {"Bool", SafeDType::boolean}};
// Types without a storage of their own; their tensors name them.
constexpr NamedType kDtypes[] = {{"float8_e4m3fn", SafeDType::f8_e4m3},
                                 {"float8_e5m2", SafeDType::f8_e5m2},
                                 {"float8_e8m0fnu", SafeDType::f8_e8m0},
                                 {"uint16", SafeDType::u16},
                                 {"uint32", SafeDType::u32},
                                 {"uint64", SafeDType::u64},
                                 {"float32", SafeDType::f32},
                                 {"float16", SafeDType::f16},
                                 {"bfloat16", SafeDType::bf16},
                                 {"float64", SafeDType::f64},
                                 {"int64", SafeDType::i64},
                                 {"int32", SafeDType::i32},
                                 {"int16", SafeDType::i16},
                                 {"int8", SafeDType::i8},
                                 {"uint8", SafeDType::u8},
                                 {"bool", SafeDType::boolean}};

// The size of that pickle at the beginning of `text`, or 0. It begins with the protocol, and since
// protocol 4 with the length of a frame.
size_t stream_head(std::string_view text) {
  constexpr size_t kProtocol = 2, kFrame = 9;
  if (text.size() < kProtocol || text[0] != '\x80' || text[1] < 2 || text[1] > 5) return 0;
  const bool framed = text.size() > kProtocol && text[kProtocol] == '\x95';
  const size_t at = kProtocol + (framed ? kFrame : 0);
  return text.size() >= at && text.substr(at).starts_with(kStreamPickle) ? at + kStreamPickle.size()
                                                                         : 0;
}

std::string_view text_of(std::span<const std::byte> bytes, size_t limit) {
  return {reinterpret_cast<const char*>(bytes.data()), std::min(bytes.size(), limit)};
}

std::optional<SafeDType> type_of(std::span<const NamedType> rows, std::string_view name) {
  for (const NamedType& row : rows)
    if (row.name == name) return row.dtype;
  return {};
}

// The dtype of a global "torch FloatStorage"; nullopt for others.
std::optional<SafeDType> storage_type(std::string_view global) {
  constexpr std::string_view kBefore = "torch ", kAfter = "Storage";
  if (!global.starts_with(kBefore) || !global.ends_with(kAfter)) return {};
  global.remove_prefix(kBefore.size());
  global.remove_suffix(kAfter.size());
  return type_of(kStorages, global);
}

constexpr std::array kRebuilds = {"torch._utils _rebuild_tensor"sv,
                                  "torch._utils _rebuild_tensor_v2"sv,
                                  "torch._utils _rebuild_tensor_v3"sv};
constexpr std::array kParameters = {"torch._utils _rebuild_parameter"sv,
                                    "torch._utils _rebuild_parameter_with_state"sv};
constexpr std::array kOthers = {"collections OrderedDict"sv, "torch Size"sv, "torch device"sv,
                                "torch.storage UntypedStorage"sv, "torch UntypedStorage"sv};

bool is_one_of(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool is_known_global(std::string_view name) {
  return is_one_of(kRebuilds, name) || is_one_of(kParameters, name) || is_one_of(kOthers, name) ||
         storage_type(name) || (name.starts_with("torch ") && type_of(kDtypes, name.substr(6)));
}

// The bytes of a storage, and their place in the file.
struct Storage {
  std::span<const std::byte> bytes;
  uint64_t offset = 0;
};

class TorchReader {
 public:
  TorchReader(std::span<const std::byte> bytes, const std::string& where, size_t file)
      : bytes_(bytes), where_(where), file_(file) {}

  Status read_archive();
  Status read_stream();
  std::vector<SafeTensor> take() { return std::move(tensors_); }

 private:
  Result<const ZipEntry*> member(std::string_view name) const;
  Result<Storage> member_bytes(const ZipEntry& entry) const;
  Result<Pickle> next_pickle(size_t& at) const;
  Status read_storages(const Pickle& keys, size_t at);
  Status collect(const Pickle& pickle, const PickleValue& value, const std::string& name,
                 size_t depth);
  Status collect_items(const Pickle& pickle, const PickleValue& value, const std::string& name,
                       size_t depth);
  Status add(const Pickle& pickle, const PickleValue& call, const std::string& name);
  Result<Storage> storage_of(const Pickle& pickle, const PickleValue& value, SafeDType& dtype,
                             const std::string& name);
  Status locate(const Storage& storage, const Pickle& pickle, const PickleValue& args,
                SafeTensor& tensor) const;
  Result<std::vector<int64_t>> counts(const Pickle& pickle, const PickleValue& value,
                                      const std::string& name) const;

  Error fault(std::string message) const { return bad_file(std::move(message), where_); }

  std::span<const std::byte> bytes_;
  const std::string& where_;
  size_t file_;
  ZipDirectory directory_;
  std::map<std::string_view, const ZipEntry*> members_;
  std::string_view prefix_;  // of the names of members: "archive/"
  // The storages of a stream, by key.
  std::map<std::string, uint64_t> sizes_;  // in bytes
  std::map<std::string, Storage> stored_;
  std::vector<SafeTensor> tensors_;
};

// ---- containers
// -----------------------------------------------------------------------------------

Result<const ZipEntry*> TorchReader::member(std::string_view name) const {
  const auto found = members_.find(cat(prefix_, name));
  if (found != members_.end()) return found->second;
  return fault(cat("member '", printable(name), "' is missing"));
}

Result<Storage> TorchReader::member_bytes(const ZipEntry& entry) const {
  if (entry.method != 0 || entry.packed != entry.size)
    return fault(cat("member '", printable(entry.name), "' is packed, as torch.save never does"));
  Storage storage;
  LOOM_ASSIGN(storage.bytes, zip_member(bytes_, where_, entry, storage.offset));
  return storage;
}

Status TorchReader::read_archive() {
  LOOM_ASSIGN(directory_, read_zip_directory(bytes_, where_, MemoryBudget()));
  for (const ZipEntry& entry : directory_.entries) {
    const std::string_view name = entry.name;
    members_.emplace(name, &entry);
    if (name.ends_with("/data.pkl") && name.find('/') == name.rfind('/'))
      prefix_ = name.substr(0, name.find('/') + 1);
    if (name.ends_with("/constants.pkl"))
      return unsupported("is a TorchScript program; save its state_dict()", where_);
  }
  if (const auto order = member("byteorder"); order.ok()) {
    LOOM_ASSIGN(const Storage text, member_bytes(**order));
    if (text_of(text.bytes, kHead) != "little")
      return unsupported("is of a big-endian machine", where_);
  }
  LOOM_ASSIGN(const ZipEntry* entry, member("data.pkl"));
  LOOM_ASSIGN(const Storage data, member_bytes(*entry));
  if (data.bytes.size() > kMaxSafeHeader) return fault("data.pkl is larger than the limit");
  size_t end = 0;
  LOOM_ASSIGN(const Pickle pickle,
              Pickle::parse(data.bytes, data.offset, where_, is_known_global, end));
  return collect(pickle, pickle.root(), {}, 0);
}

Result<Pickle> TorchReader::next_pickle(size_t& at) const {
  const auto rest = bytes_.subspan(at);
  size_t end = 0;
  auto pickle = Pickle::parse(rest.first(std::min<size_t>(rest.size(), kMaxSafeHeader)), at, where_,
                              is_known_global, end);
  at += end;
  return pickle;
}

// Three pickles about the machine, one of the object, one of the keys of storages, and the
// storages.
Status TorchReader::read_stream() {
  size_t at = stream_head(text_of(bytes_, kHead));
  LOOM_ASSIGN([[maybe_unused]] const Pickle version, next_pickle(at));
  LOOM_ASSIGN(const Pickle system, next_pickle(at));
  const PickleValue& about = system.root();
  for (size_t i = 0; i + 1 < about.items.size(); i += 2) {
    if (system.item(about, i).text == "little_endian" && system.item(about, i + 1).integer == 0)
      return unsupported("is of a big-endian machine", where_);
  }
  LOOM_ASSIGN(const Pickle object, next_pickle(at));
  LOOM_ASSIGN(const Pickle keys, next_pickle(at));
  // The object has the type and the size of each storage.
  for (size_t i = 0; i < object.size(); ++i) {
    const PickleValue& value = object.at(static_cast<uint32_t>(i));
    if (value.kind != PickleKind::persistent) continue;
    const PickleValue& id = object.item(value, 0);
    if (id.items.size() < 5) return fault("a storage without a key and a size");
    const auto type = storage_type(object.item(id, 1).text);
    const int64_t count = object.item(id, 4).integer;
    uint64_t size = 0;
    if (!type || count < 0 ||
        !checked_mul(static_cast<uint64_t>(count), safe_dtype_bits(*type) / 8, size))
      return fault(cat("a storage of ", printable(object.item(id, 1).text)));
    sizes_[std::string(object.item(id, 2).text)] = size;
  }
  LOOM_TRY(read_storages(keys, at));
  return collect(object, object.root(), {}, 0);
}

Status TorchReader::read_storages(const Pickle& keys, size_t at) {
  ByteReader reader(bytes_, where_);
  LOOM_TRY(reader.skip(at, "the pickles"));
  for (const uint32_t index : keys.root().items) {
    const std::string key(keys.at(index).text);
    const auto size = sizes_.find(key);
    if (size == sizes_.end()) return reader.error(cat("storage '", printable(key), "' is unknown"));
    LOOM_TRY(reader.skip(8, "the size of a storage"));  // in elements
    Storage& storage = stored_[key];
    storage.offset = reader.offset();
    LOOM_ASSIGN(storage.bytes, reader.take(size->second, cat("storage '", printable(key), "'")));
  }
  return {};
}

// ---- tensors
// --------------------------------------------------------------------------------------

Status TorchReader::collect(const Pickle& pickle, const PickleValue& value, const std::string& name,
                            size_t depth) {
  if (depth > kMaxNesting) return {};
  if (value.kind == PickleKind::called) {
    const std::string_view called = pickle.item(value, 0).text;
    if (is_one_of(kRebuilds, called)) return add(pickle, value, name);
    const PickleValue& args = pickle.item(value, 1);
    if (!is_one_of(kParameters, called) || args.items.empty()) return {};
    return collect(pickle, pickle.item(args, 0), name, depth + 1);
  }
  return collect_items(pickle, value, name, depth);
}

std::string key_text(const PickleValue& key) {
  return key.kind == PickleKind::integer ? cat(key.integer) : std::string(key.text);
}

Status TorchReader::collect_items(const Pickle& pickle, const PickleValue& value,
                                  const std::string& name, size_t depth) {
  const bool dict = value.kind == PickleKind::dict;
  if (!dict && value.kind != PickleKind::list && value.kind != PickleKind::tuple) return {};
  const size_t step = dict ? 2 : 1;
  for (size_t i = 0; i < value.items.size(); i += step) {
    std::string full = dict ? key_text(pickle.item(value, i)) : cat(i);
    if (!name.empty()) full = cat(name, ".", full);
    LOOM_TRY(collect(pickle, pickle.item(value, i + step - 1), full, depth + 1));
  }
  return {};
}

// Arguments: storage, offset, sizes, strides, ...; _v3 has the dtype as the seventh.
Status TorchReader::add(const Pickle& pickle, const PickleValue& call, const std::string& name) {
  const PickleValue& args = pickle.item(call, 1);
  if (args.items.size() < 4) return fault(cat("tensor '", printable(name), "' has no sizes"));
  if (name.size() > kMaxSafeName) return fault("the name of a tensor is too long");
  SafeTensor tensor;
  tensor.name = name.empty() ? "tensor" : name;
  tensor.file = file_;
  LOOM_ASSIGN(const Storage storage,
              storage_of(pickle, pickle.item(args, 0), tensor.dtype, tensor.name));
  if (pickle.item(call, 0).text.ends_with("_v3") && args.items.size() > 6) {
    const std::string_view dtype = pickle.item(args, 6).text;
    const auto type =
        dtype.starts_with("torch ") ? type_of(kDtypes, dtype.substr(6)) : std::nullopt;
    if (!type) return unsupported(cat("tensor '", printable(name), "' has another dtype"), where_);
    tensor.dtype = *type;
  }
  LOOM_TRY(locate(storage, pickle, args, tensor));
  if (tensors_.size() == kMaxPickleValues) return fault("too many tensors");
  tensors_.push_back(std::move(tensor));
  return {};
}

// ('storage', class, key, device, elements), and in the stream a view: (key, offset, elements).
Result<Storage> TorchReader::storage_of(const Pickle& pickle, const PickleValue& value,
                                        SafeDType& dtype, const std::string& name) {
  const auto bad = [&] { return fault(cat("tensor '", printable(name), "' has no storage")); };
  if (value.kind != PickleKind::persistent) return bad();
  const PickleValue& id = pickle.item(value, 0);
  if (id.kind != PickleKind::tuple || id.items.size() < 5) return bad();
  const std::string_view type = pickle.item(id, 1).text;
  const bool untyped = type.ends_with("UntypedStorage");
  if (!untyped && !storage_type(type))
    return unsupported(cat("tensor '", printable(name), "' has values of ", printable(type)),
                       where_);
  dtype = untyped ? SafeDType::u8 : *storage_type(type);
  const std::string key = key_text(pickle.item(id, 2));
  if (directory_.entries.empty()) {
    const auto found = stored_.find(key);
    if (found == stored_.end()) return bad();
    if (id.items.size() > 5 && pickle.item(id, 5).kind != PickleKind::none)
      return unsupported(cat("tensor '", printable(name), "' is a view of a storage"), where_);
    return found->second;
  }
  LOOM_ASSIGN(const ZipEntry* entry, member(cat("data/", key)));
  return member_bytes(*entry);
}

Result<std::vector<int64_t>> TorchReader::counts(const Pickle& pickle, const PickleValue& value,
                                                 const std::string& name) const {
  std::vector<int64_t> out;
  // torch.Size((2, 3)) is a call with a tuple.
  const PickleValue* list = &value;
  if (list->kind == PickleKind::called) list = &pickle.item(pickle.item(*list, 1), 0);
  for (const uint32_t index : list->items) {
    const PickleValue& count = pickle.at(index);
    if (count.kind != PickleKind::integer || count.integer < 0 || out.size() == kMaxSafeDims)
      return fault(cat("tensor '", printable(name), "' has sizes that no tensor has"));
    out.push_back(count.integer);
  }
  return out;
}

Status TorchReader::locate(const Storage& storage, const Pickle& pickle, const PickleValue& args,
                           SafeTensor& tensor) const {
  const auto fail = [&](std::string_view why) {
    return fault(cat("tensor '", printable(tensor.name), "' ", why));
  };
  const PickleValue& first = pickle.item(args, 1);
  if (first.kind != PickleKind::integer || first.integer < 0) return fail("has no offset");
  LOOM_ASSIGN(tensor.shape, counts(pickle, pickle.item(args, 2), tensor.name));
  LOOM_ASSIGN(const std::vector<int64_t> strides,
              counts(pickle, pickle.item(args, 3), tensor.name));
  if (strides.size() != tensor.shape.size()) return fail("has another number of strides");
  uint64_t count = 1;
  bool contiguous = true;
  for (size_t i = tensor.shape.size(); i-- > 0;) {
    const auto extent = static_cast<uint64_t>(tensor.shape[i]);
    if (extent > 1 && static_cast<uint64_t>(strides[i]) != count) contiguous = false;
    if (!checked_mul(count, extent, count)) return fail("is too large");
  }
  if (!contiguous && count > 0) {
    return unsupported(cat("tensor '", printable(tensor.name),
                           "' is not in row-major order; save tensor.contiguous()"),
                       where_);
  }
  const uint64_t width = safe_dtype_bits(tensor.dtype) / 8;
  uint64_t begin = 0, size = 0;
  // The offset of an empty view may be beyond its storage.
  const auto start = static_cast<uint64_t>(count > 0 ? first.integer : 0);
  const bool fits = checked_mul(start, width, begin) && checked_mul(count, width, size) &&
                    begin <= storage.bytes.size() && size <= storage.bytes.size() - begin;
  if (!fits) return fail("is larger than its storage; copy or download the file again");
  tensor.data = storage.bytes.subspan(static_cast<size_t>(begin), static_cast<size_t>(size));
  tensor.file_offset = storage.offset + begin;
  return {};
}

}  // namespace

bool is_torch_file(std::span<const std::byte> bytes) {
  const std::string_view text = text_of(bytes, kHead);
  if (stream_head(text) > 0) return true;
  constexpr size_t kName = 30;  // offset of the name of the first member
  if (!text.starts_with("PK\x03\x04") || text.size() < kName) return false;
  const size_t length = static_cast<unsigned char>(text[26]) |
                        static_cast<size_t>(static_cast<unsigned char>(text[27])) << 8;
  const std::string_view first = text.substr(kName, length);
  const size_t slash = first.find('/');
  if (slash == first.npos || slash != first.rfind('/')) return false;
  const std::string_view name = first.substr(slash + 1);
  return name == "data.pkl" || name == "byteorder" || name == "version" ||
         name == ".format_version";
}

Result<std::vector<SafeTensor>> read_torch_file(std::span<const std::byte> bytes,
                                                const std::string& where, size_t file) {
  TorchReader reader(bytes, where, file);
  const bool stream = !bytes.empty() && bytes[0] == std::byte{0x80};
  LOOM_TRY(stream ? reader.read_stream() : reader.read_archive());
  std::vector<SafeTensor> tensors = reader.take();
  if (tensors.empty()) return bad_file("has no tensors; save a state_dict()", where);
  std::set<std::string_view> names;
  for (const SafeTensor& tensor : tensors) {
    if (!names.insert(tensor.name).second)
      return bad_file(cat("has tensor '", printable(tensor.name), "' twice"), where);
  }
  return tensors;
}

}  // namespace loom::core
