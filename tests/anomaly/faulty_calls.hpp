// Faults in the system calls of saving: the n-th one fails, is interrupted, writes less than
// requested, or kills the process. faulty_calls.cpp replaces calls of the C library in this test
// program only; the program and the library have no hooks.
#pragma once

#include <string>

namespace loom::core::test {

// `remove` (unlinkat) only counts if the fault is death: clean-up ignores errors.
enum class Call {
  open,
  write,
  pwrite,
  fsync,
  close,
  rename,
  link,
  fchmod,
  mkdir,
  exchange,
  remove
};

enum class Fault {
  error,        // fails with `error_number`
  errors,       // that one and all after it fail; close() still closes
  short_write,  // write and pwrite take half of the bytes, others are as ever
  death,        // SIGKILL instead of the call; write and pwrite first take half of the bytes
};

struct FaultPlan {
  Fault fault = Fault::error;
  int at = 0;  // which call, from 1; 0 only counts calls
  int error_number = 0;
};

// Counts calls from here to the end of its life, one at a time.
class Faults {
 public:
  explicit Faults(const FaultPlan& plan);
  ~Faults();
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;
  int calls() const;
  bool happened() const;  // was the n-th call made?
};

// Every call named `call` fails with `error_number` from now on; 0 ends this.
void fail_every(Call call, int error_number);

}  // namespace loom::core::test
