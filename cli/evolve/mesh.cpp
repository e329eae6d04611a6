// loom mesh: runs and trains a network as a mesh, in which every cell fires once per tick.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <iostream>
#include <limits>
#include <memory>

#include "../plots/learning.hpp"
#include "../plots/mesh_picture.hpp"
#include "../plots/plot.hpp"
#include "../shared/outputs.hpp"
#include "../shared/progress.hpp"
#include "../shared/verbs.hpp"
#include "../train/option_flags.hpp"

namespace loom::cli {
namespace {

constexpr int64_t kMaxMeshTicks = int64_t{1} << 32;
// Ticks between two checks of the keyboard and the progress bar.
constexpr int64_t kTicksAtOnce = 256;

// Options of both running and training.
struct MeshFlags {
  EngineFlags engine;
  MemoryFlags memory;
  DataFlags data;
  std::string network, svg, output, dtype;
  bool force = false;
  std::vector<std::string> delays, links, ports;
  bool carry = false, zero_fill = false, json = false, quiet = false;
  uint64_t seed = 1;
  // run
  int64_t ticks = 0;
  bool stream = false;
  // train
  OptionFlags fitting;  // MeshFitOptions
  int64_t batch = 1, budget = 0;
  OptionFlags method;

  // Whether ticks go to standard output, and no other text.
  bool stream_out() const { return stream || output == "-"; }
  void add(Command verb);
  Result<MeshOptions> options(const Engine& on) const;
  Result<std::vector<MeshPort>> mesh_ports() const;
  Result<Dataset> samples(const Network& net, DatasetOptions how) const;
  Result<Network> load(const Engine& on) const;
  Status check_outputs(std::vector<std::string_view> endings, std::string_view writes) const;
};

Error wrong_link(std::string_view option, const std::string& text, std::string_view wants) {
  return Error{Code::invalid_argument, fmt::format("{} {}: {}", option, text, wants), {}, -1};
}

// "1,0,0,0"; empty if they are not integers.
std::vector<int64_t> parse_numbers(const std::string& text) {
  std::vector<int64_t> values;
  for (const std::string& part : split_list(text)) {
    const char* last = part.data() + part.size();
    const auto [end, code] = std::from_chars(part.data(), last, values.emplace_back());
    if (code != std::errc() || end != last) return {};
  }
  return values;
}

std::optional<Coord> parse_coord(const std::string& text) {
  const std::vector<int64_t> values = parse_numbers(text);
  if (values.size() != 4) return std::nullopt;
  return Coord{values[0], values[1], values[2], values[3]};
}

// A name has no comma, so it is never a mistyped coordinate.
bool is_name(const std::string& text) {
  return !text.empty() && text.find_first_of(",=") == std::string::npos;
}

// The link to a cell that was named before, or a new one.
MeshLink& link_to(std::vector<MeshLink>& links, const Coord& to) {
  for (MeshLink& link : links) {
    if (link.to == to) return link;
  }
  return links.emplace_back(MeshLink{.to = to});
}

Result<std::vector<MeshPort>> MeshFlags::mesh_ports() const {
  std::vector<MeshPort> all;
  for (const std::string& text : ports) {
    const size_t middle = text.find('=');
    const std::string name = text.substr(0, middle);
    const Shape shape =
        middle == std::string::npos ? Shape{} : Shape(parse_numbers(text.substr(middle + 1)));
    if (!is_name(name) || shape.empty())
      return wrong_link("--port", text, "give NAME=EXTENTS of one sample, as eye=3,8,8");
    all.push_back({name, shape});
  }
  return all;
}

// Additional inputs are arrays of DATA with their names.
Result<Dataset> MeshFlags::samples(const Network& net, DatasetOptions how) const {
  LOOM_ASSIGN(const std::vector<MeshPort> all, mesh_ports());
  for (const MeshPort& port : all) how.inputs.push_back({port.name, port.shape});
  return read_samples(data.path, net, how);
}

Result<MeshOptions> MeshFlags::options(const Engine& on) const {
  MeshOptions o;
  LOOM_ASSIGN(o.ports, mesh_ports());
  o.carry = carry;
  o.zero_fill = zero_fill;
  o.batch = batch;
  o.engine = on;
  for (const std::string& text : links) {
    const size_t middle = text.find('=');
    const auto to = parse_coord(text.substr(0, middle));
    const std::string source = middle == std::string::npos ? "" : text.substr(middle + 1);
    const auto from = parse_coord(source);
    if (!to || (!from && !is_name(source)))
      return wrong_link("--link", text, "give TO=FROM, each as Z,Y,X,L, or the name of a port");
    MeshLink& link = link_to(o.links, *to);
    link.from = from;
    link.port = from ? "" : source;
  }
  for (const std::string& text : delays) {
    const size_t middle = text.find('=');
    const auto to = parse_coord(text.substr(0, middle));
    int64_t delay = -1;
    const char* last = text.data() + text.size();
    const char* end = last;
    if (middle != std::string::npos)
      end = std::from_chars(text.data() + middle + 1, last, delay).ptr;
    if (!to || delay < 1 || end != last)
      return wrong_link("--delay", text, "give a cell and ticks, at least 1: Z,Y,X,L=TICKS");
    link_to(o.links, *to).delay = delay;
  }
  return o;
}

Result<Network> MeshFlags::load(const Engine& on) const {
  LoadOptions how{.seed = seed, .engine = on};
  if (!dtype.empty()) {
    LOOM_ASSIGN(how.dtype, parse_dtype(dtype));
  }
  return Network::load(network, how);
}

Status MeshFlags::check_outputs(std::vector<std::string_view> endings,
                                std::string_view writes) const {
  LOOM_TRY(refuse_table(network, "loom mesh run NETWORK DATA, or train"));
  Outputs outputs(force);
  outputs.input("NETWORK", network).input("DATA", data.path).input("--labels", data.labels);
  if (endings.front() == ".csv") {
    outputs.text("-o", output, std::move(endings), writes);
  } else {
    outputs.file("-o", output, std::move(endings), writes);
  }
  return outputs.file("--svg", svg, {".svg"}, "the activity of the mesh as SVG").check();
}

void MeshFlags::add(Command verb) {
  verb.option("NETWORK", network, "A network: .json, .entity, .safetensors, .onnx, .tflite or .npz")
      .required();
  data.add(verb);
  const Command grid = verb.group("Ticks and edges"), output_group = verb.group("Output");
  grid.option("--delay", delays, "Ticks that the input of a cell takes: Z,Y,X,L=TICKS")
      .one_at_a_time();
  grid.option("--link", links, "Where a cell takes its input from: Z,Y,X,L=Z,Y,X,L, or =PORT")
      .one_at_a_time();
  grid.option("--port", ports, "A further input, an array of DATA: NAME=EXTENTS of one sample")
      .one_at_a_time();
  grid.flag("--carry", carry, "Recurrent layers go on from the tick before");
  grid.flag("--zero-fill", zero_fill,
            "Cells fire on zeros as long as nothing reaches them (default: they hold)");
  output_group.option("--svg", svg, "Write the activity of every cell over the ticks: .svg");
  verb.option("--dtype", dtype, "Number type of the matrices (default: as stored)");
  verb.option("--seed", seed, "Seed of the initial weights").show_default();
  add_force(output_group, force);
  output_group.flag("--quiet", quiet, "No progress, no chart, no notes");
}

std::string cell_name(const MeshCell& cell) {
  return fmt::format("({},{},{},{}) {}", cell.at.z, cell.at.y, cell.at.x, cell.at.l,
                     cell.layer.empty() ? "-" : cell.layer);
}

// Rows first ... first + count - 1 of x; after its end the last one repeats.
template <class T>
Result<Tensor> held_rows(const Tensor& x, int64_t first, int64_t count) {
  LOOM_ASSIGN(const auto from, x.values<T>());
  const int64_t rows = x.shape()[0], each = x.size() / rows;
  std::vector<T> values;
  values.reserve(static_cast<size_t>(count * each));
  for (int64_t i = first; i < first + count; ++i) {
    const auto row = from.begin() + std::min(i, rows - 1) * each;
    values.insert(values.end(), row, row + each);
  }
  Shape shape = x.shape();
  shape[0] = count;
  return Tensor::copy<T>(values, shape);
}

// Runs a mesh some ticks at a time, and records the activity of its cells.
class MeshRun {
 public:
  explicit MeshRun(Mesh mesh) : mesh_(std::move(mesh)) {
    for (const MeshCell& cell : mesh_.cells()) activity_.cells.push_back(cell_name(cell));
  }
  const Mesh& mesh() const { return mesh_; }
  const Activity& activity() const { return activity_; }
  // Runs sample i of data in tick i; after the end the last one repeats. at_once: ticks per wait of
  // the host. on_ticks: receives the last cell's outputs, [ticks, output].
  Status run(const Dataset& data, int64_t ticks, int64_t at_once, bool quiet,
             const std::function<void(const Tensor&)>& on_ticks);

 private:
  Status watch_cells();
  Result<Tensor> some_ticks(const Dataset& data, int64_t first, int64_t count);
  Mesh mesh_;
  Activity activity_;
};

Status MeshRun::watch_cells() {
  const size_t cells = activity_.cells.size();
  if (mesh_.activity().size() == 0) return {};
  LOOM_ASSIGN(const auto values, mesh_.activity().values<float>());
  for (size_t i = 0; i < values.size(); ++i) {
    if (i % cells == 0) activity_.values.emplace_back();
    activity_.values.back().push_back(static_cast<double>(values[i]));
  }
  return {};
}

// Ticks first ... first + count - 1.
Result<Tensor> MeshRun::some_ticks(const Dataset& data, int64_t first, int64_t count) {
  const auto rows = [&](const Tensor& x) -> Result<Tensor> {
    if (first + count <= x.shape()[0]) return x.slice(first, count);
    return x.dtype() == DType::int32 ? held_rows<int32_t>(x, first, count)
                                     : held_rows<float>(x, first, count);
  };
  std::vector<MeshSamples> ports;
  for (const std::string& name : data.further_inputs()) {
    LOOM_ASSIGN(const Tensor all, data.input(name, 0, data.samples()));
    LOOM_ASSIGN(Tensor mine, rows(all));
    ports.push_back({name, std::move(mine)});
  }
  LOOM_ASSIGN(const Tensor x, rows(data.x()));
  return mesh_.run(x, ports);
}

Status MeshRun::run(const Dataset& data, int64_t ticks, int64_t at_once, bool quiet,
                    const std::function<void(const Tensor&)>& on_ticks) {
  Progress bar("running", "ticks", quiet);
  for (int64_t t = 0; t < ticks;) {
    if (interrupted()) return Error{Code::cancelled, "stopped", {}, -1};
    const int64_t some = std::min(ticks - t, at_once);
    LOOM_ASSIGN(const Tensor y, some_ticks(data, t, some));
    on_ticks(y);
    LOOM_TRY(watch_cells());
    t += some;
    bar.update(t, ticks);
  }
  bar.finish();
  return {};
}

// A line for each row of y, the first of which is of tick `tick`.
std::string tick_lines(int64_t tick, const Tensor& y) {
  std::string lines;
  const auto values = y.values<float>();
  const size_t each = values->size() / static_cast<size_t>(y.shape()[0]);
  for (size_t i = 0; i < values->size(); ++i) {
    if (i % each == 0) lines += std::to_string(tick++);
    lines += fmt::format(",{}{}", (*values)[i], i % each + 1 == each ? "\n" : "");
  }
  return lines;
}

// The same as objects.
void print_tick_objects(int64_t tick, const Tensor& y) {
  const auto values = y.values<float>();
  const size_t each = values->size() / static_cast<size_t>(y.shape()[0]);
  for (size_t first = 0; first + each <= values->size(); first += each) {
    Json outputs = Json::array();
    for (const float value : values->subspan(first, each))
      outputs.push(Json::real(static_cast<double>(value)));
    JsonObject().set("tick", tick++).set("outputs", outputs).print();
  }
}

void write_ticks(const MeshFlags& f, int64_t tick, const Tensor& y) {
  if (!f.stream_out()) return;
  if (f.json) {
    print_tick_objects(tick, y);
  } else {
    write_out(tick_lines(tick, y));
  }
}

Result<MeshRun> make_run(const MeshFlags& f, const Network& net, const Engine& engine) {
  LOOM_ASSIGN(MeshOptions options, f.options(engine));
  options.batch = 1;
  // Activity is shown in the plot, and in the terminal if there is no other text.
  options.activity = !f.svg.empty() || (!f.quiet && !f.json && !f.stream_out());
  LOOM_ASSIGN(Mesh mesh, Mesh::create(net, options));
  return MeshRun(std::move(mesh));
}

Status show_activity(const MeshFlags& f, const MeshRun& run) {
  if (!f.quiet && !f.json && !f.stream_out()) write_out(activity_text(run.activity()));
  if (f.svg.empty()) return {};
  const std::string title = fmt::format("{} on {}", f.network, f.data.path);
  return write_file(f.svg, activity_svg(run.activity(), printable(title, title.size())));
}

void print_run(const MeshFlags& f, const Mesh& mesh, double seconds) {
  const int64_t ticks = mesh.ticks();
  const double rate = static_cast<double>(ticks) / std::max(seconds, 1e-9);
  if (f.json) {
    JsonObject()
        .set("ticks", ticks)
        .set("cells", static_cast<int64_t>(mesh.cells().size()))
        .set("latency", mesh.latency())
        .set("stale", mesh.stale())
        .set("bytes", mesh.bytes())
        .set("seconds", seconds)
        .print();
    return;
  }
  if (f.quiet || f.stream_out()) return;
  const std::string result =
      mesh.latency() < 0
          ? "nothing reaches the last"
          : fmt::format("a result {} ticks after its sample, {} results", mesh.latency(),
                        std::max<int64_t>(ticks - mesh.latency() + 1, 0));
  write_out(fmt::format("{} ticks of {} cells: {}, {} stale\n", ticks, mesh.cells().size(), result,
                        mesh.stale()));
  note(fmt::format("{:.0f} ticks/s", rate));
}

// Lines of standard input as samples: each result is printed before the next line is read.
Status run_lines(const MeshFlags& f, const Network& net, DatasetOptions how, MeshRun& run) {
  std::string csv;
  int64_t tick = 1, row = 1;
  const auto start = std::chrono::steady_clock::now();
  const auto goes_on = [&] { return !interrupted() && (f.ticks == 0 || tick <= f.ticks); };
  for (std::string line; goes_on() && std::getline(std::cin, line); ++row) {
    const std::string name = fmt::format("standard input, row {}", row);
    Result<Dataset> sample =
        Dataset::from_file(FileBytes{std::as_bytes(std::span(line)), name}, net, how);
    if (!sample.ok() && row == 1) continue;  // a header
    if (!sample.ok()) return sample.error();
    LOOM_TRY(run.run(*sample, 1, 1, true, [&](const Tensor& y) {
      write_ticks(f, tick, y);
      if (!f.output.empty() && f.output != "-") csv += tick_lines(tick, y);
    }));
    ++tick;
  }
  if (row == 1) return Error{Code::bad_file, "has no samples", "standard input", -1};
  if (!csv.empty()) LOOM_TRY(write_file(f.output, csv));
  LOOM_TRY(show_activity(f, run));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  print_run(f, run.mesh(), seconds.count());
  return {};
}

Status run_mesh(const MeshFlags& f, const Engine& engine) {
  LOOM_ASSIGN(const Network net, f.load(engine));
  if (net.info().fresh && !f.quiet) note("a description without weights: they are random");
  LOOM_ASSIGN(DatasetOptions how, f.data.options(false));
  how.inputs_only = true;
  LOOM_ASSIGN(MeshRun run, make_run(f, net, engine));
  if (f.stream && f.data.path == "-") return run_lines(f, net, how, run);
  LOOM_ASSIGN(const Dataset data, f.samples(net, how));
  const int64_t wait = std::max<int64_t>(run.mesh().latency() - 1, 0);
  const int64_t ticks = f.ticks > 0 ? f.ticks : data.samples() + wait;
  std::string csv;
  int64_t tick = 1;
  const auto on_ticks = [&](const Tensor& y) {
    write_ticks(f, tick, y);
    if (!f.output.empty() && f.output != "-") csv += tick_lines(tick, y);
    tick += y.shape()[0];
  };
  const auto start = std::chrono::steady_clock::now();
  const int64_t at_once = f.stream ? 1 : kTicksAtOnce;
  LOOM_TRY(run.run(data, ticks, at_once, f.quiet || f.stream_out(), on_ticks));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  if (!csv.empty()) LOOM_TRY(write_file(f.output, csv));
  LOOM_TRY(show_activity(f, run));
  print_run(f, run.mesh(), seconds.count());
  return {};
}

// The defaults of the program.
MeshTrainerOptions usual_training() {
  MeshTrainerOptions o;
  o.rate = 2e-3;
  return o;
}

Result<MeshTrainerOptions> training_options(const MeshFlags& f) {
  OptionFlags method = f.method;
  // In earlier versions the value was the limit of the norm.
  const std::string clip = method.text("clip");
  if (!clip.empty() && clip.find_first_not_of("0123456789.e+-") == std::string::npos) {
    method.set("clip", {"norm"});
    method.set("clip-limit", {clip});
    note(fmt::format("--clip {} is now --clip norm --clip-limit {}", clip, clip));
  }
  MeshTrainerOptions o = usual_training();
  LOOM_TRY(method.note_earlier_flags());
  LOOM_TRY(method.read(o));
  o.seed = f.seed;
  o.memory = static_cast<uint64_t>(f.budget) << 20;
  return o;
}

std::string mesh_epoch_line(const MeshEpoch& e, int64_t epochs) {
  std::string text = fmt::format("epoch {}/{}  loss {:.5f}", e.number, epochs, e.loss);
  if (e.accuracy) text += fmt::format("  accuracy {}", percent(*e.accuracy));
  return text + "\n";
}

Status train_mesh(const MeshFlags& f, const Engine& engine) {
  LOOM_ASSIGN(const MeshTrainerOptions how, training_options(f));
  LOOM_ASSIGN(const MeshOptions options, f.options(engine));
  LOOM_ASSIGN(const Network net, f.load(engine));
  LOOM_ASSIGN(const DatasetOptions reading, f.data.options(loss_info(how.loss).classes));
  LOOM_ASSIGN(const Dataset data, f.samples(net, reading));
  LOOM_ASSIGN(MeshTrainer trainer, MeshTrainer::create(net, options, how));
  Progress bar("training", "windows", f.quiet);
  MeshFitOptions fit;
  LOOM_TRY(f.fitting.read(fit));
  fit.on_window = [&](int64_t done, int64_t total) {
    bar.update(done, total);
    return !interrupted();
  };
  Json losses = Json::array();
  fit.on_epoch = [&](const MeshEpoch& e) {
    bar.finish();
    losses.push(Json::real(e.loss));
    if (!f.quiet && !f.json) write_out(mesh_epoch_line(e, fit.epochs));
  };
  LOOM_ASSIGN(const std::vector<MeshEpoch> epochs, trainer.fit(data, fit));
  if (!f.output.empty()) LOOM_TRY(net.save(f.output));
  if (f.json) {
    JsonObject out;
    out.set("losses", losses).set("window", how.window).set("stride", how.stride);
    if (!epochs.empty() && epochs.back().accuracy) out.set("accuracy", *epochs.back().accuracy);
    out.print();
  }
  if (f.svg.empty()) return {};
  LOOM_ASSIGN(MeshRun run, make_run(f, net, engine));
  constexpr int64_t kShown = 64;
  LOOM_TRY(
      run.run(data, std::min<int64_t>(data.samples(), kShown), kShown, true, [](const Tensor&) {}));
  return show_activity(f, run);
}

int mesh_exit(const Status& status) {
  if (status.ok()) return kDone;
  return status.error().code == Code::cancelled ? fail_interrupted() : fail(status.error());
}

Verb add_mesh_run(Command mesh) {
  auto f = std::make_shared<MeshFlags>();
  const Command verb = mesh.command("run", "Run a network tick by tick, one sample per tick.");
  verb.examples(
      "  loom mesh run net.entity stream.csv --svg mesh.svg\n"
      "  sensor | loom mesh run net.entity - --stream\n"
      "  loom mesh run net.json stream.npz --delay 2,0,0,0=3 --ticks 100 -o outputs.csv\n"
      "  loom mesh run net.json stream.npz --port eye=3,8,8 --link 1,0,0,0=eye");
  f->add(verb);
  const Command output = verb.group("Output");
  verb.group("Ticks and edges")
      .option("--ticks", f->ticks, "Ticks to run (default: until the last sample is through)")
      .range(1, kMaxMeshTicks);
  output.flag("--stream", f->stream, "A line of CSV per tick, as soon as it is there, and no more");
  output.option("-o,--output", f->output,
                "Write what the last cell gives in every tick: .csv; -: to standard output");
  f->engine.add(verb);
  f->engine.add_device(verb);
  f->memory.add(verb);
  output.flag("--json", f->json,
              "One JSON object instead of text; with --stream one per tick before it");
  return {verb, [f] {
            const Status writable = f->check_outputs({".csv"}, "outputs");
            if (!writable.ok()) return fail(writable.error());
            const Result<Engine> engine = f->engine.create(f->memory);
            return engine.ok() ? mesh_exit(run_mesh(*f, *engine)) : fail(engine.error());
          }};
}

Verb add_mesh_train(Command mesh) {
  auto f = std::make_shared<MeshFlags>();
  const Command verb =
      mesh.command("train", "Train a network through its ticks; DATA is a stream of samples.");
  verb.examples(
      "  loom mesh train net.json stream.csv --bptt 16 -o net.entity\n"
      "  loom mesh train net.json stream.npz --bptt 32 --stride 8 --carry --batch 4\n"
      "  loom mesh train net.json stream.csv --rule dfa --bptt 16\n"
      "  loom mesh train net.json stream.csv --link 0,0,0,0=2,0,0,0 --svg mesh.svg");
  f->add(verb);
  const Command run = verb.group("Run"), output = verb.group("Output");
  f->fitting.add(verb, list_options(MeshFitOptions()));
  run.option("--batch", f->batch, "Cut DATA into so many streams side by side")
      .range(1, 1 << 20)
      .show_default();
  run.option("--budget", f->budget, "MB that windows, gradients and moments may take")
      .range(1, int64_t{1} << 30);
  f->method.add(verb, list_options(usual_training()), {"seed", "memory"});
  output.option("-o,--output", f->output, "Write the trained network: .entity or .safetensors");
  f->engine.add_lanes(verb);
  f->engine.add_device(verb);
  f->memory.add(verb);
  output.flag("--json", f->json, "One JSON object instead of text");
  return {verb, [f] {
            const Status writable =
                f->check_outputs({".entity", ".safetensors"}, "the trained network");
            if (!writable.ok()) return fail(writable.error());
            keep_running_without_stdout();
            const Result<Engine> engine = f->engine.create(f->memory);
            return engine.ok() ? mesh_exit(train_mesh(*f, *engine)) : fail(engine.error());
          }};
}

}  // namespace

Verb add_mesh(Command app) {
  const Command mesh =
      app.command("mesh", "Run a network in which every cell fires once per tick.");
  mesh.require_command();
  const Verb run = add_mesh_run(mesh), train = add_mesh_train(mesh);
  return {mesh, [run, train] { return run.command.called() ? run.run() : train.run(); }};
}

}  // namespace loom::cli
