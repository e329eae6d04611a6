// Arrays of the library.
#include "capi/support.hpp"

using namespace loom;
using namespace loom::capi;

extern "C" {

loom_status loom_array_zeros(loom_dtype dtype, int32_t rank, const int64_t* shape,
                             loom_array** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const DType type, dtype_of(dtype));
    LOOM_ASSIGN(const std::span<const int64_t> extents, list_of(shape, rank, "shape"));
    LOOM_ASSIGN(Tensor zeros, Tensor::zeros(Shape(extents.begin(), extents.end()), type));
    return give(out, std::move(zeros));
  });
}

loom_status loom_array_copy(const loom_tensor* values, loom_array** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Tensor from, tensor_of(values, "values"));
    LOOM_ASSIGN(Tensor copy, from.copied());
    return give(out, std::move(copy));
  });
}

loom_status loom_array_convert(const loom_array* array, loom_dtype dtype, loom_array** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Tensor* from, object_of(array));
    LOOM_ASSIGN(const DType type, dtype_of(dtype));
    LOOM_ASSIGN(Tensor converted, from->to(type));
    return give(out, std::move(converted));
  });
}

loom_status loom_array_view(const loom_array* array, loom_tensor* out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Tensor* object, object_of(array));
    *out = view_of(*object);
    return {};
  });
}

void loom_array_free(loom_array* array) {
  free_handle(array);
}

#ifndef LOOM_MINIMAL
loom_status loom_arrays_save(const char* path, const char* const* names, const loom_tensor* tensors,
                             int64_t count) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(const std::string file, text_of(path, "path"));
    LOOM_ASSIGN(const auto each_name, list_of(names, count, "names"));
    LOOM_ASSIGN(const auto each, list_of(tensors, count, "tensors"));
    std::vector<NamedTensor> arrays;
    for (size_t i = 0; i < each.size(); ++i) {
      LOOM_ASSIGN(std::string name, text_of(each_name[i], "names"));
      LOOM_ASSIGN(Tensor tensor, tensor_of(&each[i], name.c_str()));
      arrays.push_back({std::move(name), std::move(tensor)});
    }
    return save_arrays(file, arrays);
  });
}
#endif

}  // extern "C"
