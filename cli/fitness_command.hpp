// A fitness from a program of the user's: it gets the file of a network and prints one number.
#pragma once

#include <string>
#include <vector>

#include "loom/loom.hpp"

namespace loom::cli {

// What a program said, as far as it can be quoted, and how it ended.
struct ProgramEnd {
  std::string out, err;  // the last 64 KiB of each
  int exit = -1;         // its exit status; -1: a signal ended it
  int signal = 0;
  bool late = false;  // it ran longer than it may and was ended
};

// Runs `command` in a shell, with `argument` as its last argument, and all that it started is ended
// with it. Errors: io_error (no process), cancelled (Ctrl-C).
Result<ProgramEnd> run_program(const std::string& command, const std::string& argument,
                               double seconds);

// The number on the last line of what `command` prints. Errors: io_error (it failed, hung
// or printed no number), in which the command is quoted, and those of run_program.
Result<double> fitness_of(const std::string& command, const std::string& network, double seconds);

}  // namespace loom::cli
