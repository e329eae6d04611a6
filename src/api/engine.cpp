#include <algorithm>

#include "api/gpu_cache.hpp"
#include "api/impl.hpp"
#include "base/text.hpp"

namespace loom::core {

Result<ActivationMode> parse_activations(std::string_view name) {
  const std::string word = to_lower_ascii(name);
  if (word == "q8") return ActivationMode::q8;
  if (word == "f32") return ActivationMode::f32;
  return invalid(cat("unknown activations '", printable(name), "'; choose from q8, f32"));
}

}  // namespace loom::core

namespace loom {
namespace {

Result<core::webgpu::Tuning> parse_tuning(std::string_view name) {
  const std::string word = core::to_lower_ascii(name);
  if (word == "on") return core::webgpu::Tuning::on;
  if (word == "off") return core::webgpu::Tuning::off;
  if (word == "force") return core::webgpu::Tuning::force;
  return core::invalid(
      core::cat("unknown GPU tuning '", core::printable(name), "'; choose from on, off, force"));
}

Status open_gpu(const EngineOptions& options, Engine::Impl& impl) {
  LOOM_ASSIGN(const core::webgpu::Tuning tuning, parse_tuning(options.gpu_tuning));
  LOOM_ASSIGN(impl.gpu, core::webgpu::Backend::open({.library = options.gpu_library,
                                                     .strict = options.gpu_strict,
                                                     .tuning = tuning,
                                                     .host = impl.ops}));
  impl.ops = &impl.gpu->ops();
  if (tuning == core::webgpu::Tuning::off || options.gpu_cache.empty()) return {};
  impl.gpu_cache = options.gpu_cache;
  impl.gpu_cache_note = core::keep_gpu_choices(*impl.gpu, options.gpu_cache);
  return {};
}

}  // namespace

Engine::Engine(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

const EngineInfo& Engine::info() const {
  return impl_->info;
}

Result<Engine> Engine::create(const EngineOptions& options) {
  if (options.threads < 0)
    return core::invalid(core::cat("threads must be 0 (all cores) or more; got ", options.threads));
  const std::string device = core::to_lower_ascii(options.device);
  std::string mode = core::to_lower_ascii(options.activations);
  if (mode.empty()) mode = device == "gpu" ? "f32" : "q8";
  LOOM_ASSIGN(const core::ActivationMode activations, core::parse_activations(mode));
  core::Isa isa = core::best_isa();
  if (!options.isa.empty()) {
    LOOM_ASSIGN(isa, core::parse_isa(options.isa));
  }
  auto impl = std::make_shared<Impl>(options.threads, options.exact_threads);
  impl->isa = isa;
  impl->ops = &core::cpu_ops(isa);
  impl->activations = activations;
  impl->memory =
      options.memory_limit > 0 ? core::MemoryBudget(options.memory_limit) : core::default_budget();
  if (device == "gpu") {
    LOOM_TRY(open_gpu(options, *impl));
  } else if (device != "cpu") {
    return core::invalid(
        core::cat("unknown device '", core::printable(options.device), "'; choose from cpu, gpu"));
  }
  EngineInfo& info = impl->info;
  info.version = kVersion;
  info.threads = impl->pool.lanes();
  info.cores = core::ThreadPool::available_cores();
  info.threads_built_in = LOOM_THREADS != 0;
  info.isa = core::isa_name(isa);
  for (const core::Isa available : core::available_isas())
    info.isas.emplace_back(core::isa_name(available));
  info.activations = mode;
  if (impl->gpu != nullptr) info.device = impl->gpu->adapter().name;
  return Engine(std::move(impl));
}

Result<Engine> Engine::shared() {
  static const Result<Engine> engine = create();
  return engine;
}

}  // namespace loom
