// A fitness from a user's program: it gets the file of a network and prints one number.
#pragma once

#include <string>
#include <vector>

#include "loom/loom.hpp"

namespace loom::cli {

// The end of a program's output, for quotes, and its exit status.
struct ProgramEnd {
  std::string out, err;  // the last 64 KiB of each
  int exit = -1;         // its exit status; -1 if a signal ended it
  int signal = 0;
  bool late = false;  // it exceeded its time and was ended
};

// Runs `command` in a shell, with `argument` as its last argument; all processes that it started
// end with it. Errors: io_error (no process), cancelled (Ctrl-C).
Result<ProgramEnd> run_program(const std::string& command, const std::string& argument,
                               double seconds);

// The number on the last line of the output of `command`. Errors: io_error (it failed, hung or
// printed no number), which quotes the command, and those of run_program.
Result<double> fitness_of(const std::string& command, const std::string& network, double seconds);

}  // namespace loom::cli
