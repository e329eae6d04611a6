// What the headers of libc++ throw where a caller breaks a rule of theirs. Nothing can catch it
// here: the module traps, and its host tells so.
#include <cstddef>

extern "C" {
[[noreturn]] void* __cxa_allocate_exception(size_t) {
  __builtin_trap();
}
[[noreturn]] void __cxa_throw(void*, void*, void (*)(void*)) {
  __builtin_trap();
}
}
