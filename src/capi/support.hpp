// Shared code of the C interface: catches exceptions, stores the last error, reads options of any
// size, and returns objects, texts and lists. Names with `give` write to a pointer of the caller.
#pragma once

#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capi/handles.hpp"
#include "capi/options/enum_counts.hpp"

namespace loom::capi {

// Keeps the error for loom_last_error() of this thread, and returns its code.
loom_status fail(const Error& error) noexcept;
loom_status fail_without_memory() noexcept;
loom_status fail_with_exception() noexcept;
const char* last_error_text() noexcept;
loom_status last_error_code() noexcept;

Error invalid(std::string message);

// Runs f, a Status: nothing that it throws leaves.
template <class F>
loom_status guarded(F&& f) noexcept {
  try {
    const Status status = f();
    return status.ok() ? static_cast<loom_status>(LOOM_OK) : fail(status.error());
  } catch (const std::bad_alloc&) {
    return fail_without_memory();
  } catch (...) {
    return fail_with_exception();
  }
}

// Frees the object of a handle. An invalid handle becomes the last error of the thread.
template <class Handle>
void free_handle(Handle* handle) noexcept {
  if (handle == nullptr) return;
  (void)guarded([&]() -> Status {
    LOOM_ASSIGN(void* object,
                take_object(reinterpret_cast<uintptr_t>(handle), HandleOf<Handle>::kKind));
    delete static_cast<typename HandleOf<Handle>::Object*>(object);
    return {};
  });
}

// ---- results ------------------------------------------------------------------------------------

// Sets an output to zero before anything can fail. Errors: invalid_argument (null).
template <class T>
Status clear(T* out, const char* name) {
  if (out == nullptr) return invalid(std::string("'") + name + "' is null; give a place to write");
  *out = T{};
  return {};
}

Status give_text(char** out, std::string_view text);
Status give_ids(int32_t** ids, int64_t* count, const std::vector<TokenId>& from);

// Into a fixed field, cut off where it is too long.
void copy_text(char* to, size_t size, std::string_view from);
template <size_t kSize>
void copy_text(char (&to)[kSize], std::string_view from) {
  copy_text(to, kSize, from);
}
// Extents into a fixed field; returns the rank.
int32_t copy_shape(int64_t (&to)[8], const Shape& from);

Status write_sized(void* to, const void* from, size_t size, const char* name);
// A report into a struct of the caller, of whatever size that says it has.
template <class T>
Status give_report(T* out, const T& report, const char* name) {
  return write_sized(out, &report, sizeof(T), name);
}

// ---- arguments ----------------------------------------------------------------------------------

Status read_sized(const void* from, void* to, size_t size, const char* name);
// Options as this library knows them: zeros where null, or smaller, was given.
template <class T>
Result<T> options_of(const T* given, const char* name) {
  T options{};
  if (given != nullptr) LOOM_TRY(read_sized(given, &options, sizeof(T), name));
  return options;
}

// Errors: invalid_argument (null).
Result<std::string> text_of(const char* text, const char* name);
inline std::string text_or(const char* text, std::string_view otherwise) {
  return std::string(text == nullptr ? otherwise : std::string_view(text));
}
// Texts of the caller. Errors: invalid_argument (null, or one of them is).
Result<std::vector<std::string>> texts_of(const char* const* texts, int64_t count,
                                          const char* name);
// A list of the caller. Errors: invalid_argument (null, or less than none).
template <class T>
Result<std::span<const T>> list_of(const T* values, int64_t count, const char* name) {
  if (count < 0 || (values == nullptr && count > 0))
    return invalid(std::string("'") + name + "' is null, or has fewer than 0 elements");
  return std::span<const T>(values, static_cast<size_t>(count));
}
// A file of the caller in memory.
Result<FileBytes> file_of(const void* bytes, int64_t size, const char* name, bool borrow);
// Wraps a progress callback of C. A null callback gives an empty function.
inline std::function<bool(int64_t, int64_t)> progress_of(loom_progress_fn progress, void* user) {
  if (progress == nullptr) return {};
  return [=](int64_t done, int64_t total) { return progress(user, done, total) == 0; };
}
// A tensor as C sees it, borrowed while `from` lives.
loom_tensor view_of(const Tensor& from);
// Hands ports to the sink; values: one of each, or none. Errors: cancelled.
Status hand_out(const std::vector<PortInfo>& ports, const std::vector<Tensor>& values, bool outputs,
                loom_port_fn sink, void* user);
constexpr int32_t kMaxRank = 16;  // of a loom_tensor
// Errors: invalid_argument, naming the numbers that there are.
Result<DType> dtype_of(loom_dtype dtype);
template <class E>
Result<E> enum_of(int32_t value, int32_t count, const char* name) {
  if (value < 0 || value >= count) {
    return invalid(std::string("'") + name + "' is " + std::to_string(value) +
                   "; choose from 0 to " + std::to_string(count - 1));
  }
  return static_cast<E>(value);
}
// Converts an enum of api/options.
template <class E>
Result<E> enum_of(int32_t value, const char* name) {
  static_assert(kValues<E> > 0);
  return enum_of<E>(value, kValues<E>, name);
}
// Converts an enum whose C form has 0 for "unset" and its values after that. 0 leaves `to`.
template <class E>
Status read_enum(int32_t value, const char* name, E& to) {
  LOOM_ASSIGN(const int32_t number, enum_of<int32_t>(value, kValues<E> + 1, name));
  if (number > 0) to = static_cast<E>(number - 1);
  return {};
}
template <class E>
Status read_enum(int32_t value, const char* name, std::optional<E>& to) {
  E read{};
  LOOM_TRY(read_enum(value, name, read));
  if (value != 0) to = read;
  return {};
}
// The memory of the caller as a Tensor that borrows it.
Result<Tensor> tensor_of(const loom_tensor* tensor, const char* name);
// The same in two steps, for calls that take hardly longer than a Tensor that is moved.
Status check_tensor(const loom_tensor* tensor, const char* name);
Tensor borrowed(const loom_tensor& tensor);  // of one that was checked
// The product of its extents; -1 where one is negative, or nothing can be that large.
inline int64_t count_of(const loom_tensor& tensor) {
  int64_t count = 1;
  for (int32_t i = 0; i < tensor.rank; ++i) {
    if (tensor.shape[i] < 0 || __builtin_mul_overflow(count, tensor.shape[i], &count)) return -1;
  }
  return count;
}
Result<GenerateOptions> generate_options(const loom_generate_options* given);
// The engine of a handle, or the shared one.
Result<Engine> engine_of(const loom_engine* engine);

template <class T>
T non_zero(T value, T otherwise) {
  return value == T{} ? otherwise : value;
}
template <class T>
std::optional<T> value_if(int32_t has, T value) {
  return has != 0 ? std::optional<T>(value) : std::nullopt;
}

}  // namespace loom::capi
