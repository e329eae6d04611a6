// <errno.h> of wasi-libc. The library has one number for all threads, but its header declares one
// for each.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

extern int errno;
#define errno errno

#ifdef __cplusplus
}
#endif
