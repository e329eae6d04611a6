// The calls of wasi-libc to its host, with addresses of 64 bits. Those of the library itself cast every address to 32 bits
// (docs/decisions/0068-beyond-4-gib.md). What a module of Loom does not ask for is not here, and fails to link.
#include <stddef.h>
#include <stdint.h>
#include <wasi/api.h>

// One for all threads, as in the library for 32 bits.
int errno;

#define CALL(name, ...)                                                                                      \
  __attribute__((import_module("wasi_snapshot_preview1"), import_name(#name))) int32_t host_##name(__VA_ARGS__)
CALL(args_sizes_get, size_t*, size_t*);
CALL(args_get, uint8_t**, uint8_t*);
CALL(clock_time_get, int32_t, int64_t, uint64_t*);
CALL(fd_write, int32_t, const void*, size_t, size_t*);
CALL(fd_close, int32_t);
CALL(fd_seek, int32_t, int64_t, int32_t, uint64_t*);
CALL(fd_fdstat_get, int32_t, void*);
__attribute__((import_module("wasi_snapshot_preview1"), import_name("proc_exit"), noreturn)) void host_proc_exit(int32_t);

__wasi_errno_t __wasi_args_sizes_get(__wasi_size_t* count, __wasi_size_t* bytes) {
  return (__wasi_errno_t)host_args_sizes_get(count, bytes);
}
__wasi_errno_t __wasi_args_get(uint8_t** places, uint8_t* texts) {
  return (__wasi_errno_t)host_args_get(places, texts);
}
__wasi_errno_t __wasi_clock_time_get(__wasi_clockid_t clock, __wasi_timestamp_t precision, __wasi_timestamp_t* out) {
  return (__wasi_errno_t)host_clock_time_get((int32_t)clock, (int64_t)precision, out);
}
__wasi_errno_t __wasi_fd_write(__wasi_fd_t file, const __wasi_ciovec_t* pieces, size_t count, __wasi_size_t* written) {
  return (__wasi_errno_t)host_fd_write((int32_t)file, pieces, count, written);
}
__wasi_errno_t __wasi_fd_close(__wasi_fd_t file) {
  return (__wasi_errno_t)host_fd_close((int32_t)file);
}
__wasi_errno_t __wasi_fd_seek(__wasi_fd_t file, __wasi_filedelta_t by, __wasi_whence_t from, __wasi_filesize_t* at) {
  return (__wasi_errno_t)host_fd_seek((int32_t)file, by, from, at);
}
__wasi_errno_t __wasi_fd_fdstat_get(__wasi_fd_t file, __wasi_fdstat_t* out) {
  return (__wasi_errno_t)host_fd_fdstat_get((int32_t)file, out);
}
_Noreturn void __wasi_proc_exit(__wasi_exitcode_t code) {
  host_proc_exit((int32_t)code);
}
