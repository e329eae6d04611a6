// loom bench neat: how many networks NEAT tries until it has solved XOR and double pole balancing
// without velocities, beside the figures of the paper.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>

#include "../progress.hpp"
#include "base/thread_pool.hpp"
#include "lab.hpp"
#include "lab/double_pole.hpp"
#include "loom/evolve.hpp"

namespace loom::core::cli {
namespace {

using loom::Genome;

struct NeatFlags {
  std::string task = "all";
  int64_t seeds = 20, first_seed = 1;
  int threads = 0;
  bool json = false, quiet = false;
};

struct Task {
  const char* name;
  double paper;  // evaluations on average: Stanley and Miikkulainen, 2002
  NeatOptions options;
  int64_t generations;
  double (*fitness)(Genome&);
  bool (*solved)(const Genome&, double fitness);
  bool any;  // one that solves it may be any of a generation, not only its best
};

double output(Genome& genome, std::span<const float> x) {
  const auto y = genome.step(x);
  return y.ok() ? static_cast<double>((*y)[0]) : NAN;
}

double xor_distance(Genome genome, bool& right) {
  double distance = 0;
  right = true;
  for (int i = 0; i < 4; ++i) {
    const float x[] = {static_cast<float>(i & 1), static_cast<float>(i >> 1)};
    const int wanted = (i & 1) ^ (i >> 1);
    const double y = output(genome, x);
    distance += std::fabs(wanted - y);
    right = right && (y > 0.5) == (wanted == 1);
  }
  return distance;
}

double xor_fitness(Genome& genome) {
  bool right = false;
  const double d = xor_distance(genome, right);
  return (4 - d) * (4 - d);
}

bool xor_solved(const Genome& genome, double) {
  bool right = false;
  xor_distance(genome, right);
  return right;
}

PoleController controller(Genome& genome) {
  genome.reset();
  return [&genome](const std::array<float, 3>& seen) { return output(genome, seen); };
}

double poles_fitness(Genome& genome) {
  return pole_fitness(controller(genome));
}

// 100,000 steps from the first start, and 1000 from at least 200 of 625 others.
bool poles_solved(const Genome& genome, double fitness) {
  if (fitness < 0.1) return false;  // did not hold 1000 steps
  Genome own = genome;
  if (balance(controller(own), pole_start(), 100000) < 100000) return false;
  return pole_generality([&own] { return controller(own); }) >= 200;
}

std::vector<Task> tasks() {
  NeatOptions poles{.inputs = 3, .outputs = 1, .population = 1000};
  poles.recurrent = true;
  poles.weight_step = 1.0;
  poles.weight_difference = 3.0;
  poles.threshold = 4.0;
  return {{"XOR", 4755, {.inputs = 2, .outputs = 1}, 300, xor_fitness, xor_solved, true},
          {"double pole, no velocities", 33184, poles, 100, poles_fitness, poles_solved, false}};
}

struct Trial {
  bool solved = false;
  int64_t evaluations = 0, hidden = 0, connections = 0;
  double seconds = 0;
};

using Genomes = std::vector<std::optional<Genome>>;

std::optional<size_t> solver_of(const Task& task, const Genomes& genomes,
                                const std::vector<double>& fitness, size_t top) {
  if (task.solved(*genomes[top], fitness[top])) return top;
  for (size_t i = 0; task.any && i < genomes.size(); ++i) {
    if (task.solved(*genomes[i], fitness[i])) return i;
  }
  return std::nullopt;
}

Result<Trial> attempt(const Task& task, uint64_t seed, ThreadPool& pool) {
  NeatOptions options = task.options;
  options.seed = seed;
  const auto start = std::chrono::steady_clock::now();
  LOOM_ASSIGN(Population population, Population::create(options));
  Trial trial;
  for (int64_t g = 0; g < task.generations && !trial.solved; ++g) {
    std::vector<double> values(static_cast<size_t>(population.size()));
    Genomes genomes(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      LOOM_ASSIGN(genomes[i], population.genome(static_cast<int64_t>(i)));
    }
    pool.run([&](int lane, int lanes) {
      for (size_t i = static_cast<size_t>(lane); i < values.size(); i += static_cast<size_t>(lanes))
        values[i] = task.fitness(*genomes[i]);
    });
    const auto top = static_cast<size_t>(std::ranges::max_element(values) - values.begin());
    trial.evaluations += population.size();
    const std::optional<size_t> solver = solver_of(task, genomes, values, top);
    trial.solved = solver.has_value();
    trial.hidden = genomes[solver.value_or(top)]->hidden();
    trial.connections = genomes[solver.value_or(top)]->connections();
    LOOM_TRY(population.tell(values));
    if (interrupted()) return Error{Code::cancelled, "interrupted", {}, -1};
  }
  trial.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return trial;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

void print(const NeatFlags& f, const Task& task, const std::vector<Trial>& trials) {
  std::vector<double> evaluations, seconds;
  double sum = 0, hidden = 0;
  int64_t solved = 0;
  for (const Trial& t : trials) {
    evaluations.push_back(t.solved ? static_cast<double>(t.evaluations) : INFINITY);
    seconds.push_back(t.seconds);
    sum += static_cast<double>(t.evaluations);
    hidden += static_cast<double>(t.hidden);
    solved += t.solved ? 1 : 0;
  }
  const auto n = static_cast<double>(trials.size());
  const double middle = median(evaluations);
  if (f.json) {
    JsonObject line;
    line.set("task", task.name)
        .set("seeds", static_cast<int64_t>(trials.size()))
        .set("solved", solved)
        .set("median_evaluations", middle)
        .set("mean_evaluations", sum / n)
        .set("paper_evaluations", task.paper)
        .set("mean_hidden", hidden / n)
        .set("median_seconds", median(seconds))
        .print();
    return;
  }
  write_out(
      fmt::format("{:<28} {:>4} of {:<4} {:>9.0f} {:>9.0f} {:>9.0f} {:>8.2f} {:>9.3f} s  {}\n",
                  task.name, solved, trials.size(), middle, sum / n, task.paper, hidden / n,
                  median(seconds), middle <= task.paper ? "held" : "NOT HELD"));
}

int run(const NeatFlags& f) {
  if (f.task != "all" && f.task != "xor" && f.task != "poles")
    return fail(loom::cli::kUsage,
                "--task " + loom::printable(f.task) + ": choose all, xor or poles");
  ThreadPool pool(f.threads);
  if (!f.json)
    write_out(fmt::format("{:<28} {:<12} {:>9} {:>9} {:>9} {:>8} {:>11}\n", "task", "solved",
                          "median", "mean", "paper", "hidden", "median"));
  const std::vector<Task> all = tasks();
  for (size_t k = 0; k < all.size(); ++k) {
    if (f.task == (k == 0 ? "poles" : "xor")) continue;
    std::vector<Trial> trials;
    Progress bar(all[k].name, "seeds", f.quiet);
    for (int64_t s = 0; s < f.seeds; ++s) {
      const auto seed = static_cast<uint64_t>(f.first_seed + s);
      const Result<Trial> trial = attempt(all[k], seed, pool);
      if (!trial.ok())
        return trial.error().code == Code::cancelled ? loom::cli::fail_interrupted()
                                                     : fail(trial.error());
      trials.push_back(*trial);
      bar.update(s + 1, f.seeds);
    }
    bar.finish();
    print(f, all[k], trials);
  }
  return kDone;
}

}  // namespace

Verb add_bench_neat(Command app) {
  auto f = std::make_shared<NeatFlags>();
  const Command verb = app.find("bench").command(
      "neat", "Networks that evolution tries until XOR and double pole balancing are solved.");
  verb.examples("  loom bench neat --seeds 20\n  loom bench neat --task poles --seeds 5 --json");
  verb.option("--task", f->task, "all, xor, poles").show_default();
  verb.option("--seeds", f->seeds, "Runs of each task").range(1, 10000).show_default();
  verb.option("--first-seed", f->first_seed, "Of the first run").range(0, 1 << 30).show_default();
  verb.option("--threads", f->threads, "Lanes; 0: all cores").range(0, 1024);
  verb.flag("--json", f->json, "One JSON object a task instead of the table");
  verb.flag("--quiet", f->quiet, "No progress");
  return {verb, [f] { return run(*f); }};
}

}  // namespace loom::core::cli
