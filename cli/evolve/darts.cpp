// loom darts NETWORK DATA: architecture search by gradients.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "../plots/learning.hpp"
#include "../plots/plot.hpp"
#include "../plots/svg.hpp"
#include "../shared/outputs.hpp"
#include "../shared/progress.hpp"
#include "../shared/verbs.hpp"
#include "../train/option_flags.hpp"

namespace loom::cli {
namespace {

struct DartsFlags {
  EngineFlags engine;
  MemoryFlags memory;
  DataFlags data;
  DartsOptions search;
  bool force = false;
  std::string network, output, state, resume, svg;
  int64_t most_parameters = -1;
  bool json = false, quiet = false;
  OptionFlags method;
};

constexpr const char* kBranchColours[] = {"#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e",
                                          "#17becf", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22"};

// One panel per cell: the share of each branch by epoch; the remaining branch is drawn thicker.
std::string cell_panel(const DartsSearch& search, size_t cell, int64_t kept, double top) {
  constexpr double kLeft = 60, kWide = 420, kHigh = 150;
  const DartsCell what = search.cells()[cell];
  const std::vector<DartsReport> history = search.history();
  const auto points = static_cast<double>(std::max<size_t>(history.size(), 1));
  double most = 0;
  for (const DartsReport& r : history)
    most = std::max(most, *std::ranges::max_element(r.weights[cell]));
  const Axis axis = round_axis(0, std::max(most, 1e-6), 4, true);
  std::string svg = svg_text(kLeft, top - 8, "start", fmt::format("cell {}", what.cell));
  svg += fmt::format(
      "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" "
      "stroke=\"#cccccc\"/>\n",
      kLeft, top, kWide, kHigh);
  for (const double tick : axis.ticks())
    svg += svg_text(kLeft - 6, top + 4 + kHigh * (1 - axis.share(tick)), "end", axis.label(tick));
  const size_t step = label_step(history.size(), 8);
  for (size_t e = step; e <= history.size(); e += step)
    svg += svg_text(kLeft + kWide * static_cast<double>(e) / points, top + kHigh + 14, "middle",
                    std::to_string(e));
  svg += svg_text(kLeft, top + kHigh + 14, "middle", "epoch");
  const double start = 1.0 / static_cast<double>(what.branches.size());
  for (size_t k = 0; k < what.branches.size(); ++k) {
    const auto y_of = [&](double share) {
      return top + kHigh * (1 - std::min(axis.share(share), 1.0));
    };
    std::string line = fmt::format("{:.1f},{:.1f} ", kLeft, y_of(start));
    for (size_t e = 0; e < history.size(); ++e)
      line += fmt::format("{:.1f},{:.1f} ", kLeft + kWide * static_cast<double>(e + 1) / points,
                          y_of(history[e].weights[cell][k]));
    const char* colour = kBranchColours[k % std::size(kBranchColours)];
    const bool stays = static_cast<int64_t>(k) == kept;
    svg += fmt::format(
        "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" points=\"{}\"><title>{}"
        "</title></polyline>\n",
        colour, stays ? 3 : 1.3, line, escaped(what.branches[k]));
    svg += svg_text(
        kLeft + kWide + 14, top + 12 + 15 * static_cast<double>(k), "start",
        fmt::format("{:.3f} {}{}", what.weights[k], what.branches[k], stays ? " (stays)" : ""),
        colour);
  }
  return svg;
}

std::string darts_svg(const DartsSearch& search, const std::vector<int64_t>& choice,
                      const std::string& title) {
  constexpr double kPanel = 215, kTop = 70, kWide = 900;
  const std::vector<DartsCell> cells = search.cells();
  std::string svg = svg_open(kWide, kTop + kPanel * static_cast<double>(cells.size()), title);
  for (size_t i = 0; i < cells.size(); ++i) {
    const int64_t kept = i < choice.size() ? choice[i] : -1;
    svg += cell_panel(search, i, kept, kTop + kPanel * static_cast<double>(i));
  }
  return svg + "</svg>\n";
}

// A bar of at most 30 characters for a share.
std::string share_bar(double share) {
  const auto length = static_cast<size_t>(std::lround(30 * share));
  return std::string(length, '#');
}

struct FoundForm {
  std::vector<int64_t> choice;
  int64_t parameters = 0;
};

void print_mixtures(const DartsSearch& search, const FoundForm& found) {
  const std::vector<DartsCell> cells = search.cells();
  for (size_t i = 0; i < cells.size(); ++i) {
    write_line(fmt::format("cell {}", cells[i].cell));
    for (size_t k = 0; k < cells[i].branches.size(); ++k) {
      const bool stays = found.choice[i] == static_cast<int64_t>(k);
      write_line(fmt::format("  {} {:.4f} {:<40} {}", stays ? '*' : ' ', cells[i].weights[k],
                             cells[i].branches[k], share_bar(cells[i].weights[k])));
    }
  }
  const int64_t seed = search.seed_parameters();
  write_line(fmt::format("found: {} parameters{}", found.parameters,
                         seed > 0 ? fmt::format(", the network had {}", seed) : std::string()));
}

void print_darts_json(const DartsSearch& search, const FoundForm& found) {
  Json cells = Json::array(), epochs = Json::array();
  const std::vector<DartsCell> all = search.cells();
  for (size_t i = 0; i < all.size(); ++i) {
    const auto kept = static_cast<size_t>(found.choice[i]);
    Json weights = Json::array();
    for (const double w : all[i].weights) weights.push(Json::real(w));
    cells.push(JsonObject()
                   .set("cell", all[i].cell)
                   .set("branches", all[i].branches)
                   .set("weights", weights)
                   .set("chosen", all[i].branches[kept])
                   .value());
  }
  for (const DartsReport& r : search.history()) {
    JsonObject epoch;
    epoch.set("epoch", r.epoch).set("train_loss", r.train_loss);
    epoch.set("validation_loss", r.validation_loss);
    if (r.accuracy) epoch.set("accuracy", *r.accuracy);
    epochs.push(epoch.value());
  }
  JsonObject()
      .set("parameters", found.parameters)
      .set("seed_parameters", search.seed_parameters())
      .set("cells", cells)
      .set("epochs", epochs)
      .print();
}

Status check_darts_outputs(const DartsFlags& f) {
  for (const std::string& flag : f.method.given()) {
    if (!f.resume.empty())
      return Error{Code::invalid_argument,
                   "--" + flag + " is as the search of --resume has it; leave it out",
                   {},
                   -1};
  }
  LOOM_TRY(refuse_table(f.network, "loom darts NETWORK DATA"));
  Outputs outputs(f.force);
  outputs.input("NETWORK", f.network).input("DATA", f.data.path);
  if (f.resume != f.state) outputs.input("--resume", f.resume);
  return outputs
      .file("-o", f.output, {".json", ".entity", ".safetensors", ".npz", ".onnx"},
            "the network that was found")
      .state("--state", f.state, {".safetensors"}, "the search")
      .file("--svg", f.svg, {".svg"}, "the shares of the branches as SVG")
      .check();
}

Result<DartsSearch> begin_darts(DartsFlags& f, const Engine& engine) {
  LOOM_TRY(f.method.read(f.search));
  LOOM_ASSIGN(const Network network,
              Network::load(f.network, {.seed = f.search.seed, .engine = engine}));
  LOOM_ASSIGN(const DatasetOptions how, f.data.options(true));
  LOOM_ASSIGN(const Dataset data, read_samples(f.data.path, network, how));
  for (size_t i = 0; i < data.notes().size() && !f.quiet && !f.json; ++i) note(data.notes()[i]);
  if (!f.resume.empty()) return DartsSearch::load(f.resume, data, engine);
  return DartsSearch::create(network, data, f.search, engine);
}

Status run_epochs(const DartsFlags& f, DartsSearch& search, Keeper& keeper) {
  while (search.epoch() < search.epochs()) {
    Progress bar(fmt::format("epoch {}/{}", search.epoch() + 1, search.epochs()), "steps",
                 f.quiet || f.json);
    LOOM_ASSIGN(const DartsReport r, search.step([&](int64_t done, int64_t all) {
      bar.update(done, all);
      return !interrupted();
    }));
    bar.finish();
    if (!f.quiet && !f.json)
      write_line(fmt::format("epoch {:>3}  loss {:.4f}  validation {:.4f}{}", r.epoch, r.train_loss,
                             r.validation_loss,
                             r.accuracy ? "  " + percent(*r.accuracy) : std::string()));
    if (!f.state.empty())
      keeper.save(f.state, [&](const std::string& name) { return search.save(name); });
  }
  return {};
}

int run_darts(DartsFlags& f) {
  const Status writable = check_darts_outputs(f);
  if (!writable.ok()) return fail(writable.error());
  const Result<Engine> engine = f.engine.create(f.memory);
  if (!engine.ok()) return fail(engine.error());
  Result<DartsSearch> search = begin_darts(f, *engine);
  if (!search.ok()) return fail(search.error());
  const int64_t most = f.most_parameters < 0 ? search->seed_parameters() : f.most_parameters;
  const Result<Network> possible = search->found(most);  // fails before hours of work
  if (!possible.ok()) return fail(possible.error());
  Keeper keeper;
  const Status ran = run_epochs(f, *search, keeper);
  if (!ran.ok())
    return ran.error().code == Code::cancelled ? fail_interrupted() : fail(ran.error());
  keeper.begin_end();
  const Result<Network> network = search->found(most);
  if (!network.ok()) return fail(network.error());
  const Result<std::vector<int64_t>> choice = search->choice(most);
  if (!choice.ok()) return fail(choice.error());
  if (!f.output.empty())
    keeper.save(f.output, [&](const std::string& name) { return network->save(name); });
  if (!f.svg.empty()) {
    keeper.save(f.svg, [&](const std::string& name) {
      return write_file(
          name, darts_svg(*search, *choice, "Shares of branches in " + printable(f.network)));
    });
  }
  const FoundForm found{*choice, network->info().parameters};
  f.json ? print_darts_json(*search, found) : print_mixtures(*search, found);
  const Status saved = keeper.finish();
  return saved.ok() ? kDone : fail(saved.error());
}

}  // namespace

Verb add_darts(Command app) {
  auto f = std::make_shared<DartsFlags>();
  const Command verb = app.command("darts", "Search the layers of a network by gradients.");
  verb.examples(
      "  loom darts net.json table.csv --svg shares.svg -o found.json\n"
      "  loom darts net.json images.idx --labels labels.idx --order 1 --epochs 20 -o found.json\n"
      "  loom darts net.json table.csv --state search.safetensors --resume search.safetensors\n"
      "Then compare both from new weights over several seeds:\n"
      "  loom compare table.csv net.json found.json --fresh --seeds 5");
  verb.option("NETWORK", f->network, "Network; its Dense and CNN2 cells, or those that are mixed")
      .required();
  f->data.add(verb);
  f->method.add(verb, list_options(f->search), {});
  verb.option("--most-parameters", f->most_parameters,
              "The network found may have no more; 0: no limit (default: as NETWORK)")
      .range(0, INT64_MAX);
  verb.option("-o,--output", f->output, "The network that is left, with its weights");
  verb.option("--state", f->state, "The search as .safetensors, after each epoch");
  verb.option("--resume", f->resume, "Go on from such a file, with the same bits");
  verb.option("--svg", f->svg, "Draw the share of each branch by epoch");
  add_force(verb, f->force);
  verb.flag("--json", f->json, "Shares and epochs as JSON");
  verb.flag("--quiet", f->quiet, "The result alone");
  f->engine.add_lanes(verb);
  f->memory.add(verb);
  return {verb, [f] { return run_darts(*f); }};
}

}  // namespace loom::cli
