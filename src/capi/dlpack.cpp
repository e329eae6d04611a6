// DLPack 0.8 and 1.0 (github.com/dmlc/dlpack): arrays that other libraries share with us, and we
// with them. The structs are those of dlpack.h, declared here because they are all that is needed
// of it.
#include <array>
#include <type_traits>

#include "capi/support.hpp"

namespace {

using namespace loom;
using namespace loom::capi;

constexpr int32_t kCpu = 1;
enum DlCode : uint8_t { kInt = 0, kUint = 1, kFloat = 2, kBfloat = 4 };

struct DlTensor {
  void* data;
  struct {
    int32_t type, id;
  } device;
  int32_t rank;
  struct {
    uint8_t code, bits;
    uint16_t lanes;
  } dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t offset;  // bytes
};
struct DlManaged {
  DlTensor tensor;
  void* context;
  void (*deleter)(DlManaged*);
};
struct DlVersioned {
  struct {
    uint32_t major, minor;
  } version;
  void* context;
  void (*deleter)(DlVersioned*);
  uint64_t flags;
  DlTensor tensor;
};

struct TypeRow {
  DType dtype;
  DlCode code;
  uint8_t bits;
};
constexpr std::array<TypeRow, 12> kTypes = {{{DType::float64, kFloat, 64},
                                             {DType::float32, kFloat, 32},
                                             {DType::float16, kFloat, 16},
                                             {DType::bfloat16, kBfloat, 16},
                                             {DType::int64, kInt, 64},
                                             {DType::int32, kInt, 32},
                                             {DType::int16, kInt, 16},
                                             {DType::int8, kInt, 8},
                                             {DType::uint64, kUint, 64},
                                             {DType::uint32, kUint, 32},
                                             {DType::uint16, kUint, 16},
                                             {DType::uint8, kUint, 8}}};

// The memory that an exported tensor keeps alive, with the extents that it points to.
template <class Managed>
struct Exported {
  Managed managed{};
  Tensor tensor;
  Shape shape, strides;
};

template <class Managed>
void free_exported(Managed* managed) {
  delete static_cast<Exported<Managed>*>(managed->context);
}

void describe(DlTensor& t, const Tensor& tensor, Shape& shape, Shape& strides) {
  for (const TypeRow& row : kTypes) {
    if (row.dtype == tensor.dtype()) t.dtype = {row.code, row.bits, 1};
  }
  t.data = const_cast<std::byte*>(tensor.data());
  t.device = {kCpu, 0};
  t.rank = static_cast<int32_t>(shape.size());
  t.shape = shape.data();
  t.strides = strides.data();
}

template <class Managed>
Status give_exported(const loom_array* array, void** out) {
  LOOM_TRY(clear(out, "out"));
  LOOM_ASSIGN(const Tensor* from, object_of(array));
  auto made = std::make_unique<Exported<Managed>>();
  made->tensor = *from;
  made->shape = from->shape();
  made->strides = from->strides();
  describe(made->managed.tensor, made->tensor, made->shape, made->strides);
  if constexpr (std::is_same_v<Managed, DlVersioned>) made->managed.version = {1, 0};
  made->managed.context = made.get();
  made->managed.deleter = free_exported<Managed>;
  *out = &made.release()->managed;
  return {};
}

// The array of an imported tensor calls its deleter when it is the last to go.
template <class Managed>
struct Imported {
  Managed* managed = nullptr;
  ~Imported() {
    if (managed != nullptr && managed->deleter != nullptr) managed->deleter(managed);
  }
};

Result<DType> type_of(const DlTensor& t) {
  for (const TypeRow& row : kTypes) {
    if (row.code == t.dtype.code && row.bits == t.dtype.bits && t.dtype.lanes == 1)
      return row.dtype;
  }
  return Error{Code::unsupported,
               "a DLPack type of code " + std::to_string(t.dtype.code) + " with " +
                   std::to_string(t.dtype.bits) + " bits; convert it to a plain number type",
               {}};
}

template <class Managed>
Status give_imported(void* managed, loom_array** out) {
  LOOM_TRY(clear(out, "out"));
  if (managed == nullptr) return invalid("'managed' is null; give a DLManagedTensor");
  auto* from = static_cast<Managed*>(managed);
  if constexpr (std::is_same_v<Managed, DlVersioned>) {
    if (from->version.major != 1)
      return Error{Code::unsupported, "a DLPack tensor of another major version than 1", {}};
  }
  const DlTensor& t = from->tensor;
  if (t.device.type != kCpu) {
    return Error{
        Code::unsupported,
        "a tensor of DLPack device " + std::to_string(t.device.type) + "; copy it to the CPU",
        {}};
  }
  LOOM_ASSIGN(const DType dtype, type_of(t));
  loom_tensor view{static_cast<loom_dtype>(dtype), t.rank, t.shape, t.strides, t.data};
  if (t.data != nullptr) view.data = static_cast<std::byte*>(t.data) + t.offset;
  LOOM_ASSIGN(const Tensor borrowed, tensor_of(&view, "managed"));
  // The array owns what was borrowed only once nothing can fail any more.
  auto owner = std::make_shared<Imported<Managed>>();
  LOOM_TRY(give(
      out, Tensor::borrow(borrowed.data(), dtype, borrowed.shape(), borrowed.strides(), owner)));
  owner->managed = from;
  return {};
}

}  // namespace

extern "C" {

loom_status loom_array_to_dlpack(const loom_array* array, void** out) {
  return guarded([&] { return give_exported<DlManaged>(array, out); });
}

loom_status loom_array_to_dlpack_versioned(const loom_array* array, void** out) {
  return guarded([&] { return give_exported<DlVersioned>(array, out); });
}

loom_status loom_array_from_dlpack(void* managed, loom_array** out) {
  return guarded([&] { return give_imported<DlManaged>(managed, out); });
}

loom_status loom_array_from_dlpack_versioned(void* managed, loom_array** out) {
  return guarded([&] { return give_imported<DlVersioned>(managed, out); });
}

}  // extern "C"
