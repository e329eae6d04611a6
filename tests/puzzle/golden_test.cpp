// Puzzles against text that this repository has: every step on small grids, computed by
// tools/goldens/puzzle_steps.py; puzzles with answers written by hand; the generated puzzles, the
// course of evolution and answers of training by their values.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <span>
#include <sstream>

#include "backend/cpu/cpu.hpp"
#include "base/threads/thread_pool.hpp"
#include "io/bytes/hash.hpp"
#include "puzzle/generator.hpp"
#include "puzzle/program.hpp"
#include "puzzle/test_time.hpp"
#include "support/paths.hpp"

namespace loom::core::test {
namespace {

// Reads "102/030". An empty grid is "-".
PuzzleGrid parsed(const std::string& text) {
  if (text == "-") return {};
  const size_t cols = std::min(text.find('/'), text.size());
  PuzzleGrid g(static_cast<int>((text.size() + 1) / (cols + 1)), static_cast<int>(cols));
  size_t at = 0;
  for (const char c : text)
    if (c != '/') g.cells[at++] = static_cast<uint8_t>(c - '0');
  return g;
}

std::string shown(const PuzzleGrid& g) {
  std::string text;
  for (int r = 0; r < g.rows; ++r) {
    if (r > 0) text += '/';
    for (int c = 0; c < g.cols; ++c) text += static_cast<char>('0' + g.at(r, c));
  }
  return text.empty() ? "-" : text;
}

std::vector<std::string> words(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> all;
  for (std::string word; in >> word;) all.push_back(word);
  return all;
}

std::vector<std::string> lines_of(const std::string& file) {
  std::ifstream in(loom_test::source_path("tests/puzzle/golden/" + file));
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);)
    if (!line.empty() && line[0] != '#') lines.push_back(line);
  return lines;
}

GridOp op_of(const std::string& name) {
  for (int i = 0; i < kGridOps; ++i) {
    const auto op = static_cast<GridOp>(i);
    if (step_text({op}).starts_with(name) && words(step_text({op}))[0] == name) return op;
  }
  return GridOp::kCount;
}

TEST(GridSteps, GiveTheGridsOfTheGoldenFile) {
  std::map<GridOp, int> cases;
  for (const std::string& line : lines_of("steps.txt")) {
    const std::vector<std::string> row = words(line);
    ASSERT_GE(row.size(), 3U) << line;
    GridStep step{op_of(row[0])};
    ASSERT_NE(step.op, GridOp::kCount) << line;
    if (row.size() > 3) step.a = static_cast<uint8_t>(row[1][0] - '0');
    if (row.size() > 4) step.b = static_cast<uint8_t>(row[2][0] - '0');
    ++cases[step.op];
    EXPECT_EQ(shown(apply(step, parsed(row[row.size() - 2]))), row.back()) << line;
  }
  EXPECT_EQ(cases.size(), static_cast<size_t>(kGridOps)) << "each step has cases";
}

struct Solved {
  Puzzle puzzle;
  std::string program;
};

std::vector<Solved> solved_puzzles() {
  std::vector<Solved> all;
  for (const std::string& line : lines_of("puzzles.txt")) {
    const std::vector<std::string> row = words(line);
    if (row[0] == "puzzle") {
      all.emplace_back().puzzle.name = row[1];
    } else if (row[0] == "program") {
      all.back().program = line.substr(row[0].size() + 1);
    } else {
      auto& pairs = row[0] == "train" ? all.back().puzzle.train : all.back().puzzle.test;
      pairs.push_back({parsed(row[1]), parsed(row[2])});
    }
  }
  return all;
}

TEST(Programs, ThatAreFoundAnswerTheGoldenPuzzles) {
  const std::vector<Solved> all = solved_puzzles();
  ASSERT_EQ(all.size(), 8U);
  for (const Solved& one : all) {
    const ProgramSearch found = search_programs(one.puzzle);
    EXPECT_EQ(found.program ? program_text(*found.program) : "-", one.program) << one.puzzle.name;
    if (!found.program) continue;
    EXPECT_NEAR(found.fitness, 1, 1e-12) << one.puzzle.name;
    for (const PuzzlePair& test : one.puzzle.test)
      EXPECT_EQ(shown(run_program(*found.program, test.in)), shown(test.out)) << one.puzzle.name;
  }
}

TEST(Programs, OfEvolutionTakeTheGoldenNumberOfEvaluations) {
  std::string course;
  for (const Solved& one : solved_puzzles()) {
    const ProgramSearch found =
        evolve_program(one.puzzle, {.population = 80, .generations = 12, .seed = 3});
    course += one.puzzle.name + " " + std::to_string(found.evaluations) + " " +
              (found.program ? program_text(*found.program) : "-") + "\n";
  }
  EXPECT_EQ(course, R"(mirror 1 flip_sides
one_colour 49 recolour 2 5
inside 69 fill_inside 4
object 17 keep_largest
kaleidoscope 24 mirror_beside
object_twice 958 -
sand 12 fall_down
colours_by_count 920 -
)");
}

TEST(Generator, GivesTheGoldenPuzzles) {
  std::string hashes;
  for (int i = 0; i < kPuzzleFamilies; ++i) {
    const auto family = static_cast<PuzzleFamily>(i);
    std::string text;
    for (int64_t k = 0; k < 5; ++k) text += puzzle_json(make_puzzle(family, 11, k));
    hashes +=
        std::string(family_name(family)) + " " + hash_hex(std::as_bytes(std::span(text))) + "\n";
  }
  EXPECT_EQ(hashes, R"(symmetry 53c66c2c30fd265bd6a7cd2cae850236
colours 00f90042a48309544775283e6c3a98a1
motion ef37c3471a19ec10758b06683c70b30c
things 6360d54812a60a231fcf6cccebf18716
sizes 1f2ec457df111bf4e715902f70c43f80
completion 22169a740c38cb75ab3314b56b5af058
two_steps 61e1a025b7b2d1c5c47cc1dcd61ac62b
neighbours 21624dd38925a72976f78cbe9cf27d60
counting 1f21dbeb066dbe5615ee40bd282fbcb6
)");
}

TEST(TestTimeTraining, GivesTheGoldenAnswers) {
  ThreadPool pool(1);
  std::string answers;
  for (const Solved& one : solved_puzzles()) {
    if (one.puzzle.name != "one_colour" && one.puzzle.name != "sand") continue;
    const Result<TestTimeAnswer> answer =
        train_at_test_time(one.puzzle, {.steps = 120, .batch = 16}, cpu_ops(best_isa()), pool);
    ASSERT_TRUE(answer.ok()) << answer.error().str();
    answers += one.puzzle.name + " " + shown(answer->answers[0]) + "\n";
  }
  EXPECT_EQ(answers, "one_colour 555/555\nsand 00/00/50\n");
}

}  // namespace
}  // namespace loom::core::test
