#include "base/result.hpp"

namespace loom {

std::string_view code_name(Code code) {
  switch (code) {
    case Code::ok: return "ok";
    case Code::invalid_argument: return "invalid argument";
    case Code::not_found: return "not found";
    case Code::io_error: return "i/o error";
    case Code::bad_file: return "bad file";
    case Code::unsupported: return "unsupported";
    case Code::out_of_memory: return "out of memory";
    case Code::out_of_range: return "out of range";
    case Code::cancelled: return "cancelled";
    case Code::internal: return "internal error";
  }
  return "unknown code";
}

std::string Error::str() const {
  std::string line;
  if (!where.empty()) line += where + ": ";
  if (offset >= 0) line += "at byte " + std::to_string(offset) + ": ";
  return line + message;
}

}  // namespace loom
