#include "io/arrays/array_file.hpp"

#include "base/numbers/bits.hpp"
#include "base/text.hpp"
#include "io/arrays/idx.hpp"
#include "io/files/foreign_file.hpp"
#include "io/weights/safetensors.hpp"

namespace loom::core {
namespace {

// Longer than any header that states a size.
constexpr size_t kHead = (size_t{1} << 20) + 64;

bool is_safetensors(std::span<const std::byte> bytes) {
  if (bytes.size() < 10 || bytes[8] != std::byte{'{'}) return false;
  const auto length = load_le<uint64_t>(bytes.data());
  return length >= 2 && length <= kMaxSafeHeader;
}

Result<ElementType> element_of(const SafeTensor& tensor, const std::string& where) {
  switch (tensor.dtype) {
    case SafeDType::boolean: return ElementType::boolean;
    case SafeDType::u8: return ElementType::u8;
    case SafeDType::i8: return ElementType::i8;
    case SafeDType::u16: return ElementType::u16;
    case SafeDType::i16: return ElementType::i16;
    case SafeDType::u32: return ElementType::u32;
    case SafeDType::i32: return ElementType::i32;
    case SafeDType::u64: return ElementType::u64;
    case SafeDType::i64: return ElementType::i64;
    case SafeDType::f16: return ElementType::f16;
    case SafeDType::bf16: return ElementType::bf16;
    case SafeDType::f32: return ElementType::f32;
    case SafeDType::f64: return ElementType::f64;
    default:
      return unsupported(cat("dtype ", safe_dtype_name(tensor.dtype), " is not supported for data"),
                         where);
  }
}

}  // namespace

bool ArrayFile::known(std::span<const std::byte> bytes) {
  return is_npy(bytes) || is_npz(bytes) || is_idx(bytes) || is_safetensors(bytes);
}

Status ArrayFile::read_safetensors(std::span<const std::byte> bytes) {
  const std::string& path = source_.where();
  LOOM_ASSIGN(const SafeTensors tensors, SafeTensors::parse(bytes, path));
  for (const SafeTensor& t : tensors.tensors()) {
    ArrayView array;
    array.where = cat(path, ": ", printable(t.name));
    LOOM_ASSIGN(array.type, element_of(t, array.where));
    array.shape = t.shape;
    array.data = t.data;
    array.file_offset = t.file_offset;
    arrays_.emplace_back(t.name, std::move(array));
  }
  return {};
}

Result<ArrayFile> ArrayFile::open(const FileRef& path, const MemoryBudget& memory) {
  LOOM_ASSIGN(ByteSource source, ByteSource::open(path, memory));
  return from(std::move(source));
}

Result<ArrayFile> ArrayFile::from(ByteSource source) {
  ArrayFile out;
  out.source_ = std::move(source);
  if (out.source_.packed()) {
    LOOM_TRY(out.unpack());
    LOOM_TRY(out.read(std::as_bytes(std::span(*out.unpacked_))));
  } else {
    LOOM_TRY(out.read(out.source_.stored()));
  }
  return out;
}

// Unpacks a whole gzip file. Its size comes from the inner header, or from a counting pass if the
// format has no such header.
Status ArrayFile::unpack() {
  const std::string& path = source_.where();
  LOOM_ASSIGN(const std::string head, source_.head(kHead));
  const std::span<const std::byte> bytes = std::as_bytes(std::span(head));
  uint64_t size = head.size();
  if (head.size() == kHead && is_npy(bytes)) {
    LOOM_ASSIGN(size, npy_size(bytes, path));
  } else if (head.size() == kHead && is_idx(bytes)) {
    LOOM_ASSIGN(size, idx_size(bytes, path));
  } else if (head.size() == kHead && known(bytes)) {
    LOOM_ASSIGN(size, source_.count());
  }
  LOOM_ASSIGN(share_, source_.memory().take(size, "what it unpacks to", path));
  LOOM_ASSIGN(std::string all, source_.read_all(size));
  unpacked_ = std::make_unique<std::string>(std::move(all));
  return {};
}

Status ArrayFile::read(std::span<const std::byte> bytes) {
  const std::string& path = source_.where();
  if (const auto foreign = foreign_file(bytes, path, true)) return *foreign;
  if (is_npz(bytes)) {
    kind_ = Kind::npz;
    LOOM_ASSIGN(npz_, Npz::open(bytes, path, source_.memory()));
    return {};
  }
  if (is_safetensors(bytes)) {
    kind_ = Kind::safetensors;
    return read_safetensors(bytes);
  }
  if (!is_npy(bytes) && !is_idx(bytes))
    return bad_file("neither NPY, NPZ, IDX nor safetensors", path, 0);
  kind_ = is_npy(bytes) ? Kind::npy : Kind::idx;
  LOOM_ASSIGN(ArrayView array, is_npy(bytes) ? parse_npy(bytes, path) : parse_idx(bytes, path));
  arrays_.emplace_back("", std::move(array));
  return {};
}

Result<ArrayView> ArrayFile::find(std::string_view name) {
  if (kind_ == Kind::npy || kind_ == Kind::idx) return arrays_[0].second;
  for (const auto& [key, array] : arrays_) {
    if (key == name) return array;
  }
  std::vector<std::string> there;
  for (size_t i = 0; npz_.has_value() && i < npz_->names().size(); ++i) {
    if (npz_->names()[i] == name) {
      LOOM_ASSIGN(ArrayView array, npz_->read(i, storage_));
      return arrays_.emplace_back(name, std::move(array)).second;
    }
    if (there.size() < 20) there.push_back(printable(npz_->names()[i]));
  }
  for (size_t i = 0; !npz_.has_value() && i < arrays_.size() && i < 20; ++i)
    there.push_back(printable(arrays_[i].first));
  return make_error(Code::not_found,
                    cat("no array called '", printable(name), "'; there is ", join(there, ", ")),
                    source_.where());
}

}  // namespace loom::core
