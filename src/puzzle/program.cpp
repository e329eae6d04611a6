#include "puzzle/program.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include "evolve/draws.hpp"

namespace loom::core {
namespace {

constexpr uint64_t kProgramStream = uint64_t{1} << 55;

struct ProgramScore {
  std::vector<double> pairs;
  double mean = 0;
  bool all = true;
};

ProgramScore score_outputs(const Puzzle& puzzle, const std::vector<PuzzleGrid>& outputs) {
  ProgramScore out;
  for (size_t i = 0; i < outputs.size(); ++i) {
    out.pairs.push_back(likeness(outputs[i], puzzle.train[i].out));
    out.all = out.all && outputs[i] == puzzle.train[i].out;
    out.mean += out.pairs.back() / static_cast<double>(outputs.size());
  }
  return out;
}

ProgramScore score_program(const Puzzle& puzzle, const GridProgram& program) {
  std::vector<PuzzleGrid> outputs;
  for (const PuzzlePair& p : puzzle.train) outputs.push_back(run_program(program, p.in));
  return score_outputs(puzzle, outputs);
}

class Breeder {
 public:
  Breeder(const Puzzle& puzzle, const ProgramEvolution& how)
      : puzzle_(puzzle), how_(how), steps_(steps_for(puzzle)), draws_(how.seed, kProgramStream) {}

  ProgramSearch run() {
    for (const GridStep& s : steps_) add({s}, members_);
    while (members_.size() < size() && !found_.program) add(random_program(), members_);
    for (int64_t g = 0; g < how_.generations && !found_.program; ++g) breed();
    return found_;
  }

 private:
  struct Member {
    GridProgram program;
    ProgramScore score;
  };
  size_t size() const { return static_cast<size_t>(how_.population); }

  void add(GridProgram program, std::vector<Member>& to) {
    if (found_.program) return;
    Member m{std::move(program), {}};
    m.score = score_program(puzzle_, m.program);
    ++found_.evaluations;
    found_.fitness = std::max(found_.fitness, m.score.mean);
    if (m.score.all) found_.program = m.program;
    to.push_back(std::move(m));
  }

  GridStep random_step() { return steps_[draws_.below(steps_.size())]; }
  GridProgram random_program() {
    GridProgram p(1 + draws_.below(how_.longest));
    for (GridStep& s : p) s = random_step();
    return p;
  }

  const Member& parent() {
    std::vector<size_t> pairs(puzzle_.train.size());
    std::iota(pairs.begin(), pairs.end(), size_t{0});
    for (size_t i = pairs.size(); i > 1; --i) std::swap(pairs[i - 1], pairs[draws_.below(i)]);
    // A few at a time compete, so that more than the best of all have children.
    std::vector<size_t> some;
    for (int i = 0; i < 12; ++i) some.push_back(draws_.below(members_.size()));
    for (const size_t p : pairs) {
      double best = 0;
      for (const size_t m : some) best = std::max(best, members_[m].score.pairs[p]);
      std::erase_if(some, [&](size_t m) { return members_[m].score.pairs[p] < best; });
    }
    return members_[some[draws_.below(some.size())]];
  }

  GridProgram changed(GridProgram p) {
    const double what = draws_.unit();
    if (what < 0.45 && p.size() < how_.longest) {
      p.insert(p.begin() + static_cast<std::ptrdiff_t>(draws_.below(p.size() + 1)), random_step());
    } else if (what < 0.6 && p.size() > 1) {
      p.erase(p.begin() + static_cast<std::ptrdiff_t>(draws_.below(p.size())));
    } else if (what < 0.7 && p.size() > 1) {
      std::swap(p[draws_.below(p.size())], p[draws_.below(p.size())]);
    } else {
      p[draws_.below(p.size())] = random_step();
    }
    return p;
  }

  GridProgram crossed(const GridProgram& a, const GridProgram& b) {
    GridProgram p(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(draws_.below(a.size() + 1)));
    p.insert(p.end(), b.begin() + static_cast<std::ptrdiff_t>(draws_.below(b.size() + 1)), b.end());
    if (p.empty()) p.push_back(random_step());
    if (p.size() > how_.longest) p.resize(how_.longest);
    return p;
  }

  void breed() {
    std::ranges::stable_sort(members_, std::greater<>(),
                             [](const Member& m) { return m.score.mean; });
    // The best of different results continue unchanged.
    std::vector<Member> next;
    std::set<std::vector<double>> ends;
    for (const Member& m : members_) {
      if (next.size() * 8 < size() && ends.insert(m.score.pairs).second) next.push_back(m);
    }
    while (next.size() < size() && !found_.program) {
      if (draws_.chance(0.1)) {
        add(random_program(), next);
      } else if (draws_.chance(0.3)) {
        add(crossed(parent().program, parent().program), next);
      } else {
        add(changed(parent().program), next);
      }
    }
    members_ = std::move(next);
  }

  const Puzzle& puzzle_;
  ProgramEvolution how_;
  std::vector<GridStep> steps_;
  Draws draws_;
  std::vector<Member> members_;
  ProgramSearch found_;
};

}  // namespace

PuzzleGrid run_program(const GridProgram& program, PuzzleGrid grid) {
  for (const GridStep& s : program) grid = apply(s, grid);
  return grid;
}

std::string program_text(const GridProgram& program) {
  std::string text;
  for (const GridStep& s : program) text += (text.empty() ? "" : ", ") + step_text(s);
  return text;
}

std::vector<GridStep> steps_for(const Puzzle& puzzle) {
  std::set<uint8_t> colours;
  for (const PuzzlePair& p : puzzle.train) {
    colours.insert(p.in.cells.begin(), p.in.cells.end());
    colours.insert(p.out.cells.begin(), p.out.cells.end());
  }
  std::vector<GridStep> out;
  for (int i = 0; i < kGridOps; ++i) {
    const auto op = static_cast<GridOp>(i);
    if (colours_of(op) == 0) out.push_back({op});
    if (colours_of(op) == 0) continue;
    for (const uint8_t a : colours) {
      if (colours_of(op) == 1) {
        out.push_back({op, a});
        continue;
      }
      for (const uint8_t b : colours) {
        if (a != b && (op != GridOp::swap || a < b)) out.push_back({op, a, b});
      }
    }
  }
  return out;
}

ProgramSearch search_programs(const Puzzle& puzzle) {
  ProgramSearch found;
  const std::vector<GridStep> steps = steps_for(puzzle);
  const auto look = [&](const GridProgram& program, const std::vector<PuzzleGrid>& outputs) {
    const ProgramScore score = score_outputs(puzzle, outputs);
    ++found.evaluations;
    found.fitness = std::max(found.fitness, score.mean);
    if (score.all && !found.program) found.program = program;
  };
  std::vector<std::vector<PuzzleGrid>> first;
  for (const GridStep& s : steps) {
    first.emplace_back();
    for (const PuzzlePair& p : puzzle.train) first.back().push_back(apply(s, p.in));
    look({s}, first.back());
    if (found.program) return found;
  }
  std::vector<PuzzleGrid> outputs(puzzle.train.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    for (const GridStep& s : steps) {
      for (size_t p = 0; p < outputs.size(); ++p) outputs[p] = apply(s, first[i][p]);
      look({steps[i], s}, outputs);
      if (found.program) return found;
    }
  }
  return found;
}

ProgramSearch evolve_program(const Puzzle& puzzle, const ProgramEvolution& how) {
  return Breeder(puzzle, how).run();
}

}  // namespace loom::core
