// The program of GoogleTest as one function of a module that stays loaded. In a module with _start,
// each call of a function begins and ends the program. But the answers of a GPU arrive by such
// calls.
#include <cstdio>

extern "C" int __main_void(void);

extern "C" __attribute__((export_name("run"))) int run() {
  const int status = __main_void();
  std::fflush(nullptr);
  return status;
}
