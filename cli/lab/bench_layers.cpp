// loom bench layers: time of one forward pass or training step of layers and small networks, per
// mode and dtype.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>

#include "api/engine/impl.hpp"
#include "backend/reference/reference.hpp"
#include "base/text.hpp"
#include "lab.hpp"
#include "lab/layer_bench.hpp"
#include "lab/machine_bench.hpp"
#include "profile.hpp"

namespace loom::core::cli {
namespace {

struct LayersFlags {
  std::string suite = "peer", filter, modes = "multi", dtypes = "float32", activations = "f32";
  int threads = 0;
  double seconds = 0.4;
  bool profile = false, json = false, machine = false;
  std::string gpu_library;
};

// A mode: which kernels, on how many lanes.
struct Mode {
  std::string name;
  const Ops* ops;
  int threads;
  webgpu::Backend* gpu = nullptr;
  Isa isa = Isa::scalar;
  double peak = 0;  // GFLOP/s of fma in f32; 0 means not measured
};

double now() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

Result<std::vector<Mode>> modes_of(const LayersFlags& f, int cores, std::optional<Engine>& gpu) {
  std::vector<Mode> modes;
  const Ops& best = cpu_ops(best_isa());
  const std::string words = to_lower_ascii(f.modes);
  for (const std::string& name :
       split_list(words == "all" ? "reference,isas,single,multi" : words)) {
    if (name == "reference") {
      modes.push_back({name, &reference_ops(), 1});
    } else if (name == "single") {
      modes.push_back({name, &best, 1, nullptr, best_isa()});
    } else if (name == "multi") {
      modes.push_back({name, &best, cores, nullptr, best_isa()});
    } else if (name == "gpu") {
      EngineFlags flags;
      flags.device = "gpu";
      flags.gpu_library = f.gpu_library;
      LOOM_ASSIGN(gpu, flags.create());
      webgpu::Backend* backend = gpu->impl().gpu.get();
      modes.push_back({name, &backend->ops(), 1, backend});
    } else if (name == "isas") {
      for (const Isa isa : available_isas()) {
        if (isa == best_isa()) continue;
        modes.push_back({std::string(isa_name(isa)), &cpu_ops(isa), 1, nullptr, isa});
      }
    } else {
      const Result<Isa> isa = parse_isa(name);
      if (!isa.ok()) {
        std::string known = "reference, single, multi, isas, all, gpu";
        for (const Isa available : available_isas()) known += cat(", ", isa_name(available));
        return invalid(cat("unknown mode '", printable(name), "'; known are ", known));
      }
      modes.push_back({name, &cpu_ops(*isa), 1, nullptr, *isa});
    }
  }
  return modes;
}

// The peak of every mode on the CPU; equal sets with equal lanes are measured once.
Status measure_machine(std::vector<Mode>& modes) {
  constexpr double kSeconds = 1.5;
  std::map<std::pair<Isa, int>, double> peaks;
  for (const Mode& mode : modes) {
    if (mode.gpu == nullptr) peaks[{mode.isa, mode.threads}] = 0;
  }
  for (auto& [key, peak] : peaks) {
    LOOM_ASSIGN(peak, measure_peak(PeakKind::fma_f32, key.first, key.second,
                                   kSeconds / static_cast<double>(peaks.size())));
  }
  for (Mode& mode : modes) {
    if (mode.gpu == nullptr) mode.peak = peaks[{mode.isa, mode.threads}];
  }
  return {};
}

Result<std::vector<DType>> dtypes_of(const std::string& list) {
  std::vector<DType> dtypes;
  if (to_lower_ascii(list) == "all") {
    for (const DTypeInfo& info : dtype_table()) dtypes.push_back(info.dtype);
    return dtypes;
  }
  for (const std::string& name : split_list(list)) {
    Result<DType> dtype = parse_dtype(name);
    if (!dtype.ok()) return dtype.error();
    dtypes.push_back(*dtype);
  }
  return dtypes;
}

struct Timing {
  double median = 0, least = 0;  // microseconds
  int runs = 0;
  bool alive = false;
  int64_t dispatches = 0, submits = 0;  // of one run on a GPU
  std::vector<ProfileRow> profile;      // likewise
};

// The kernel times of a run, by timestamps.
Result<std::vector<ProfileRow>> profile_of(LayerRun& run, webgpu::Backend& gpu) {
  constexpr int kRuns = 32;
  LOOM_TRY(gpu.set_profile(true));
  LOOM_TRY(run.run(kRuns));
  gpu.take_profile();
  LOOM_TRY(run.run(kRuns));
  std::vector<ProfileRow> rows = profile_rows(gpu.take_profile(), kRuns);
  LOOM_TRY(gpu.set_profile(false));
  return rows;
}

Result<Timing> measure(LayerRun& run, bool train, const LayersFlags& f, const Mode& mode) {
  std::vector<double> times;
  for (const double begin = now(); now() - begin < warm_up_seconds(mode.gpu);) LOOM_TRY(run.run(8));
  const double start = now();
  webgpu::Counts before_run;
  for (int i = 0; i < 3; ++i) {
    if (mode.gpu != nullptr) before_run = mode.gpu->counts();
    LOOM_TRY(run.run());
  }
  Timing timing;
  if (mode.gpu != nullptr) {
    timing.dispatches = mode.gpu->counts().dispatches - before_run.dispatches;
    timing.submits = mode.gpu->counts().submits - before_run.submits;
  }
  // A GPU gets steps in sequence, as in training: each time as many as run in a twentieth of a
  // second.
  int count = 1;
  if (mode.gpu != nullptr && train) {
    for (const int n : {8, 64}) {
      const double before = now();
      LOOM_TRY(run.run(n));
      count = static_cast<int>(std::clamp(0.05 * n / (now() - before), 1.0, 4096.0));
      if (count < n) break;
    }
  }
  while (times.size() < 5 || now() - start < f.seconds) {
    const double before = now();
    LOOM_TRY(run.run(count));
    times.push_back((now() - before) * 1e6 / count);
    if (interrupted()) return Error{Code::cancelled, "interrupted", {}, -1};
  }
  std::sort(times.begin(), times.end());
  timing.median = times[times.size() / 2];
  timing.least = times.front();
  timing.runs = static_cast<int>(times.size());
  if (f.profile && mode.gpu != nullptr) {
    LOOM_ASSIGN(timing.profile, profile_of(run, *mode.gpu));
  }
  LOOM_ASSIGN(const double magnitude, run.output_magnitude());
  timing.alive = magnitude > 0;
  return timing;
}

struct Row {
  const LayerCase* c;
  DType dtype;
  const Mode* mode;
  Timing timing;
};

double gigaflops(const Row& row) {
  return row.c->flop / row.timing.median / 1e3;
}
// 0 if the work or the machine was not measured.
double percent_of_peak(const Row& row) {
  return row.mode->peak > 0 ? 100 * gigaflops(row) / row.mode->peak : 0;
}

std::string text_row(const Row& row) {
  std::string line = fmt::format("{:5} {:38} {:9} {:10} t={} {:11.1f} us  min {:11.1f} us",
                                 row.c->suite, row.c->name, dtype_name(row.dtype), row.mode->name,
                                 row.mode->threads, row.timing.median, row.timing.least);
  if (row.c->flop > 0) line += fmt::format("  {:7.1f} GFLOP/s", gigaflops(row));
  if (percent_of_peak(row) > 0)
    line += fmt::format("  {:5.1f} % of FMA peak", percent_of_peak(row));
  if (row.mode->gpu != nullptr) {
    line += fmt::format("  {} dispatches in {} submits", row.timing.dispatches, row.timing.submits);
  }
  if (!row.timing.alive) line += "  DEAD OUTPUT";
  return line + "\n";
}

Json json_row(const Row& row) {
  Json v = Json::object();
  v.add("suite", Json::string(row.c->suite));
  v.add("name", Json::string(row.c->name));
  v.add("training", Json::boolean(row.c->train));
  v.add("dtype", Json::string(std::string(dtype_name(row.dtype))));
  v.add("mode", Json::string(row.mode->name));
  v.add("threads", Json::integer(row.mode->threads));
  v.add("median_us", Json::real(row.timing.median));
  v.add("min_us", Json::real(row.timing.least));
  v.add("runs", Json::integer(row.timing.runs));
  v.add("alive", Json::boolean(row.timing.alive));
  if (row.mode->peak > 0) {
    v.add("machine_gflop_per_s", Json::real(row.mode->peak));
    if (row.c->flop > 0) {
      v.add("gflop_per_s", Json::real(gigaflops(row)));
      v.add("percent_of_fma_peak", Json::real(percent_of_peak(row)));
    }
  }
  if (row.mode->gpu != nullptr) {
    v.add("dispatches", Json::integer(row.timing.dispatches));
    v.add("submits", Json::integer(row.timing.submits));
    if (!row.timing.profile.empty()) v.add("profile", profile_json(row.timing.profile));
  }
  return v;
}

int run(const LayersFlags& f) {
  const Result<Activations> activations = loom::parse_activations(f.activations);
  if (!activations.ok()) return fail(activations.error());
  const ActivationMode how = activation_mode(*activations, ActivationMode::f32);
  ThreadPool probe(f.threads, false);
  std::optional<Engine> gpu;
  Result<std::vector<Mode>> modes = modes_of(f, probe.lanes(), gpu);
  if (!modes.ok()) return fail(modes.error());
  const Result<std::vector<DType>> dtypes = dtypes_of(f.dtypes);
  if (!dtypes.ok()) return fail(dtypes.error());
  if (f.machine) {
    if (const Status status = measure_machine(*modes); !status.ok()) return fail(status.error());
  }
  const std::string suite = to_lower_ascii(f.suite);
  Json rows = Json::array();
  int measured = 0, dead = 0;
  for (const LayerCase& c : layer_cases()) {
    if (suite != "all" && to_lower_ascii(c.suite) != suite) continue;
    if (c.name.find(f.filter) == std::string::npos) continue;
    for (const DType dtype : *dtypes) {
      for (const Mode& mode : *modes) {
        ThreadPool pool(mode.threads, false);
        Result<LayerRun> ready = LayerRun::create(c, dtype, how, *mode.ops, pool);
        if (!ready.ok()) return fail(ready.error());
        const Result<Timing> timing = measure(*ready, c.train, f, mode);
        if (!timing.ok()) return fail(timing.error());
        const Row row{&c, dtype, &mode, *timing};
        ++measured;
        if (!timing->alive) ++dead;
        if (f.json) {
          rows.push(json_row(row));
        } else {
          write_out(text_row(row));
          if (!timing->profile.empty()) print_profile("its kernels, per run", timing->profile);
        }
      }
    }
  }
  if (measured == 0) {
    return fail(kUsage,
                fmt::format("no case of suite '{}' has '{}' in its name; suites are peer, A, "
                            "B, D, E, load, all",
                            f.suite, f.filter));
  }
  if (f.json) write_out(rows.pretty() + "\n");
  return dead == 0 ? kDone : kMismatch;
}

}  // namespace

Verb add_bench_layers(Command app) {
  auto f = std::make_shared<LayersFlags>();
  const Command verb = app.find("bench").command(
      "layers", "Time of layers and small networks, forward and training; needs no file.");
  verb.examples(
      "  loom bench layers\n"
      "  loom bench layers --suite D --modes all --dtypes float32,int8,ternary\n"
      "  loom bench layers --suite B --modes multi,gpu\n"
      "  loom bench layers --filter dense --dtypes int8 --activations q8 --json");
  verb.option("--suite", f->suite, "peer, A, B, D, E, load or all").show_default();
  verb.option("--filter", f->filter, "Only cases with this text in their name");
  verb.option("--modes", f->modes,
              "reference, single, multi, isas, all, gpu, or instruction sets; a comma list")
      .show_default();
  verb.option("--gpu-library", f->gpu_library, "WebGPU library for mode gpu");
  verb.option("--dtypes", f->dtypes, "Number types of the weights, or all").show_default();
  verb.option("--activations", f->activations,
              "q8: activations in int8 for integer types; f32: in float")
      .show_default();
  verb.option("--threads", f->threads, "Lanes of mode multi; 0: all cores").range(0, 4096);
  verb.option("--seconds", f->seconds, "How long each case is measured")
      .range(0.001, 3600.0)
      .show_default();
  verb.flag("--profile", f->profile, "With mode gpu: time per kernel, by timestamps");
  verb.flag("--machine", f->machine,
            "Also the share of what this machine reaches in f32 multiply-adds; int8 may do more");
  verb.flag("--json", f->json, "A JSON array instead of text");
  return {verb, [f] { return run(*f); }};
}

}  // namespace loom::core::cli
