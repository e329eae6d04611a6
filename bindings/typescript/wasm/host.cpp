// Parts of the module besides the library. The C interface is exported (cmake/wasm_module.cmake).
// If memory runs out, the host gets a message. Locks surround the allocator of wasi-libc, which
// does not support threads. The host's functions (import module "loom_host") are in
// bindings/typescript/src/module.ts.
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <new>

#define LOOM_HOST(name) __attribute__((import_module("loom_host"), import_name(name)))

// Ends the call with an exception of the host; the module is not used after it.
extern "C" LOOM_HOST("out_of_memory") [[noreturn]] void loom_host_out_of_memory(size_t bytes);

extern "C" {
void* __real_malloc(size_t);
void* __real_calloc(size_t, size_t);
void* __real_realloc(void*, size_t);
void* __real_aligned_alloc(size_t, size_t);
int __real_posix_memalign(void**, size_t, size_t);
void __real_free(void*);
}

namespace {

std::mutex& heap() {
  static std::mutex mutex;
  return mutex;
}

void* or_fail(void* memory, size_t bytes) {
  if (memory == nullptr) loom_host_out_of_memory(bytes);
  return memory;
}

}  // namespace

extern "C" {
void* __wrap_malloc(size_t bytes) {
  const std::lock_guard<std::mutex> lock(heap());
  return __real_malloc(bytes);
}
void* __wrap_calloc(size_t count, size_t bytes) {
  const std::lock_guard<std::mutex> lock(heap());
  return __real_calloc(count, bytes);
}
void* __wrap_realloc(void* memory, size_t bytes) {
  const std::lock_guard<std::mutex> lock(heap());
  return __real_realloc(memory, bytes);
}
void* __wrap_aligned_alloc(size_t alignment, size_t bytes) {
  const std::lock_guard<std::mutex> lock(heap());
  return __real_aligned_alloc(alignment, bytes);
}
int __wrap_posix_memalign(void** out, size_t alignment, size_t bytes) {
  const std::lock_guard<std::mutex> lock(heap());
  return __real_posix_memalign(out, alignment, bytes);
}
void __wrap_free(void* memory) {
  const std::lock_guard<std::mutex> lock(heap());
  __real_free(memory);
}

// Memory for the host to write arguments to; null where there is none. Begins at a multiple of 64,
// as readers of packed weights expect.
__attribute__((export_name("loom_host_allocate"))) void* loom_host_allocate(size_t bytes) {
  return aligned_alloc(64, (bytes + 63) / 64 * 64);
}
__attribute__((export_name("loom_host_free"))) void loom_host_free(void* memory) {
  free(memory);
}
}

void* operator new(size_t bytes) {
  return or_fail(malloc(bytes == 0 ? 1 : bytes), bytes);
}
void* operator new[](size_t bytes) {
  return operator new(bytes);
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  const auto multiple = static_cast<size_t>(alignment);
  return or_fail(aligned_alloc(multiple, (bytes + multiple - 1) / multiple * multiple), bytes);
}
void* operator new[](size_t bytes, std::align_val_t alignment) {
  return operator new(bytes, alignment);
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return malloc(bytes == 0 ? 1 : bytes);
}
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept {
  return malloc(bytes == 0 ? 1 : bytes);
}
void operator delete(void* memory) noexcept {
  free(memory);
}
void operator delete[](void* memory) noexcept {
  free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  free(memory);
}
void operator delete[](void* memory, size_t) noexcept {
  free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  free(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  free(memory);
}
void operator delete[](void* memory, size_t, std::align_val_t) noexcept {
  free(memory);
}
