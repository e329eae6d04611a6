// Libraries that are opened at run time, so that a program starts without them. They stay open
// until the process ends. On systems without dynamic loading every library is missing.
#pragma once

#include <string>

namespace loom::core {

// May be null: no library has that name or path; shared_library_error() has the reason.
void* open_shared_library(const char* name);
std::string shared_library_error();

// May be null: the library has no such symbol.
void* shared_symbol(void* library, const char* name);

// False if the library has no function of that name.
template <class F>
bool find_function(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(shared_symbol(library, name));
  return function != nullptr;
}

}  // namespace loom::core
