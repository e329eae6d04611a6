// loom bench arc: puzzles of coloured grids, generated or from the public corpus. It tries all
// short programs, evolution, and training at test time.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "../plots/svg.hpp"
#include "../shared/outputs.hpp"
#include "../shared/progress.hpp"
#include "backend/cpu/cpu.hpp"
#include "base/threads/thread_pool.hpp"
#include "lab.hpp"
#include "puzzle/generator.hpp"
#include "puzzle/program.hpp"
#include "puzzle/test_time.hpp"

namespace loom::core::cli {
namespace {

struct ArcFlags {
  std::vector<std::string> files;
  bool force = false;
  int64_t each = 10, generations = 120, population = 300, steps = 400;
  uint64_t seed = 1;
  int threads = 0;
  std::string write, svg;
  bool json = false, quiet = false, programs = false;
};

struct ArcOutcome {
  std::string name, family;
  bool baseline = false, evolved = false, trained = false;  // the tests are right
  bool baseline_fits = false, evolved_fits = false;         // the shown pairs are right
  int64_t baseline_evaluations = 0, evolved_evaluations = 0;
  std::string program;
};

bool right_on_tests(const Puzzle& puzzle, const std::vector<PuzzleGrid>& answers) {
  for (size_t i = 0; i < puzzle.test.size(); ++i) {
    if (puzzle.test[i].out.empty() || !(answers[i] == puzzle.test[i].out)) return false;
  }
  return true;
}

bool program_right(const Puzzle& puzzle, const std::optional<GridProgram>& program) {
  if (!program) return false;
  std::vector<PuzzleGrid> answers;
  for (const PuzzlePair& p : puzzle.test) answers.push_back(run_program(*program, p.in));
  return right_on_tests(puzzle, answers);
}

Result<ArcOutcome> try_puzzle(const ArcFlags& f, const Puzzle& puzzle, const std::string& family,
                              ThreadPool& one) {
  ArcOutcome out{puzzle.name, family};
  const ProgramSearch baseline = search_programs(puzzle);
  out.baseline_fits = baseline.program.has_value();
  out.baseline_evaluations = baseline.evaluations;
  out.baseline = program_right(puzzle, baseline.program);
  const ProgramSearch evolved = evolve_program(
      puzzle, {.population = f.population, .generations = f.generations, .seed = f.seed});
  out.evolved_fits = evolved.program.has_value();
  out.evolved_evaluations = evolved.evaluations;
  out.evolved = program_right(puzzle, evolved.program);
  if (evolved.program) out.program = program_text(*evolved.program);
  LOOM_ASSIGN(
      const TestTimeAnswer trained,
      train_at_test_time(puzzle, {.steps = f.steps, .seed = f.seed}, cpu_ops(best_isa()), one));
  out.trained = trained.applies && right_on_tests(puzzle, trained.answers);
  return out;
}

struct ArcSums {
  int64_t puzzles = 0, baseline = 0, evolved = 0, trained = 0, any = 0;
  int64_t fits_baseline = 0, fits_both = 0;  // by their pairs
  void add(const ArcOutcome& o) {
    ++puzzles;
    baseline += o.baseline ? 1 : 0;
    evolved += o.evolved ? 1 : 0;
    trained += o.trained ? 1 : 0;
    any += o.evolved || o.trained ? 1 : 0;
    fits_baseline += o.baseline_fits ? 1 : 0;
    fits_both += o.baseline_fits && o.evolved_fits ? 1 : 0;
  }
};

struct NamedPuzzle {
  Puzzle puzzle;
  std::string family;
};

Result<std::vector<NamedPuzzle>> arc_puzzles(const ArcFlags& f) {
  std::vector<NamedPuzzle> out;
  for (const std::string& file : f.files) {
    LOOM_ASSIGN(Puzzle puzzle, load_puzzle(file));
    out.push_back({std::move(puzzle), "files"});
  }
  for (int i = 0; i < kPuzzleFamilies && f.files.empty(); ++i) {
    const auto family = static_cast<PuzzleFamily>(i);
    for (int64_t k = 0; k < f.each; ++k)
      out.push_back({make_puzzle(family, f.seed, k), family_name(family)});
  }
  return out;
}

Status write_puzzles(const ArcFlags& f, const std::vector<NamedPuzzle>& puzzles) {
  for (const NamedPuzzle& p : puzzles)
    LOOM_TRY(write_file(f.write + "/" + p.puzzle.name + ".json", puzzle_json(p.puzzle) + "\n"));
  return {};
}

void print_arc_table(const std::vector<std::string>& order, std::map<std::string, ArcSums>& sums) {
  const auto line = [](const std::string& name, const ArcSums& s) {
    write_out(fmt::format("{:<12}{:>9}{:>10}{:>10}{:>11}{:>8}\n", name, s.puzzles, s.baseline,
                          s.evolved, s.trained, s.any));
  };
  write_out(fmt::format("{:<12}{:>9}{:>10}{:>10}{:>11}{:>8}\n", "family", "puzzles", "baseline",
                        "evolution", "test-time", "either"));
  for (const std::string& name : order) line(name, sums[name]);
  if (order.size() > 1) line("all", sums["all"]);
  const ArcSums& all = sums["all"];
  write_out(fmt::format(
      "solved: every test is right. The baseline tries all programs of one and two steps. It "
      "explains the pairs of {} puzzles, of which evolution explains {}.\n",
      all.fits_baseline, all.fits_both));
}

Status draw_arc(const ArcFlags& f, const std::vector<std::string>& order,
                std::map<std::string, ArcSums>& sums) {
  HeatMap map{
      "Share of puzzles that are solved", order, {"baseline", "evolution", "test-time"}, {}};
  for (const std::string& name : order) {
    const ArcSums& s = sums[name];
    const auto n = static_cast<double>(s.puzzles);
    for (const int64_t v : {s.baseline, s.evolved, s.trained})
      map.values.push_back(static_cast<double>(v) / n);
  }
  return write_file(f.svg, heat_map_svg(map));
}

int show_arc(const ArcFlags& f, const std::vector<ArcOutcome>& outcomes) {
  std::vector<std::string> order;
  std::map<std::string, ArcSums> sums;
  Json list = Json::array();
  for (const ArcOutcome& o : outcomes) {
    if (sums.find(o.family) == sums.end()) order.push_back(o.family);
    sums[o.family].add(o);
    sums["all"].add(o);
    list.push(JsonObject()
                  .set("name", o.name)
                  .set("family", o.family)
                  .set("baseline", o.baseline)
                  .set("evolution", o.evolved)
                  .set("test_time", o.trained)
                  .set("explained_by_baseline", o.baseline_fits)
                  .set("explained_by_evolution", o.evolved_fits)
                  .set("baseline_evaluations", o.baseline_evaluations)
                  .set("evolution_evaluations", o.evolved_evaluations)
                  .set("program", o.program)
                  .value());
    if (f.programs && !f.json)
      write_line(fmt::format("{:<16} {}{}", o.name, o.program.empty() ? "-" : o.program,
                             o.evolved || o.program.empty() ? "" : " (wrong on a test)"));
  }
  if (!f.svg.empty()) {
    const Status drawn = draw_arc(f, order, sums);
    if (!drawn.ok()) return fail(drawn.error());
  }
  if (f.json) {
    JsonObject().set("puzzles", list).print();
  } else {
    print_arc_table(order, sums);
  }
  return kDone;
}

int run_arc(const ArcFlags& f) {
  const Status writable =
      Outputs(f.force).file("--svg", f.svg, {".svg"}, "the shares as SVG").check();
  if (!writable.ok()) return fail(writable.error());
  const auto puzzles = arc_puzzles(f);
  if (!puzzles.ok()) return fail(puzzles.error());
  if (!f.write.empty()) {
    const Status written = write_puzzles(f, *puzzles);
    if (!written.ok()) return fail(written.error());
  }
  // One lane runs a whole puzzle, so threads affect only the time.
  std::vector<std::optional<Result<ArcOutcome>>> tried(puzzles->size());
  ThreadPool pool(f.threads);
  Progress bar("puzzles", "puzzles", f.quiet || f.json);
  const auto lanes = static_cast<size_t>(std::max(1, pool.lanes()));
  std::vector<ArcOutcome> outcomes;
  for (size_t first = 0; first < tried.size(); first += lanes) {
    const size_t end = std::min(first + lanes, tried.size());
    pool.run([&](int lane, int given) {
      for (size_t i = first + static_cast<size_t>(lane); i < end; i += static_cast<size_t>(given)) {
        ThreadPool one(1);
        tried[i] = try_puzzle(f, (*puzzles)[i].puzzle, (*puzzles)[i].family, one);
      }
    });
    for (size_t i = first; i < end; ++i) {
      if (!tried[i]->ok()) return fail(tried[i]->error());
      outcomes.push_back(**tried[i]);
    }
    bar.update(static_cast<int64_t>(outcomes.size()), static_cast<int64_t>(tried.size()));
    if (interrupted()) return fail_interrupted();
  }
  bar.finish();
  return show_arc(f, outcomes);
}

}  // namespace

Verb add_bench_arc(Command app) {
  auto f = std::make_shared<ArcFlags>();
  const Command verb = app.find("bench").command(
      "arc", "Puzzles of coloured grids, by search, by evolution and by training at test time.");
  verb.examples(
      "  loom bench arc --each 20 --svg arc.svg\n"
      "  loom bench arc --programs ARC-AGI/data/training/*.json\n"
      "  loom bench arc --each 3 --write puzzles");
  verb.option("FILE", f->files, "Puzzles in the public format (default: puzzles of our own)");
  verb.option("--each", f->each, "Puzzles of our own of each family")
      .range(1, 10000)
      .show_default();
  verb.option("--seed", f->seed, "Seed of the puzzles and of all random numbers").show_default();
  verb.option("--population", f->population, "Programs of a generation")
      .range(10, 1 << 16)
      .show_default();
  verb.option("--generations", f->generations, "At most").range(0, 1 << 16).show_default();
  verb.option("--steps", f->steps, "Updates of the network that is trained for a puzzle")
      .range(0, 1 << 20)
      .show_default();
  verb.option("--threads", f->threads, "Puzzles at a time; 0: all cores").range(0, 1024);
  verb.option("--write", f->write, "A folder that the puzzles are written to as .json");
  verb.option("--svg", f->svg, "Draw the share that is solved, by family");
  verb.flag("--programs", f->programs, "Show the program that evolution found for each");
  add_force(verb, f->force);
  verb.flag("--json", f->json, "Every puzzle as JSON");
  verb.flag("--quiet", f->quiet, "The table alone");
  return {verb, [f] { return run_arc(*f); }};
}

}  // namespace loom::core::cli
