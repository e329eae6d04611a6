// loom doctor: build options, processor features, and a proof that it computes correctly.
#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "api/engine/gpu.hpp"
#include "api/engine/impl.hpp"
#include "base/numbers/x86_features.hpp"
#include "lab.hpp"
#include "lab/hardware_audit.hpp"
#include "lab/machine_info.hpp"
#include "lab/self_check.hpp"
#include "lab/tile_plan.hpp"

namespace loom::core::cli {
namespace {

std::string compiler() {
#if defined(__clang__)
  return fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#elif defined(__GNUC__)
  return fmt::format("gcc {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#else
  return "unknown";
#endif
}

// Features that kernels use or may use.
std::vector<std::string> cpu_features() {
  std::vector<std::string> features;
#if defined(__x86_64__)
  const core::X86Features& f = core::x86_features();
#define LOOM_FEATURE(name) \
  if (f.name) features.emplace_back(#name)
  LOOM_FEATURE(avx);
  LOOM_FEATURE(avx2);
  LOOM_FEATURE(bmi2);
  LOOM_FEATURE(f16c);
  LOOM_FEATURE(fma);
  LOOM_FEATURE(avxvnni);
  LOOM_FEATURE(avx512f);
  LOOM_FEATURE(avx512bw);
  LOOM_FEATURE(avx512dq);
  LOOM_FEATURE(avx512vl);
  LOOM_FEATURE(avx512vnni);
#undef LOOM_FEATURE
#endif
  return features;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text.empty() ? "none" : text;
}

struct GpuReport;
Json gpu_json(const GpuReport& report);
Json plan_json(const MachineInfo& machine, const GpuReport& report);

Json caches_json(const MachineInfo& machine) {
  Json out = Json::array();
  for (const CacheInfo& c : machine.caches)
    out.push(
        JsonObject().set("level", c.level).set("bytes", c.bytes).set("count", c.count).value());
  return out;
}

// Unknown values are left out.
Json audit_json(const HardwareAudit& a) {
  Json thermal = Json::array(), power = Json::array();
  for (const ThermalZone& z : a.thermal)
    thermal.push(JsonObject().set("name", z.name).set("celsius", z.celsius).value());
  for (const PowerSource& p : a.power) {
    JsonObject one;
    one.set("name", p.name);
    if (!p.status.empty()) one.set("status", p.status);
    if (p.share >= 0) one.set("charge", p.share);
    if (p.joules >= 0) one.set("joules", p.joules);
    power.push(one.value());
  }
  JsonObject out;
  out.set("system", a.system)
      .set("release", a.release)
      .set("uptime_seconds", a.uptime_seconds)
      .set("memory_total_bytes", a.memory_total)
      .set("memory_available_bytes", a.memory_available)
      .set("resident_bytes", a.resident)
      .set("resident_peak_bytes", a.resident_peak)
      .set("cache_line_bytes", a.cache_line);
  if (a.mhz > 0) out.set("mhz", a.mhz);
  if (a.mhz_most > 0) out.set("mhz_most", a.mhz_most);
  if (!a.governor.empty()) out.set("governor", a.governor);
  return out.set("thermal", thermal).set("power", power).value();
}

// If the system does not report caches, the usual sizes are assumed.
struct PlannedCaches {
  int64_t l1 = 32768, l2 = 262144, last_share = 2097152;
  bool known = false;
};
PlannedCaches planned_caches(const MachineInfo& machine) {
  PlannedCaches out;
  for (const CacheInfo& c : machine.caches) {
    out.known = true;
    if (c.level == 1) out.l1 = c.bytes;
    if (c.level == 2) out.l2 = c.bytes;
    if (c.level > 2) out.last_share = c.bytes * c.count / std::max(1, machine.cores);
  }
  return out;
}

// Work sizes for a few common shapes, with the reasons.
std::vector<std::pair<std::string, Tile>> planned_tiles(const MachineInfo& machine,
                                                        const GpuLimits& gpu) {
  const PlannedCaches c = planned_caches(machine);
  const ProductBlocks blocks = product_blocks(c.l1, c.l2, c.last_share, 4);
  std::vector<std::pair<std::string, Tile>> out = {
      {"attention, heads of 64", attention_tile(c.l1, 64, 4)},
      {"attention, heads of 128", attention_tile(c.l1, 128, 4)},
      {"products, float32, depth", {blocks.kc, blocks.reason}},
      {"products, float32, rows", {blocks.mc, "see depth"}},
      {"products, float32, columns", {blocks.nc, "see depth"}},
  };
  if (gpu.workgroup_bytes == 0) return out;
  out.emplace_back("gpu attention, heads of 64", gpu_attention_tile(gpu, 64));
  out.emplace_back("gpu products, float32", gpu_product_tile(gpu, 4, true));
  out.emplace_back("gpu products, int8", gpu_product_tile(gpu, 1, true));
  return out;
}

void print_hardware(const MachineInfo& machine, const HardwareAudit& a) {
  const auto line = [](std::string_view name, const std::string& value) {
    write_out(fmt::format("{:<16} {}\n", name, value));
  };
  line("processor", machine.name);
  std::string caches;
  for (const CacheInfo& c : machine.caches)
    caches += fmt::format("{}L{} {} x {}", caches.empty() ? "" : ", ", c.level, c.count,
                          human_bytes(c.bytes));
  line("caches",
       caches.empty() ? "not available" : caches + fmt::format(", lines of {}", a.cache_line));
  line("memory", a.memory_total == 0 ? std::string("not available")
                                     : fmt::format("{} of {} free", human_bytes(a.memory_available),
                                                   human_bytes(a.memory_total)));
  std::string heat;
  for (const ThermalZone& z : a.thermal)
    heat += fmt::format("{}{} {:.1f} C", heat.empty() ? "" : ", ", z.name, z.celsius);
  line("temperatures", heat.empty() ? "not available" : heat);
  std::string power;
  for (const PowerSource& p : a.power)
    power += fmt::format("{}{} {}{}", power.empty() ? "" : ", ", p.name, p.status,
                         p.share >= 0 ? fmt::format(" {:.0f} %", 100 * p.share) : std::string());
  line("power", power.empty() ? "not available" : power);
}

void print_json(const EngineInfo& info, const std::vector<SelfCheck>& checks,
                const GpuReport& gpu) {
  const MachineInfo machine = machine_info();
  Json list = Json::array();
  for (const SelfCheck& check : checks) {
    list.push(JsonObject()
                  .set("isa", isa_name(check.isa))
                  .set("checked", check.checked)
                  .set("ok", check.failed.empty())
                  .set("failed", check.failed)
                  .value());
  }
  JsonObject()
      .set("version", info.version)
      .set("compiler", compiler())
      .set("cores", info.cores)
      .set("threads_built_in", info.threads_built_in)
      .set("cpu_features", cpu_features())
      .set("isas", info.isas)
      .set("best_isa", info.isas.back())
      .set("dtypes", dtype_names())
      .set("self_check", list)
      .set("processor", machine.name)
      .set("caches", caches_json(machine))
      .set("hardware", audit_json(audit_hardware()))
      .set("tile_plan", plan_json(machine, gpu))
      .set("gpu", gpu_json(gpu))
      .print();
}

void print_text(const EngineInfo& info, const std::vector<SelfCheck>& checks) {
  const auto line = [](std::string_view name, const std::string& value) {
    write_out(fmt::format("{:<16} {}\n", name, value));
  };
  line("version", info.version);
  line("compiler", compiler());
  line("cores", fmt::format("{}", info.cores));
  line("threads", info.threads_built_in ? "built in" : "not built in");
  line("cpu features", joined(cpu_features()));
  line("instruction sets", fmt::format("{} (best: {})", joined(info.isas), info.isas.back()));
  line("number types", joined(dtype_names()));
  for (const SelfCheck& check : checks) {
    const std::string verdict = check.failed.empty() ? "OK" : "WRONG BITS: " + joined(check.failed);
    line(fmt::format("check {}", isa_name(check.isa)),
         fmt::format("{} ({} products against the reference)", verdict, check.checked));
  }
}

// The GPU and its missing features; or the reason why there is none.
struct GpuReport {
  std::shared_ptr<Engine> engine;
  std::string why;
  const webgpu::Backend* backend() const {
    return engine == nullptr ? nullptr : engine->impl().gpu.get();
  }
};

GpuReport look_at_gpu(EngineFlags flags) {
  flags.device = "gpu";
  flags.threads = 1;
  const Result<Engine> engine = flags.create();
  if (!engine.ok()) return {nullptr, engine.error().str()};
  return {std::make_shared<Engine>(*engine), {}};
}

GpuLimits limits_of(const GpuReport& report) {
  if (report.backend() == nullptr) return {};
  const webgpu::AdapterReport& a = report.backend()->adapter();
  return {static_cast<int64_t>(a.max_workgroup_memory), static_cast<int64_t>(a.max_workgroup_size)};
}

Json plan_json(const MachineInfo& machine, const GpuReport& report) {
  Json out = Json::array();
  for (const auto& [what, tile] : planned_tiles(machine, limits_of(report)))
    out.push(
        JsonObject().set("work", what).set("size", tile.size).set("reason", tile.reason).value());
  return out;
}

void print_plan(const MachineInfo& machine, const GpuReport& report) {
  for (const auto& [what, tile] : planned_tiles(machine, limits_of(report)))
    write_out(fmt::format("{:<28} {:>6}  {}\n", "tile: " + what, tile.size, tile.reason));
}

std::string features_of(const webgpu::AdapterReport& a) {
  std::string text;
  if (a.f16) text += "shader-f16 ";
  if (a.subgroups) {
    text += a.subgroup > 1 ? fmt::format("subgroups ({}) ", a.subgroup) : "subgroups (not used) ";
  }
  if (a.timestamps) text += "timestamp-query ";
  if (a.immediates > 0) text += fmt::format("immediates ({} bytes) ", a.immediates);
  return text.empty() ? "none" : text.substr(0, text.size() - 1);
}

// The cache file of variants, and how many it has for this adapter.
std::string cache_of(const Engine::Impl& impl) {
  if (impl.gpu_cache.empty()) return "none";
  if (!impl.gpu_cache_note.empty()) {
    return fmt::format("{} (ignored: {})", impl.gpu_cache, impl.gpu_cache_note);
  }
  return fmt::format("{} (choices for this GPU: {})", impl.gpu_cache, impl.gpu->choices().size());
}

void print_gpu_text(const GpuReport& report) {
  const auto line = [](std::string_view name, const std::string& value) {
    write_out(fmt::format("{:<16} {}\n", name, value));
  };
  if (report.backend() == nullptr) return line("gpu", report.why);
  const webgpu::AdapterReport& a = report.backend()->adapter();
  line("gpu",
       fmt::format("{} ({}, {}{})", a.name, a.backend, a.driver, a.software ? "; software" : ""));
  line("gpu library", fmt::format("{} ({})", a.library, a.flavour));
  line("gpu features", features_of(a));
  line("gpu limits",
       fmt::format("buffer {}, binding {}, {} storage buffers, workgroup {} bytes and {} "
                   "invocations",
                   human_bytes(a.max_buffer), human_bytes(a.max_binding), a.max_storage_buffers,
                   a.max_workgroup_memory, a.max_workgroup_size));
  line("gpu cache", cache_of(report.engine->impl()));
  line("gpu ops", fmt::format("{} of {} have kernels", num_gpu_kernels(), kOpCount));
}

Json gpu_json(const GpuReport& report) {
  if (report.backend() == nullptr) return JsonObject().set("missing", report.why).value();
  const webgpu::AdapterReport& a = report.backend()->adapter();
  return JsonObject()
      .set("name", a.name)
      .set("backend", a.backend)
      .set("driver", a.driver)
      .set("software", a.software)
      .set("library", a.library)
      .set("flavour", a.flavour)
      .set("shader_f16", a.f16)
      .set("subgroups", a.subgroups)
      .set("subgroup_min", static_cast<int64_t>(a.subgroup_min))
      .set("subgroup_max", static_cast<int64_t>(a.subgroup_max))
      .set("immediate_bytes", a.immediates)
      .set("subgroup_size_used", int64_t{a.subgroup})
      .set("timestamps", a.timestamps)
      .set("max_buffer_bytes", a.max_buffer)
      .set("max_binding_bytes", a.max_binding)
      .set("max_storage_buffers", a.max_storage_buffers)
      .set("max_workgroup_bytes", a.max_workgroup_memory)
      .set("max_workgroup_invocations", a.max_workgroup_size)
      .set("cache", report.engine->impl().gpu_cache)
      .set("cache_ignored", report.engine->impl().gpu_cache_note)
      .set("cached_choices", static_cast<int64_t>(report.backend()->choices().size()))
      .set("ops", int64_t{kOpCount})
      .set("ops_with_kernels", int64_t{num_gpu_kernels()})
      .value();
}

int run(bool json, const EngineFlags& flags) {
  EngineOptions options;
  options.threads = 1;
  const Result<Engine> engine = Engine::create(options);
  if (!engine.ok()) return fail(engine.error());
  const Result<std::vector<SelfCheck>> checks = self_check();
  if (!checks.ok()) return fail(checks.error());
  const GpuReport gpu = look_at_gpu(flags);
  if (json) {
    print_json(engine->info(), *checks, gpu);
  } else {
    print_text(engine->info(), *checks);
    print_gpu_text(gpu);
    const MachineInfo machine = machine_info();
    print_hardware(machine, audit_hardware());
    print_plan(machine, gpu);
  }
  for (const SelfCheck& check : *checks) {
    if (!check.failed.empty()) {
      return fail(kMismatch, fmt::format("the kernels for {} give wrong bits here; use --isa with "
                                         "another and report it",
                                         isa_name(check.isa)));
    }
  }
  return kDone;
}

}  // namespace

Verb add_doctor(Command app) {
  auto json = std::make_shared<bool>(false);
  const Command verb = app.command("doctor", "Show what is built in, and test it.");
  verb.examples(
      "  loom doctor\n"
      "  loom doctor --json");
  verb.flag("--json", *json, "One JSON object instead of text");
  auto flags = std::make_shared<EngineFlags>();
  flags->add_gpu(verb);
  return {verb, [json, flags] { return run(*json, *flags); }};
}

}  // namespace loom::core::cli
