// Command lines with mistakes, as people typed them, each with its exit code and its first line on
// stderr: tests/data/mistakes/lines.txt. With LOOM_MISTAKES_WRITE=FILE the answers of today are
// output_file to FILE, in the same form. In an expected line, * stands for any text.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "e2e/program.hpp"
#include "support/paths.hpp"

namespace loom::core::test {
namespace {

namespace fs = std::filesystem;

struct Mistake {
  std::string line;    // "loom trian n.json num3.csv"
  std::string answer;  // "2 there is no command 'loom trian' ..."
};

std::vector<Mistake> mistakes() {
  std::ifstream file(loom_test::source_path("tests/data/mistakes/lines.txt"));
  std::vector<Mistake> all;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("$ ")) all.push_back({line.substr(2), ""});
    if (line.starts_with("  ")) all.back().answer = line.substr(2);
  }
  return all;
}

bool matches(std::string_view pattern, std::string_view text) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  for (size_t at = star; at <= text.size(); ++at)
    if (matches(pattern.substr(star + 1), text.substr(at))) return true;
  return false;
}

// The exit code, and the first line that is an error: those of notes are in brackets.
std::string answer_of(const Mistake& mistake) {
  const TempFolder folder;
  const fs::path to(folder.path());
  fs::copy(loom_test::source_path("tests/data/mistakes/files"), to);
  fs::create_symlink(loom_test::source_path("models/stories.entity"), to / "stories.entity");
  fs::create_symlink(loom_test::source_path("examples/data/fruit.csv"), to / "fruit.csv");
  fs::create_symlink(loom_test::source_path("examples/data/digits.gz"), to / "digits.gz");
  for (const char* labels : {"digit-labels.gz", "digits-test.gz"})
    fs::create_symlink(loom_test::source_path(std::string("examples/data/") + labels), to / labels);
  const Ran ran = run_loom(mistake.line.substr(5),
                           "cd '" + folder.path() + "' && HOME=/nowhere HF_HUB_OFFLINE=1 ");
  std::string error;
  for (size_t at = 0; at < ran.err.size() && error.empty();) {
    const size_t end = std::min(ran.err.find('\n', at), ran.err.size());
    const std::string line = ran.err.substr(at, end - at);
    if (line.starts_with("loom: ")) error = line.substr(6);
    at = end + 1;
  }
  return std::to_string(ran.code) + (error.empty() ? "" : " " + error);
}

TEST(Mistakes, EachHasItsAnswer) {
  const char* output_file = std::getenv("LOOM_MISTAKES_WRITE");
  std::string text;
  for (const Mistake& mistake : mistakes()) {
    const std::string answer = answer_of(mistake);
    const bool expected = matches(mistake.answer, answer);
    text += "$ " + mistake.line + "\n  " + (expected ? mistake.answer : answer) + "\n";
    if (output_file == nullptr && !expected)
      ADD_FAILURE() << "$ " << mistake.line << "\n  " << answer;
  }
  if (output_file != nullptr) std::ofstream(output_file) << text;
}

}  // namespace
}  // namespace loom::core::test
