// Arrays as files.
#include "io/npy_write.hpp"
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

}  // namespace

Status save_arrays(const std::string& path, const std::vector<NamedTensor>& arrays) {
  if (!path.ends_with(".npz"))
    return core::invalid("arrays are written as .npz; give such a name", path);
  std::vector<Tensor> whole;
  std::vector<core::NpyOutput> outputs;
  for (const NamedTensor& array : arrays) {
    LOOM_ASSIGN(Tensor dense,
                array.tensor.contiguous() ? Result<Tensor>(array.tensor) : array.tensor.copied());
    outputs.push_back({array.name,
                       element_type(dense.dtype()),
                       dense.shape(),
                       {dense.data(), static_cast<size_t>(dense.bytes())}});
    whole.push_back(std::move(dense));
  }
  return core::write_npz(path, outputs);
}

}  // namespace loom
