// Runs `loom ARGS` in a shell and captures its output.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <string>

#include "e2e/temp_folder.hpp"
#include "support/paths.hpp"

namespace loom::core::test {

struct Ran {
  int code = -1;
  std::string out, err;
};

// `before`: text before the program's name, for example "timeout 5". `input`: its stdin.
inline Ran run_loom(const std::string& arguments, const std::string& before = "",
                    const std::string& input = "") {
  const TempFolder folder;
  const std::string in = folder.write("in", input);
  const std::string command = before + " '" + loom_test::program_path() + "' " + arguments + " <" +
                              in + " 2>" + folder.path() + "/err";
  Ran ran;
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return ran;
  int c = 0;
  while ((c = std::fgetc(pipe)) != EOF) ran.out += static_cast<char>(c);
  const int status = pclose(pipe);
  ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  ran.err = folder.read("err");
  return ran;
}

}  // namespace loom::core::test
