// loom dna: how alike two models are, cell by cell.
#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "../plots/svg.hpp"
#include "../shared/outputs.hpp"
#include "../shared/progress.hpp"
#include "../shared/verbs.hpp"

namespace loom::cli {
namespace {

struct DnaFlags {
  EngineFlags engine;
  MemoryFlags memory;
  std::string a, b, mode = "functional", svg;
  double threshold = 0.8, margin = 0.05;
  bool force = false;
  bool json = false, no_map = false, quiet = false;
};

HeatMap dna_map(const DnaFlags& f, const DnaComparison& dna) {
  HeatMap map;
  map.title = fmt::format("{} (down) and {} (across), {}: {:.4f} alike", printable(f.a),
                          printable(f.b), dna_mode_name(dna.mode), dna.overall_overlap);
  for (const DnaCell& cell : dna.a) map.rows.push_back(cell.at);
  for (const DnaCell& cell : dna.b) map.columns.push_back(cell.at);
  map.values = dna.matrix;
  return map;
}

// Cells of both files at one coordinate, then those of only one.
void print_cells(const DnaComparison& dna) {
  constexpr size_t kLongest = 44;
  write_out(
      fmt::format("{:<12} {:<{}} {:>12}  {}\n", "cell", "layer", kLongest, "weights", "overlap"));
  for (const DnaOverlap& layer : dna.layers) {
    const auto cell = std::ranges::find(dna.a, layer.at, &DnaCell::at);
    write_line(fmt::format("{:<12} {:<{}} {:>12}  {:.4f}", layer.at,
                           printable(cell->type, kLongest), kLongest, layer.weights,
                           layer.overlap));
  }
  const auto alone = [&](const std::vector<DnaCell>& cells, const char* which) {
    for (const DnaCell& cell : cells) {
      if (std::ranges::find(dna.layers, cell.at, &DnaOverlap::at) != dna.layers.end()) continue;
      write_line(fmt::format("{:<12} {:<{}} {:>12}  only in the {}", cell.at,
                             printable(cell.type, kLongest), kLongest, cell.weights, which));
    }
  };
  alone(dna.a, "first");
  alone(dna.b, "second");
}

void print_dna(const DnaFlags& f, const DnaComparison& dna) {
  print_cells(dna);
  for (const LogicShift& shift : dna.shifts)
    write_out(fmt::format("moved: {} -> {} ({:.4f})\n", shift.source, shift.target, shift.overlap));
  if (!f.no_map && !dna.matrix.empty()) write_out(heat_map_text(dna_map(f, dna)));
  write_out(fmt::format("overlap {:.4f}, by weights {:.4f}, coverage {:.0f} %, {} moved, {}\n",
                        dna.overall_overlap, dna.weighted_overlap, 100 * dna.coverage,
                        dna.shifts.size(), dna_mode_name(dna.mode)));
}

Result<DnaComparison> compare_files(const DnaFlags& f) {
  DnaOptions options;
  LOOM_ASSIGN(options.mode, parse_dna_mode(f.mode));
  LOOM_ASSIGN(options.engine, f.engine.create(f.memory));
  options.shift_threshold = f.threshold;
  options.shift_margin = f.margin;
  Progress bar("comparing", "weights", f.quiet);
  options.progress = [&](uint64_t done, uint64_t total) {
    bar.update(static_cast<int64_t>(done), static_cast<int64_t>(total));
    return !interrupted();
  };
  return compare_dna(f.a, f.b, options);
}

int run(const DnaFlags& f) {
  const Status writable = Outputs(f.force)
                              .input("A", f.a)
                              .input("B", f.b)
                              .file("--svg", f.svg, {".svg"}, "the heat map as SVG")
                              .check();
  if (!writable.ok()) return fail(writable.error());
  const Result<DnaComparison> dna = compare_files(f);
  if (!dna.ok())
    return dna.error().code == Code::cancelled ? fail_interrupted() : fail(dna.error());
  if (f.json) {
    write_out(dna->json() + "\n");
  } else {
    print_dna(f, *dna);
  }
  if (f.svg.empty()) return kDone;
  if (dna->matrix.empty())
    return fail(kFailed, "--svg: the models have too many cells to draw each with each");
  const Status written = write_file(f.svg, heat_map_svg(dna_map(f, *dna)));
  return written.ok() ? kDone : fail(written.error());
}

}  // namespace

Verb add_dna(Command app) {
  auto f = std::make_shared<DnaFlags>();
  const Command verb = app.command("dna", "Compare two models cell by cell.");
  verb.examples(
      "  loom dna parent.entity child.entity\n"
      "  loom dna models/stories.entity small.entity --svg dna.svg\n"
      "  loom dna a.entity b.entity --mode permutation\n"
      "  loom dna a.entity b.entity --json | jq .overall_overlap");
  verb.option("A", f->a, "Model file or folder").names_model().required();
  verb.option("B", f->b, "Another").names_model().required();
  verb.option("--mode", f->mode,
              "strict: number types must agree; functional: what packing kept counts; aligned: "
              "layers of other widths too; permutation: hidden units in any order")
      .show_default();
  verb.option("--threshold", f->threshold, "A cell moved where it is more alike than this")
      .range(-1.0, 1.0)
      .show_default();
  verb.option("--margin", f->margin, "and by so much more than at its own place")
      .range(0.0, 2.0)
      .show_default();
  verb.option("--svg", f->svg, "Draw the similarity of every cell with every cell");
  verb.flag("--no-map", f->no_map, "Leave the heat map out of the text");
  add_force(verb, f->force);
  verb.flag("--json", f->json, "One JSON object instead of text");
  verb.flag("--quiet", f->quiet, "No progress");
  f->engine.add_lanes(verb);
  f->memory.add(verb);
  return {verb, [f] { return run(*f); }};
}

}  // namespace loom::cli
