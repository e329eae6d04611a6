#include <algorithm>

#include "base/text.hpp"
#include "engine/gpu_cache.hpp"
#include "engine/impl.hpp"

namespace loom {

Result<ActivationMode> parse_activations(std::string_view name) {
  const std::string word = to_lower_ascii(name);
  if (word == "q8") return ActivationMode::q8;
  if (word == "f32") return ActivationMode::f32;
  return invalid(cat("unknown activations '", printable(name), "'; choose from q8, f32"));
}

namespace {

Result<webgpu::Tuning> parse_tuning(std::string_view name) {
  const std::string word = to_lower_ascii(name);
  if (word == "on") return webgpu::Tuning::on;
  if (word == "off") return webgpu::Tuning::off;
  if (word == "force") return webgpu::Tuning::force;
  return invalid(cat("unknown GPU tuning '", printable(name), "'; choose from on, off, force"));
}

Status open_gpu(const EngineOptions& options, Engine::Impl& impl) {
  LOOM_ASSIGN(const webgpu::Tuning tuning, parse_tuning(options.gpu_tuning));
  LOOM_ASSIGN(impl.gpu, webgpu::Backend::open({.library = options.gpu_library,
                                               .strict = options.gpu_strict,
                                               .tuning = tuning,
                                               .host = impl.ops}));
  impl.ops = &impl.gpu->ops();
  if (tuning == webgpu::Tuning::off || options.gpu_cache.empty()) return {};
  impl.gpu_cache = options.gpu_cache;
  impl.gpu_cache_note = keep_gpu_choices(*impl.gpu, options.gpu_cache);
  return {};
}

}  // namespace

Engine::Engine(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

const EngineInfo& Engine::info() const {
  return impl_->info;
}

Result<Engine> Engine::create(const EngineOptions& options) {
  if (options.threads < 0)
    return invalid(cat("threads must be 0 (all cores) or more; got ", options.threads));
  const std::string device = to_lower_ascii(options.device);
  std::string mode = to_lower_ascii(options.activations);
  if (mode.empty()) mode = device == "gpu" ? "f32" : "q8";
  LOOM_ASSIGN(const ActivationMode activations, parse_activations(mode));
  Isa isa = best_isa();
  if (!options.isa.empty()) {
    LOOM_ASSIGN(isa, parse_isa(options.isa));
  }
  auto impl = std::make_shared<Impl>(options.threads, options.exact_threads);
  impl->isa = isa;
  impl->ops = &cpu_ops(isa);
  impl->activations = activations;
  if (device == "gpu") {
    LOOM_TRY(open_gpu(options, *impl));
  } else if (device != "cpu") {
    return invalid(cat("unknown device '", printable(options.device), "'; choose from cpu, gpu"));
  }
  EngineInfo& info = impl->info;
  info.version = kVersion;
  info.threads = impl->pool.lanes();
  info.cores = ThreadPool::available_cores();
  info.threads_built_in = LOOM_THREADS != 0;
  info.isa = isa_name(isa);
  for (const Isa available : available_isas()) info.isas.emplace_back(isa_name(available));
  info.activations = mode;
  if (impl->gpu != nullptr) info.device = impl->gpu->adapter().name;
  return Engine(std::move(impl));
}

std::vector<std::string> dtype_names() {
  std::vector<std::string> names;
  for (const DTypeInfo& info : dtype_table()) names.emplace_back(info.name);
  return names;
}

}  // namespace loom
