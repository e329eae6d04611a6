// Replaces the exceptions that the headers of libc++ throw for a broken precondition. Nothing can
// catch them here: the module traps, and its host reports it.
#include <cstddef>

extern "C" {
[[noreturn]] void* __cxa_allocate_exception(size_t) {
  __builtin_trap();
}
[[noreturn]] void __cxa_throw(void*, void*, void (*)(void*)) {
  __builtin_trap();
}
}
