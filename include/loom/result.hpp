// Error, Result<T>, Status: how every fallible function of Loom answers.
// Not a general expected<>: no monadic chains, no exceptions. A Result holds a value or an Error,
// never neither. An Error prints as one line: what went wrong, where (file, offset, key), what to
// do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace loom {

enum class Code : int32_t {
  ok = 0,
  invalid_argument = 1,  // the caller passed something that can never work
  not_found = 2,         // a file, tensor or name that does not exist
  io_error = 3,          // the operating system refused to read or write
  bad_file = 4,          // bytes that are not what their format says
  unsupported = 5,       // well-formed, but this build or machine cannot do it
  out_of_memory = 6,
  out_of_range = 7,  // an index, id or position beyond its limit
  cancelled = 8,
  internal = 9,  // a bug of ours; please report
};

std::string_view code_name(Code code);

struct Error {
  Code code = Code::internal;
  std::string message;  // what, and what to do
  std::string where;    // file, tensor or field; may be empty
  int64_t offset = -1;  // byte offset in `where`, or -1

  // "where: at byte N: message", with the absent parts left out.
  std::string str() const;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(Error error)
      : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace loom

#define LOOM_CONCAT_INNER(a, b) a##b
#define LOOM_CONCAT(a, b) LOOM_CONCAT_INNER(a, b)

// Returns the error of `expr` from the calling function, if there is one.
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
