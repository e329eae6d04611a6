// The example of docs/entity.md is what its commands make, byte for byte.
#include <gtest/gtest.h>

#include <cstdio>

#include "e2e/program.hpp"
#include "io/file.hpp"

namespace loom {
namespace {

// Block number `n` of that kind in a page, without its line breaks.
std::string block(const std::string& page, const std::string& kind, int n) {
  size_t at = 0;
  for (int i = 0; i <= n; ++i) at = page.find("```" + kind + "\n", at) + kind.size() + 4;
  std::string text = page.substr(at, page.find("\n```", at) - at);
  text.erase(std::remove(text.begin(), text.end(), '\n'), text.end());
  return text;
}

// As od -A d -t x1z -v.
std::string dump(const std::string& bytes, size_t begin, size_t end) {
  std::string out;
  for (size_t line = begin; line < end; line += 16) {
    char text[16];
    std::snprintf(text, sizeof text, "%07zu", line);
    out += text;
    std::string readable;
    for (size_t i = line; i < line + 16; ++i) {
      std::snprintf(text, sizeof text, " %02x", static_cast<unsigned char>(bytes[i]));
      out += text;
      readable += bytes[i] >= 0x20 && bytes[i] < 0x7f ? bytes[i] : '.';
    }
    out += "  >" + readable + "<";
  }
  return out;
}

TEST(EntityPage, ShowsTheFileThatItsCommandsMake) {
  const test::TempFolder folder;
  const std::string net = folder.path() + "/tiny.json", tiny = folder.path() + "/tiny.entity";
  ASSERT_EQ(test::run_loom("new mlp --in 2 --out 1 -o " + net).code, 0);
  ASSERT_EQ(test::run_loom("convert " + net + " " + tiny).code, 0);
  const Result<std::string> page = read_file(std::string(LOOM_SOURCE_DIR) + "/docs/entity.md");
  ASSERT_TRUE(page.ok());
  const std::string file = *read_file(tiny);
  ASSERT_EQ(file.size(), 768u);
  EXPECT_EQ(block(*page, "hex", 0), dump(file, 0, 64));
  const std::string header = file.substr(64, 512);
  EXPECT_EQ(block(*page, "json", 0), header.substr(0, header.find_last_not_of(' ') + 1));
  EXPECT_EQ(block(*page, "hex", 1), dump(file, 576, 768));
}

}  // namespace
}  // namespace loom
