#include "base/shared_library.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <dlfcn.h>
#endif

namespace loom::core {

#if defined(__unix__) || defined(__APPLE__)

void* open_shared_library(const char* name) {
  return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

std::string shared_library_error() {
  const char* message = dlerror();
  return message == nullptr ? "cannot be opened" : message;
}

void* shared_symbol(void* library, const char* name) {
  return dlsym(library, name);
}

#else

void* open_shared_library(const char*) {
  return nullptr;
}
std::string shared_library_error() {
  return "libraries cannot be opened at run time on this system";
}
void* shared_symbol(void*, const char*) {
  return nullptr;
}

#endif

}  // namespace loom::core
