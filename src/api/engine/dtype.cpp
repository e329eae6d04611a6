#include "loom/dtype.hpp"

#include "dtype/dtype.hpp"

namespace loom {

// The public names are those of the table, row by row.
#define LOOM_DTYPE(id, enumerator, ...) static_assert(core::DType::enumerator == core::DType{id});
#include "dtype/dtypes.def"
#undef LOOM_DTYPE
static_assert(static_cast<int>(DType::float64) == static_cast<int>(core::DType::f64));
static_assert(static_cast<int>(DType::float32) == static_cast<int>(core::DType::f32));
static_assert(static_cast<int>(DType::int8) == static_cast<int>(core::DType::i8));
static_assert(static_cast<int>(DType::nf4) == static_cast<int>(core::DType::nf4));
static_assert(static_cast<int>(DType::nvfp4) == static_cast<int>(core::DType::nvfp4));
static_assert(static_cast<int>(DType::q4_k) == static_cast<int>(core::DType::q4_k));
static_assert(static_cast<int>(DType::uint4_g128) == static_cast<int>(core::DType::u4g128));

std::string_view dtype_name(DType dtype) {
  return core::dtype_name(static_cast<core::DType>(dtype));
}

Result<DType> parse_dtype(std::string_view name) {
  LOOM_ASSIGN(const core::DType found, core::parse_dtype(name));
  return static_cast<DType>(found);
}

int dtype_bits(DType dtype) {
  return core::dtype_info(static_cast<core::DType>(dtype)).bits;
}

std::vector<std::string> dtype_names() {
  std::vector<std::string> names;
  for (const core::DTypeInfo& info : core::dtype_table()) names.emplace_back(info.name);
  return names;
}

}  // namespace loom
