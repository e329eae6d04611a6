// Arrays as files.
#include <algorithm>
#include <cstring>

#include "io/arrays/array_file.hpp"
#include "io/arrays/npy_write.hpp"
#include "loom/tensor.hpp"

namespace loom {
namespace {

core::ElementType element_type(DType dtype) {
  switch (static_cast<int>(dtype)) {
    case static_cast<int>(DType::float64): return core::ElementType::f64;
    case static_cast<int>(DType::float16): return core::ElementType::f16;
    case static_cast<int>(DType::bfloat16): return core::ElementType::bf16;
    case static_cast<int>(DType::int64): return core::ElementType::i64;
    case static_cast<int>(DType::int32): return core::ElementType::i32;
    case static_cast<int>(DType::int16): return core::ElementType::i16;
    case static_cast<int>(DType::int8): return core::ElementType::i8;
    case static_cast<int>(DType::uint64): return core::ElementType::u64;
    case static_cast<int>(DType::uint32): return core::ElementType::u32;
    case static_cast<int>(DType::uint16): return core::ElementType::u16;
    case static_cast<int>(DType::uint8): return core::ElementType::u8;
    default: return core::ElementType::f32;
  }
}

DType plain_dtype(core::ElementType type) {
  using enum core::ElementType;
  switch (type) {
    case f64: return DType::float64;
    case f16: return DType::float16;
    case bf16: return DType::bfloat16;
    case i64: return DType::int64;
    case i32: return DType::int32;
    case i16: return DType::int16;
    case i8: return DType::int8;
    case u64: return DType::uint64;
    case u32: return DType::uint32;
    case u16: return DType::uint16;
    case boolean:
    case u8: return DType::uint8;
    default: return DType::float32;
  }
}

}  // namespace

Result<Tensor> load_array(const std::string& path, const std::string& name) {
  LOOM_ASSIGN(core::ArrayFile file, core::ArrayFile::open(path));
  LOOM_ASSIGN(const core::ArrayView view, file.find(name));
  auto bytes = std::make_shared<std::vector<std::byte>>(view.data.begin(), view.data.end());
  const size_t each = core::element_bytes(view.type);
  for (size_t i = 0; view.big_endian && i + each <= bytes->size(); i += each)
    std::reverse(bytes->begin() + static_cast<std::ptrdiff_t>(i),
                 bytes->begin() + static_cast<std::ptrdiff_t>(i + each));
  const std::byte* at = bytes->data();
  return Tensor::borrow(at, plain_dtype(view.type), view.shape, {}, std::move(bytes));
}

Status save_arrays(const std::string& path, const std::vector<NamedTensor>& arrays) {
  if (!path.ends_with(".npz"))
    return core::invalid("arrays are written as .npz; give such a name", path);
  std::vector<Tensor> whole;
  std::vector<core::NpyOutput> outputs;
  for (const NamedTensor& array : arrays) {
    LOOM_ASSIGN(Tensor dense,
                array.tensor.contiguous() ? Result<Tensor>(array.tensor) : array.tensor.copied());
    if (array.boolean && core::element_bytes(element_type(dense.dtype())) != 1)
      return core::invalid("booleans are written from uint8", array.name);
    outputs.push_back({array.name,
                       array.boolean ? core::ElementType::boolean : element_type(dense.dtype()),
                       dense.shape(),
                       {dense.data(), static_cast<size_t>(dense.bytes())}});
    whole.push_back(std::move(dense));
  }
  return core::write_npz(path, outputs);
}

}  // namespace loom
