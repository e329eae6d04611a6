// Error, Result<T>, Status: the return types of every function that can fail. A Result holds a
// value or an Error. An Error prints as one line: what went wrong, where (file, offset, key), what
// to do.
//
//   Result<Network> net = Network::load("digits.entity");
//   if (!net) return complain(net.error().str());
//   use(*net);                                    // or net.value(), net->info()
//   const double best = net.and_then(score).value_or(0.0);
//
// Nothing here throws. Reading the value of a failed Result, or the error of a successful one, is a
// bug in the program. It calls the hook of set_bad_access_hook() and ends the program.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "loom/export.hpp"

namespace loom {

enum class Code : int32_t {
  ok = 0,
  invalid_argument = 1,  // the caller passed something that can never work
  not_found = 2,         // a file, tensor or name that does not exist
  io_error = 3,          // the operating system refused to read or write
  bad_file = 4,          // bytes that violate their format
  unsupported = 5,       // well-formed, but this build or machine cannot do it
  out_of_memory = 6,
  out_of_range = 7,  // an index, id or position beyond its limit
  cancelled = 8,
  internal = 9,  // a bug in Loom; please report it
};

LOOM_API std::string_view code_name(Code code);

struct LOOM_API Error {
  Code code = Code::internal;
  std::string message;  // what went wrong, and what to do
  std::string where;    // file, tensor or field; may be empty
  int64_t offset = -1;  // byte offset in `where`, or -1

  // "where: at byte N: message", with the absent parts left out.
  std::string str() const;
};

// Called with the Error of a failed Result whose value was read, on the thread that read it. (If
// the Result had not failed, the Error says so.) The hook may log, or end the process; when it
// returns, the process aborts. The default prints one line on stderr. It applies to the whole
// process; null restores the default. Returns the previous hook.
using BadAccessHook = void (*)(const Error& error);
LOOM_API BadAccessHook set_bad_access_hook(BadAccessHook hook);

namespace detail {
[[noreturn]] LOOM_API void bad_access(const Error* error);  // null: the Result had not failed
[[noreturn]] LOOM_API void exit_with(const Error& error);
}  // namespace detail

template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(Error error)
      : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return *held(); }
  const T& value() const& { return *held(); }
  T&& value() && { return std::move(*held()); }
  T& operator*() & { return *held(); }
  const T& operator*() const& { return *held(); }
  T&& operator*() && { return std::move(*held()); }
  T* operator->() { return held(); }
  const T* operator->() const { return held(); }

  const Error& error() const {
    const Error* error = std::get_if<1>(&state_);
    if (error == nullptr) [[unlikely]]
      detail::bad_access(nullptr);
    return *error;
  }

  // The value, or `other` if there is none.
  template <class U>
  T value_or(U&& other) const& {
    return ok() ? *held() : static_cast<T>(std::forward<U>(other));
  }
  template <class U>
  T value_or(U&& other) && {
    return ok() ? std::move(*held()) : static_cast<T>(std::forward<U>(other));
  }
  // f(value), which is a Result, or this Error.
  template <class F>
  auto and_then(F&& f) && -> std::invoke_result_t<F, T&&> {
    if (!ok()) return error();
    return std::forward<F>(f)(std::move(*held()));
  }
  template <class F>
  auto and_then(F&& f) const& -> std::invoke_result_t<F, const T&> {
    if (!ok()) return error();
    return std::forward<F>(f)(*held());
  }
  // f(value) as a Result, or this Error.
  template <class F>
  auto transform(F&& f) && -> Result<std::invoke_result_t<F, T&&>> {
    if (!ok()) return error();
    return std::forward<F>(f)(std::move(*held()));
  }
  // The value. If there is none, prints the Error on stderr and exits with status 1. For examples
  // and one-file tools.
  T or_exit() && {
    if (!ok()) detail::exit_with(error());
    return std::move(*held());
  }

 private:
  T* held() {
    T* value = std::get_if<0>(&state_);
    if (value == nullptr) [[unlikely]]
      detail::bad_access(std::get_if<1>(&state_));
    return value;
  }
  const T* held() const { return const_cast<Result*>(this)->held(); }

  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;

  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const {
    if (!error_) [[unlikely]]
      detail::bad_access(nullptr);
    return *error_;
  }
  // f(), which is a Result, or this Error.
  template <class F>
  auto and_then(F&& f) const -> std::invoke_result_t<F> {
    if (error_) return *error_;
    return std::forward<F>(f)();
  }
  void or_exit() const {
    if (error_) detail::exit_with(*error_);
  }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace loom

#define LOOM_CONCAT_INNER(a, b) a##b
#define LOOM_CONCAT(a, b) LOOM_CONCAT_INNER(a, b)

// Returns the error of `expr`, if any, from the calling function.
#define LOOM_TRY(expr)                                         \
  do {                                                         \
    auto loom_try_status = (expr);                             \
    if (!loom_try_status.ok()) return loom_try_status.error(); \
  } while (0)

// LOOM_ASSIGN(auto x, f()): x = value of f(), or return its error.
#define LOOM_ASSIGN(decl, expr) LOOM_ASSIGN_INNER(LOOM_CONCAT(loom_result_, __LINE__), decl, expr)
#define LOOM_ASSIGN_INNER(tmp, decl, expr) \
  auto tmp = (expr);                       \
  if (!tmp.ok()) return tmp.error();       \
  decl = std::move(tmp).value()
