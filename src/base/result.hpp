// Result<T> and Status for the rooms of the library, and helpers to make an Error.
#pragma once

#include "loom/result.hpp"

namespace loom::core {

inline Error make_error(Code code, std::string message, std::string where = {},
                        int64_t offset = -1) {
  return Error{code, std::move(message), std::move(where), offset};
}

inline Error invalid(std::string message, std::string where = {}) {
  return make_error(Code::invalid_argument, std::move(message), std::move(where));
}

inline Error bad_file(std::string message, std::string where = {}, int64_t offset = -1) {
  return make_error(Code::bad_file, std::move(message), std::move(where), offset);
}

inline Error unsupported(std::string message, std::string where = {}) {
  return make_error(Code::unsupported, std::move(message), std::move(where));
}

}  // namespace loom::core
