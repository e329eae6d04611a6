// The program of GoogleTest as one function of a module that stays: functions of a module with
// _start begin and end the program each time that they are called, and the answers of a GPU come by
// such a function.
#include <cstdio>

extern "C" int __main_void(void);

extern "C" __attribute__((export_name("run"))) int run() {
  const int status = __main_void();
  std::fflush(nullptr);
  return status;
}
