// Libraries that are opened at run time, so that a program needs none of them to start. They stay
// open until the process ends. On systems without such a thing every library is missing.
#pragma once

#include <string>

namespace loom::core {

// Null: there is none of that name or path; shared_library_error() says why.
void* open_shared_library(const char* name);
std::string shared_library_error();

// Null: the library has none of that name.
void* shared_symbol(void* library, const char* name);

// false: the library has no function of that name.
template <class F>
bool find_function(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(shared_symbol(library, name));
  return function != nullptr;
}

}  // namespace loom::core
