#include "base/result.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace loom {
namespace {

void print_line(const std::string& text) {
  std::fprintf(stderr, "loom: %s\n", text.c_str());
}

void print_bad_access(const Error& error) {
  print_line("the value of a failed Result was read: " + error.str());
}

std::atomic<BadAccessHook> bad_access_hook = print_bad_access;

}  // namespace

BadAccessHook set_bad_access_hook(BadAccessHook hook) {
  const BadAccessHook before = bad_access_hook.exchange(hook != nullptr ? hook : print_bad_access);
  return before == print_bad_access ? nullptr : before;
}

namespace detail {

void bad_access(const Error* error) {
  const Error none{Code::internal, "the error of a Result that did not fail was read", {}, -1};
  bad_access_hook.load()(error != nullptr ? *error : none);
  std::abort();
}

void exit_with(const Error& error) {
  print_line(error.str());
  std::exit(1);
}

}  // namespace detail

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
