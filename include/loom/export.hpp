// Symbol visibility: a shared library of Loom exports only names marked LOOM_API.
#pragma once

#if defined(__GNUC__) && !defined(_WIN32)
#define LOOM_API __attribute__((visibility("default")))
#define LOOM_LOCAL __attribute__((visibility("hidden")))
#else
#define LOOM_API
#define LOOM_LOCAL
#endif
