// <errno.h> of wasi-libc, whose library has one number for all threads while its header says one for each.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

extern int errno;
#define errno errno

#ifdef __cplusplus
}
#endif
