#include "capi/support.hpp"

#include <algorithm>
#include <cstdlib>

namespace loom::capi {
namespace {

constexpr size_t kMaxText = 1024;     // of an error
constexpr uint32_t kMaxSize = 65536;  // of a struct, by any version

// Plain memory, so that a thread that ends has nothing to destroy.
struct LastError {
  loom_status code = LOOM_OK;
  char text[kMaxText] = "";
};
#ifdef __wasi__
// One thread calls a module: lanes are workers that never do. Objects that are compiled for shared
// memory must have nothing per thread, for lld 19 misplaces it where the memory is not shared.
LastError last_error;
#else
thread_local LastError last_error;
#endif

loom_status keep(loom_status code, std::string_view text) noexcept {
  last_error.code = code;
  copy_text(last_error.text, text);
  return code;
}

Error without_memory() {
  return {Code::out_of_memory, "no memory is left for the result", {}};
}

Result<uint32_t> size_of(const void* sized, size_t known, const char* name) {
  uint32_t size = 0;
  std::memcpy(&size, sized, sizeof(size));
  if (size < sizeof(uint32_t) || size > kMaxSize) {
    return invalid(std::string("struct_size of ") + name + " is " + std::to_string(size) +
                   "; set it to sizeof, here " + std::to_string(known));
  }
  return size;
}

}  // namespace

const char* last_error_text() noexcept {
  return last_error.text;
}
loom_status last_error_code() noexcept {
  return last_error.code;
}

Error invalid(std::string message) {
  return {Code::invalid_argument, std::move(message), {}};
}

loom_status fail(const Error& error) noexcept {
  try {
    return keep(static_cast<loom_status>(error.code), error.str());
  } catch (...) {
    return keep(static_cast<loom_status>(error.code), "");
  }
}
loom_status fail_without_memory() noexcept {
  return keep(LOOM_OUT_OF_MEMORY, "no memory is left for this call");
}
loom_status fail_with_exception() noexcept {
  return keep(LOOM_INTERNAL, "an exception ended the call; did a callback let one out?");
}

void copy_text(char* to, size_t size, std::string_view from) {
  size_t count = std::min(from.size(), size - 1);
  // Not in the middle of a character.
  while (count < from.size() && count > 0 && (static_cast<uint8_t>(from[count]) & 0xC0) == 0x80)
    --count;
  std::memcpy(to, from.data(), count);
  std::memset(to + count, 0, size - count);
}

int32_t copy_shape(int64_t (&to)[8], const Shape& from) {
  const size_t rank = std::min(from.size(), std::size(to));
  std::copy_n(from.begin(), rank, to);
  return static_cast<int32_t>(rank);
}

Status give_text(char** out, std::string_view text) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) return without_memory();
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  *out = copy;
  return {};
}

Status give_ids(int32_t** ids, int64_t* count, const std::vector<TokenId>& from) {
  const size_t bytes = from.size() * sizeof(int32_t);
  auto* copy = static_cast<int32_t*>(std::malloc(std::max(bytes, size_t{1})));
  if (copy == nullptr) return without_memory();
  if (bytes > 0) std::memcpy(copy, from.data(), bytes);
  *ids = copy;
  *count = static_cast<int64_t>(from.size());
  return {};
}

Status write_sized(void* to, const void* from, size_t size, const char* name) {
  if (to == nullptr) return invalid(std::string(name) + " is null; give a place to write");
  LOOM_ASSIGN(const uint32_t given, size_of(to, size, name));
  auto* bytes = static_cast<unsigned char*>(to);
  const size_t common = std::min<size_t>(given, size);
  std::memcpy(bytes + sizeof(given), static_cast<const unsigned char*>(from) + sizeof(given),
              common - sizeof(given));
  std::memset(bytes + common, 0, given - common);
  return {};
}

Status read_sized(const void* from, void* to, size_t size, const char* name) {
  LOOM_ASSIGN(const uint32_t given, size_of(from, size, name));
  const auto* bytes = static_cast<const unsigned char*>(from);
  std::memcpy(to, bytes, std::min<size_t>(given, size));
  if (given > size && std::any_of(bytes + size, bytes + given, [](int b) { return b != 0; })) {
    return Error{Code::unsupported,
                 std::string(name) + " sets fields that version " + std::string(kVersion) +
                     " of the library does not know; install a newer one",
                 {}};
  }
  return {};
}

Result<std::string> text_of(const char* text, const char* name) {
  if (text == nullptr) return invalid(std::string("'") + name + "' is null; give a text");
  return std::string(text);
}

Result<std::vector<std::string>> texts_of(const char* const* texts, int64_t count,
                                          const char* name) {
  LOOM_ASSIGN(const auto given, list_of(texts, count, name));
  std::vector<std::string> out;
  for (const char* text : given) {
    LOOM_ASSIGN(out.emplace_back(), text_of(text, name));
  }
  return out;
}

Result<DType> dtype_of(loom_dtype dtype) {
  static const auto kCount = static_cast<int32_t>(dtype_names().size());
  return enum_of<DType>(dtype, kCount, "dtype");
}

Status check_tensor(const loom_tensor* tensor, const char* name) {
  // Texts are made where a call fails alone, so that one that works allocates nothing.
  const auto wrong = [name](const std::string& why) {
    return invalid(std::string("the tensor '") + name + "' " + why);
  };
  if (tensor == nullptr) return wrong("is null");
  if (tensor->rank < 0 || tensor->rank > kMaxRank || (tensor->rank > 0 && !tensor->shape))
    return wrong("has no shape, or more than 16 extents");
  LOOM_TRY(dtype_of(tensor->dtype));
  const int64_t count = count_of(*tensor);
  int64_t bytes = 0;
  if (count < 0 || __builtin_mul_overflow(count, int64_t{8}, &bytes)) {
    const Shape shape(tensor->shape, tensor->shape + tensor->rank);
    return wrong("has the shape " + shape_text(shape) + ", which nothing can have");
  }
  if (tensor->data == nullptr && count > 0) return wrong("has no data");
  return {};
}

Tensor borrowed(const loom_tensor& tensor) {
  Shape strides;
  if (tensor.strides != nullptr) strides.assign(tensor.strides, tensor.strides + tensor.rank);
  return Tensor::borrow(tensor.data, static_cast<DType>(tensor.dtype),
                        Shape(tensor.shape, tensor.shape + tensor.rank), std::move(strides));
}

Result<Tensor> tensor_of(const loom_tensor* tensor, const char* name) {
  LOOM_TRY(check_tensor(tensor, name));
  return borrowed(*tensor);
}

Result<FileBytes> file_of(const void* bytes, int64_t size, const char* name, bool borrow) {
  LOOM_ASSIGN(const auto all, list_of(static_cast<const std::byte*>(bytes), size, "bytes"));
  FileBytes file{.bytes = all, .borrow = borrow};
  if (name != nullptr) file.name = name;
  return file;
}

loom_tensor view_of(const Tensor& from) {
  loom_tensor view{};
  view.dtype = static_cast<loom_dtype>(from.dtype());
  view.rank = static_cast<int32_t>(from.shape().size());
  view.shape = from.shape().data();
  view.strides = from.contiguous() ? nullptr : from.strides().data();
  view.data = const_cast<std::byte*>(from.data());
  return view;
}

Result<Engine> engine_of(const loom_engine* engine) {
  if (engine == nullptr) return Engine::shared();
  LOOM_ASSIGN(const Engine* object, object_of(engine));
  return *object;
}

}  // namespace loom::capi
