// Puzzles of coloured grids: files as the public corpus has them and hostile ones, steps against
// what they must keep, and that evolution explains what the baseline can.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "backend/cpu/cpu.hpp"
#include "base/threads/thread_pool.hpp"
#include "evolve/draws.hpp"
#include "puzzle/generator.hpp"
#include "puzzle/program.hpp"
#include "puzzle/test_time.hpp"

namespace loom::core::test {
namespace {

using testing::HasSubstr;

PuzzleGrid grid_of(const std::vector<std::vector<int>>& rows) {
  PuzzleGrid g(static_cast<int>(rows.size()), static_cast<int>(rows[0].size()));
  for (int r = 0; r < g.rows; ++r) {
    for (int c = 0; c < g.cols; ++c)
      g.at(r, c) = static_cast<uint8_t>(rows[static_cast<size_t>(r)][static_cast<size_t>(c)]);
  }
  return g;
}

PuzzleGrid random_grid(Draws& draws) {
  PuzzleGrid g(1 + static_cast<int>(draws.below(9)), 1 + static_cast<int>(draws.below(9)));
  for (uint8_t& v : g.cells)
    v = draws.chance(0.5) ? uint8_t{0} : static_cast<uint8_t>(draws.below(kPuzzleColours));
  return g;
}

TEST(PuzzleFile, IsReadAsThePublicCorpusHasIt) {
  const Result<Puzzle> p = parse_puzzle(
      R"({"train": [{"input": [[0, 1], [2, 3]], "output": [[9]]}], "test": [{"input": [[7]]}]})",
      "folder/a1.json");
  ASSERT_TRUE(p.ok());
  EXPECT_EQ(p->name, "a1.json");
  EXPECT_EQ(p->train[0].in, grid_of({{0, 1}, {2, 3}}));
  EXPECT_EQ(p->train[0].out, grid_of({{9}}));
  EXPECT_TRUE(p->test[0].out.empty());
}

TEST(PuzzleFile, ThatIsHostileIsRefusedInOneLine) {
  const auto with = [](const std::string& grid) {
    return R"({"train": [{"input": )" + grid +
           R"(, "output": [[1]]}], "test": [{"input": [[1]]}]})";
  };
  std::string wide = "[[0", tall = "[[0]", large = R"({"train": [)";
  for (int i = 0; i < 30; ++i) {
    wide += ",0";
    tall += ",[0]";
  }
  for (int i = 0; i < 65; ++i)
    large += std::string(i == 0 ? "" : ",") + R"({"input": [[1]], "output": [[1]]})";
  const std::pair<std::string, const char*> cases[] = {
      {"", "byte"},
      {"[]", "train"},
      {R"({"train": [], "test": []})", "train"},
      {R"({"train": [{"input": [[1]]}], "test": [{"input": [[1]]}]})", "train[0].output"},
      {with("[]"), "0 rows"},
      {with("[[]]"), "0 columns"},
      {with("[[1], [1, 2]]"), "row 1"},
      {with("[[10]]"), "colour is 10"},
      {with("[[-1]]"), "colour is -1"},
      {with("[[1.5]]"), "input"},
      {with("[[\"1\"]]"), "input"},
      {with("[1]"), "columns"},
      {with("{}"), "grid"},
      {with(wide + "]]"), "31 columns"},
      {with(tall + "]"), "31 rows"},
      {large + R"(], "test": [{"input": [[1]]}]})", "65 pairs"},
  };
  for (const auto& [text, says] : cases) {
    const Result<Puzzle> p = parse_puzzle(text, "x.json");
    ASSERT_FALSE(p.ok()) << text;
    EXPECT_EQ(p.error().code, Code::bad_file) << text;
    EXPECT_THAT(p.error().str(), HasSubstr(says));
    EXPECT_EQ(p.error().str().find('\n'), std::string::npos);
  }
}

TEST(PuzzleFile, CutAnywhereOrWithAnyBitTurnedEndsInAPuzzleOrAnError) {
  const std::string whole = puzzle_json(make_puzzle(PuzzleFamily::symmetry, 3, 0));
  for (size_t n = 0; n < whole.size(); n += 3)
    EXPECT_FALSE(parse_puzzle(whole.substr(0, n), "x").ok());
  for (size_t i = 0; i < whole.size(); i += 2) {
    std::string text = whole;
    text[i] = static_cast<char>(text[i] ^ (1 << (i % 8)));
    const Result<Puzzle> p = parse_puzzle(text, "x");
    if (!p.ok()) continue;
    for (const PuzzlePair& pair : p->train)
      EXPECT_TRUE(std::ranges::all_of(pair.in.cells, [](uint8_t v) { return v < 10; }));
  }
}

TEST(PuzzleFile, ComesBackAsItWasWritten) {
  for (int i = 0; i < kPuzzleFamilies; ++i) {
    const Puzzle p = make_puzzle(static_cast<PuzzleFamily>(i), 5, 2);
    const Result<Puzzle> back = parse_puzzle(puzzle_json(p), "x");
    ASSERT_TRUE(back.ok()) << back.error().str();
    EXPECT_EQ(back->train, p.train);
    EXPECT_EQ(back->test, p.test);
  }
}

TEST(GridSteps, DoWhatTheirNamesSay) {
  const PuzzleGrid g = grid_of({{1, 0, 2}, {0, 3, 0}});
  const std::pair<GridStep, PuzzleGrid> cases[] = {
      {{GridOp::flip_sides}, grid_of({{2, 0, 1}, {0, 3, 0}})},
      {{GridOp::flip_ends}, grid_of({{0, 3, 0}, {1, 0, 2}})},
      {{GridOp::transpose}, grid_of({{1, 0}, {0, 3}, {2, 0}})},
      {{GridOp::turn_right}, grid_of({{0, 1}, {3, 0}, {0, 2}})},
      {{GridOp::turn_left}, grid_of({{2, 0}, {0, 3}, {1, 0}})},
      {{GridOp::shift_right}, grid_of({{2, 1, 0}, {0, 0, 3}})},
      {{GridOp::shift_down}, grid_of({{0, 3, 0}, {1, 0, 2}})},
      {{GridOp::fall_down}, grid_of({{0, 0, 0}, {1, 3, 2}})},
      {{GridOp::fall_up}, grid_of({{1, 3, 2}, {0, 0, 0}})},
      {{GridOp::fall_left}, grid_of({{1, 2, 0}, {3, 0, 0}})},
      {{GridOp::fall_right}, grid_of({{0, 1, 2}, {0, 0, 3}})},
      {{GridOp::lines_across}, grid_of({{1, 1, 2}, {3, 3, 3}})},
      {{GridOp::lines_down}, grid_of({{1, 3, 2}, {1, 3, 2}})},
      {{GridOp::mirror_beside}, grid_of({{1, 0, 2, 2, 0, 1}, {0, 3, 0, 0, 3, 0}})},
      {{GridOp::left_half}, grid_of({{1}, {0}})},
      {{GridOp::right_half}, grid_of({{2}, {0}})},
      {{GridOp::recolour, 3, 5}, grid_of({{1, 0, 2}, {0, 5, 0}})},
      {{GridOp::swap, 1, 2}, grid_of({{2, 0, 1}, {0, 3, 0}})},
      {{GridOp::keep, 3}, grid_of({{0, 0, 0}, {0, 3, 0}})},
      {{GridOp::paint, 4}, grid_of({{4, 0, 4}, {0, 4, 0}})},
  };
  for (const auto& [step, expected] : cases) EXPECT_EQ(apply(step, g), expected) << step_text(step);
  const PuzzleGrid ring = grid_of({{5, 5, 5, 0}, {5, 0, 5, 1}, {5, 5, 5, 0}});
  EXPECT_EQ(apply({GridOp::fill_inside, 7}, ring).at(1, 1), 7);
  EXPECT_EQ(apply({GridOp::fill_inside, 7}, ring).at(0, 3), 0);
  EXPECT_EQ(apply({GridOp::crop_largest}, grid_of({{0, 4, 4}, {1, 0, 0}})), grid_of({{4, 4}}));
  EXPECT_TRUE(apply({GridOp::crop}, PuzzleGrid(2, 2)).empty());
  EXPECT_TRUE(apply({GridOp::triple_size}, PuzzleGrid(11, 2)).empty());
}

TEST(GridSteps, KeepWhatTheyMustOnRandomGrids) {
  Draws draws(9, 1);
  const std::pair<GridOp, GridOp> inverse[] = {
      {GridOp::flip_sides, GridOp::flip_sides},  {GridOp::turn_left, GridOp::turn_right},
      {GridOp::transpose, GridOp::transpose},    {GridOp::transpose_other, GridOp::transpose_other},
      {GridOp::shift_left, GridOp::shift_right}, {GridOp::shift_up, GridOp::shift_down}};
  const GridOp settled[] = {GridOp::fall_down,    GridOp::fall_left,    GridOp::crop,
                            GridOp::keep_largest, GridOp::lines_across, GridOp::complete_sides};
  for (int i = 0; i < 200; ++i) {
    const PuzzleGrid g = random_grid(draws);
    for (const auto& [there, back] : inverse) EXPECT_EQ(apply({back}, apply({there}, g)), g);
    for (const GridOp op : settled) {
      const PuzzleGrid once = apply({op}, g);
      if (!once.empty()) {
        EXPECT_EQ(apply({op}, once), once) << step_text({op});
      }
    }
    for (int op = 0; op < kGridOps; ++op) {
      const PuzzleGrid out = apply({static_cast<GridOp>(op), 1, 2}, g);
      EXPECT_LE(out.rows, kMaxPuzzleSide);
      EXPECT_EQ(out.cells.size(), static_cast<size_t>(out.rows * out.cols));
      EXPECT_TRUE(std::ranges::all_of(out.cells, [](uint8_t v) { return v < kPuzzleColours; }));
    }
    // Falling cells keep their colours.
    std::map<int, int> before, after;
    const PuzzleGrid down = apply({GridOp::fall_down}, g);
    for (const uint8_t v : g.cells) ++before[v];
    for (const uint8_t v : down.cells) ++after[v];
    EXPECT_EQ(before, after);
  }
}

TEST(Generator, GivesTheSamePuzzlesForTheSameSeedAndNoneThatIsTrivial) {
  for (int i = 0; i < kPuzzleFamilies; ++i) {
    const auto family = static_cast<PuzzleFamily>(i);
    for (int64_t k = 0; k < 5; ++k) {
      const Puzzle p = make_puzzle(family, 11, k);
      EXPECT_EQ(puzzle_json(p), puzzle_json(make_puzzle(family, 11, k)));
      EXPECT_NE(puzzle_json(p), puzzle_json(make_puzzle(family, 12, k)));
      EXPECT_GE(p.train.size(), 3U);
      for (const PuzzlePair& pair : p.train) EXPECT_FALSE(pair.in == pair.out);
    }
  }
}

TEST(Programs, OfEvolutionExplainWhatTheBaselineExplains) {
  for (int i = 0; i < static_cast<int>(PuzzleFamily::two_steps); ++i) {
    const Puzzle p = make_puzzle(static_cast<PuzzleFamily>(i), 21, 0);
    const ProgramSearch all = search_programs(p);
    ASSERT_TRUE(all.program.has_value()) << p.name;
    const ProgramSearch evolved = evolve_program(p, {.population = 200, .generations = 20});
    ASSERT_TRUE(evolved.program.has_value()) << p.name;
    for (const PuzzlePair& pair : p.train)
      EXPECT_EQ(run_program(*evolved.program, pair.in), pair.out);
  }
}

TEST(Programs, AreTheSameForTheSameSeed) {
  const Puzzle p = make_puzzle(PuzzleFamily::two_steps, 4, 1);
  const ProgramSearch a = evolve_program(p, {.population = 60, .generations = 10, .seed = 2});
  const ProgramSearch b = evolve_program(p, {.population = 60, .generations = 10, .seed = 2});
  EXPECT_EQ(a.evaluations, b.evaluations);
  EXPECT_EQ(a.fitness, b.fitness);
}

TEST(TestTimeTraining, ComesNearerToARuleOfNeighboursThanLeavingGridsAsTheyAre) {
  ThreadPool pool(1);
  double answered = 0, left = 0;
  for (int64_t k = 0; k < 4; ++k) {
    const Puzzle p = make_puzzle(PuzzleFamily::neighbours, 31, k);
    const Result<TestTimeAnswer> answer =
        train_at_test_time(p, {.steps = 300}, cpu_ops(best_isa()), pool);
    ASSERT_TRUE(answer.ok()) << answer.error().str();
    ASSERT_TRUE(answer->applies);
    for (size_t i = 0; i < p.test.size(); ++i) {
      answered += likeness(answer->answers[i], p.test[i].out);
      left += likeness(p.test[i].in, p.test[i].out);
    }
  }
  EXPECT_GT(answered, left);
}

TEST(TestTimeTraining, LeavesPuzzlesAloneWhoseGridsChangeTheirSize) {
  ThreadPool pool(1);
  const Result<TestTimeAnswer> answer = train_at_test_time(
      make_puzzle(PuzzleFamily::counting, 1, 0), {.steps = 1}, cpu_ops(best_isa()), pool);
  ASSERT_TRUE(answer.ok());
  EXPECT_FALSE(answer->applies);
}

}  // namespace
}  // namespace loom::core::test
