// CHECK for fuzz targets: a property that must hold for every input. Unlike assert it is never
// compiled out; it traps, which libFuzzer reports as a crash with the input.
#pragma once

#include <cstdio>

#define CHECK(condition)                                                         \
  do {                                                                           \
    if (!(condition)) {                                                          \
      std::fprintf(stderr, "%s:%d: CHECK %s\n", __FILE__, __LINE__, #condition); \
      __builtin_trap();                                                          \
    }                                                                            \
  } while (0)
