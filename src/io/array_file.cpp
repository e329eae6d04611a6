#include "io/array_file.hpp"

#include "base/bits.hpp"
#include "base/text.hpp"
#include "io/idx.hpp"
#include "io/npy.hpp"

namespace loom {
namespace {

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
    default: return unsupported(cat("dtype ", safe_dtype_name(tensor.dtype), " is no data"), where);
  }
}

}  // namespace

bool ArrayFile::known(std::span<const std::byte> bytes) {
  return is_npy(bytes) || is_npz(bytes) || is_idx(bytes) || is_safetensors(bytes);
}

Status ArrayFile::read_safetensors(const std::string& path) {
  LOOM_ASSIGN(const SafeTensors tensors, SafeTensors::parse(file_.bytes(), path));
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

Result<ArrayFile> ArrayFile::open(const std::string& path) {
  LOOM_ASSIGN(DataFile file, DataFile::open(path));
  return from(std::move(file), path);
}

Result<ArrayFile> ArrayFile::from(DataFile file, const std::string& path) {
  ArrayFile out;
  out.path_ = path;
  out.file_ = std::move(file);
  const std::span<const std::byte> bytes = out.file_.bytes();
  if (is_npy(bytes)) {
    LOOM_ASSIGN(ArrayView array, parse_npy(bytes, path));
    out.arrays_.emplace_back("", std::move(array));
  } else if (is_npz(bytes)) {
    out.kind_ = Kind::npz;
    LOOM_ASSIGN(out.arrays_, parse_npz(bytes, path, out.storage_));
  } else if (is_idx(bytes)) {
    out.kind_ = Kind::idx;
    LOOM_ASSIGN(ArrayView array, parse_idx(bytes, path));
    out.arrays_.emplace_back("", std::move(array));
  } else if (is_safetensors(bytes)) {
    out.kind_ = Kind::safetensors;
    LOOM_TRY(out.read_safetensors(path));
  } else {
    return bad_file("neither NPY, NPZ, IDX nor safetensors", path, 0);
  }
  return out;
}

Result<ArrayView> ArrayFile::find(std::string_view name) const {
  if (kind_ == Kind::npy || kind_ == Kind::idx) return arrays_[0].second;
  std::vector<std::string> known;
  for (const auto& [key, array] : arrays_) {
    if (key == name) return array;
    known.push_back(printable(key));
  }
  if (known.size() > 20) known.resize(20);
  return make_error(Code::not_found,
                    cat("no array called '", printable(name), "'; there is ", join(known, ", ")),
                    path_);
}

}  // namespace loom
