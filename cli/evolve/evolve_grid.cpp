#include "evolve_grid.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "../plots/svg.hpp"
#include "../shared/outputs.hpp"
#include "../shared/progress.hpp"

namespace loom::cli {
namespace {

double objective_value(const ArchitectureInfo& m, const std::string& name) {
  if (name == "accuracy") return m.accuracy;
  if (name == "loss") return m.loss;
  if (name == "parameters") return static_cast<double>(m.parameters);
  return name == "bytes" ? static_cast<double>(m.bytes) : m.seconds;
}

// A point for each network: the front is joined by a line; the seed is a square.
std::string front_svg(const ArchitectureSearch& search, const std::string& title) {
  constexpr double kWide = 720, kHigh = 440, kLeft = 80, kTop = 50, kBottom = 60, kRight = 30;
  const std::vector<std::string> names = search.objectives();
  const std::string& x_name = names[std::min<size_t>(1, names.size() - 1)];
  const std::string& y_name = names[0];
  std::vector<ArchitectureInfo> all = search.members(), front = search.front();
  all.push_back(search.seed());
  double low_x = INFINITY, high_x = -INFINITY, low_y = INFINITY, high_y = -INFINITY;
  for (const ArchitectureInfo& m : all) {
    low_x = std::min(low_x, objective_value(m, x_name));
    high_x = std::max(high_x, objective_value(m, x_name));
    low_y = std::min(low_y, objective_value(m, y_name));
    high_y = std::max(high_y, objective_value(m, y_name));
  }
  const Axis across = round_axis(low_x, high_x, 6, x_name == "accuracy");
  const Axis up = round_axis(low_y, high_y, 6, y_name == "accuracy");
  const auto x_of = [&](const ArchitectureInfo& m) {
    return kLeft + across.share(objective_value(m, x_name)) * (kWide - kLeft - kRight);
  };
  const auto y_of = [&](const ArchitectureInfo& m) {
    return kHigh - kBottom - up.share(objective_value(m, y_name)) * (kHigh - kTop - kBottom);
  };
  std::string svg = svg_open(kWide, kHigh, title), line;
  for (const double tick : up.ticks()) {
    const double y = kHigh - kBottom - up.share(tick) * (kHigh - kTop - kBottom);
    svg +=
        fmt::format("<path d=\"M{} {:.1f}H{}\" stroke=\"#dddddd\"/>\n", kLeft, y, kWide - kRight);
    svg += svg_text(kLeft - 8, y + 4, "end", up.label(tick));
  }
  for (const double tick : across.ticks())
    svg += svg_text(kLeft + across.share(tick) * (kWide - kLeft - kRight), kHigh - kBottom + 20,
                    "middle", across.label(tick));
  std::ranges::sort(front, {},
                    [&](const ArchitectureInfo& m) { return objective_value(m, x_name); });
  for (const ArchitectureInfo& m : front) line += fmt::format("{:.1f},{:.1f} ", x_of(m), y_of(m));
  svg += fmt::format("<polyline fill=\"none\" stroke=\"#1f77b4\" points=\"{}\"/>\n", line);
  for (const ArchitectureInfo& m : all) {
    const bool seed = &m == &all.back();
    const bool best = std::ranges::any_of(front, [&](const auto& o) { return o.id == m.id; });
    svg += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\" fill=\"{}\" fill-opacity=\"0.7\">"
        "<title>{}: {} {:.6g}, {} {:.6g}</title></circle>\n",
        x_of(m), y_of(m),
        seed   ? "#d62728"
        : best ? "#1f77b4"
               : "#bbbbbb",
        escaped(m.form), y_name, objective_value(m, y_name), x_name, objective_value(m, x_name));
  }
  svg += svg_text(kWide / 2, kHigh - 18, "middle",
                  y_name + " by " + x_name + ": the front (blue), others (grey), the seed (red)");
  return svg + "</svg>\n";
}

std::string network_line(const ArchitectureInfo& m, bool timed) {
  std::string line = fmt::format("{:>5}{:>10.2f}{:>10.4f}{:>12}{:>12}", m.id, 100 * m.accuracy,
                                 m.loss, m.parameters, human_bytes(m.bytes));
  if (timed) line += fmt::format("{:>12.3g}", m.seconds);
  return line + "  " + m.form;
}

void print_front(const ArchitectureSearch& search) {
  const std::vector<std::string> names = search.objectives();
  const bool timed = std::ranges::find(names, "time") != names.end();
  write_out(fmt::format("{:>5}{:>10}{:>10}{:>12}{:>12}{}  form\n", "id", "accuracy", "loss",
                        "parameters", "bytes", timed ? "  s/sample  " : ""));
  for (const ArchitectureInfo& m : search.front()) write_line(network_line(m, timed));
  write_line("the seed, after its first training:");
  write_line(network_line(search.seed(), timed));
}

Json network_json(const ArchitectureInfo& m) {
  return JsonObject()
      .set("id", m.id)
      .set("parent", m.parent)
      .set("other", m.other)
      .set("born", m.born)
      .set("birth", m.birth)
      .set("form", m.form)
      .set("accuracy", m.accuracy)
      .set("loss", m.loss)
      .set("parameters", m.parameters)
      .set("bytes", m.bytes)
      .set("seconds", m.seconds)
      .value();
}

void print_grid_json(const ArchitectureSearch& search) {
  Json front = Json::array(), members = Json::array(), generations = Json::array();
  for (const ArchitectureInfo& m : search.front()) front.push(network_json(m));
  for (const ArchitectureInfo& m : search.members()) members.push(network_json(m));
  for (const ArchitectureReport& g : search.history()) {
    generations.push(JsonObject()
                         .set("generation", g.generation)
                         .set("evaluated", g.evaluated)
                         .set("rejected", g.rejected)
                         .set("front", g.front)
                         .set("best_accuracy", g.best_accuracy)
                         .set("best_loss", g.best_loss)
                         .set("least_parameters", g.least_parameters)
                         .value());
  }
  JsonObject()
      .set("objectives", search.objectives())
      .set("seed", network_json(search.seed()))
      .set("front", front)
      .set("members", members)
      .set("generations", generations)
      .print();
}

Result<ArchitectureSearch> begin_search(const EvolveGridFlags& f, const ArchitectureOptions& how,
                                        const Network& network, const Dataset& data) {
  if (!f.resume.empty()) return ArchitectureSearch::load(f.resume, data);
  return ArchitectureSearch::create(network, data, how);
}

Status run_generations(const EvolveGridFlags& f, ArchitectureSearch& search, Keeper& keeper) {
  for (int64_t g = 0; g < f.generations; ++g) {
    Progress bar("training", "networks", f.quiet || f.json);
    LOOM_ASSIGN(const ArchitectureReport r, search.step(f.threads, [&](int64_t done, int64_t all) {
      bar.update(done, all);
      return !interrupted();
    }));
    bar.finish();
    if (!f.quiet && !f.json)
      write_line(fmt::format(
          "generation {:>3}  accuracy {:.4f}  loss {:.4f}  from {} parameters  "
          "front {}  {} changes refused",
          r.generation, r.best_accuracy, r.best_loss, r.least_parameters, r.front, r.rejected));
    if (!f.population_file.empty())
      keeper.save(f.population_file, [&](const std::string& name) { return search.save(name); });
  }
  return {};
}

Status save_search(const EvolveGridFlags& f, const ArchitectureSearch& search, const Engine& engine,
                   Keeper& keeper) {
  keeper.begin_end();
  const std::vector<ArchitectureInfo> front = search.front();
  if (front.empty()) return {};
  if (!f.output.empty()) {
    LOOM_ASSIGN(const Network best, search.network(front[0].id, engine));
    keeper.save(f.output, [&](const std::string& name) { return best.save(name); });
  }
  if (!f.svg.empty()) {
    keeper.save(f.svg, [&](const std::string& name) {
      return write_file(name, front_svg(search, "Networks grown from " + printable(f.network)));
    });
  }
  return keeper.finish();
}

Status check_grid(const EvolveGridFlags& f, const DataFlags& data) {
  for (const std::string& flag : f.method.given()) {
    if (!f.resume.empty())
      return Error{Code::invalid_argument,
                   "--" + flag + " is as the population of --resume has it; leave it out",
                   {},
                   -1};
  }
  Outputs outputs(f.force);
  outputs.input("NETWORK", f.network).input("DATA", data.path);
  if (f.resume != f.population_file) outputs.input("--resume", f.resume);
  return outputs
      .file("-o", f.output, {".json", ".entity", ".safetensors", ".npz", ".onnx"},
            "the best network")
      .state("--population-file", f.population_file, {".json"}, "the population")
      .file("--svg", f.svg, {".svg"}, "the front as SVG")
      .check();
}

}  // namespace

void EvolveGridFlags::add(Command verb) {
  method.add(verb, list_options(ArchitectureOptions()),
             {"population", "seed", "validation", "normalize"});
}

int evolve_grid(const EvolveGridFlags& f, const DataFlags& from, const Engine& engine) {
  const Status writable = check_grid(f, from);
  if (!writable.ok()) return fail(writable.error());
  ArchitectureOptions options;
  const Status read = f.method.read(options);
  if (!read.ok()) return fail(read.error());
  const Result<Network> network =
      Network::load(f.network, {.seed = options.seed, .engine = engine});
  if (!network.ok()) return fail(network.error());
  const Result<DatasetOptions> how = from.options(true);
  if (!how.ok()) return fail(how.error());
  const Result<Dataset> data = read_samples(from.path, *network, *how);
  if (!data.ok()) return fail(data.error());
  for (size_t i = 0; i < data->notes().size() && !f.quiet && !f.json; ++i) note(data->notes()[i]);
  Result<ArchitectureSearch> search = begin_search(f, options, *network, *data);
  if (!search.ok()) return fail(search.error());
  Keeper keeper;
  const Status ran = run_generations(f, *search, keeper);
  const Status saved = save_search(f, *search, engine, keeper);
  if (!search->members().empty()) f.json ? print_grid_json(*search) : print_front(*search);
  if (!ran.ok())
    return ran.error().code == Code::cancelled ? fail_interrupted() : fail(ran.error());
  return saved.ok() ? kDone : fail(saved.error());
}

}  // namespace loom::cli
