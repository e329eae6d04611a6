#include <algorithm>

#include "api/engine/gpu.hpp"
#include "base/text.hpp"

namespace loom::core {

Result<Engine> engine_or_shared(const std::optional<loom::Engine>& engine) {
  if (engine) return *engine;
  return loom::Engine::shared();
}

ActivationMode activation_mode(Activations requested, ActivationMode otherwise) {
  if (requested == Activations::automatic) return otherwise;
  return requested == Activations::q8 ? ActivationMode::q8 : ActivationMode::f32;
}

}  // namespace loom::core

namespace loom {

Engine::Engine(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

MemoryUse Engine::memory() const {
  MemoryUse use = impl_->memory_tracker->use();
  use.device = core::gpu_bytes(*impl_);
  return use;
}

Result<MemoryReservation> Engine::reserve(uint64_t bytes, std::string_view what) const {
  LOOM_ASSIGN(core::MemoryShare share, impl_->memory.take(bytes, what, {}));
  return MemoryReservation(std::make_shared<core::MemoryShare>(std::move(share)));
}

uint64_t Engine::memory_left() const {
  return impl_->memory.left();
}

const EngineInfo& Engine::info() const {
  return impl_->info;
}

Result<Engine> Engine::create(const EngineOptions& options) {
  if (options.threads < 0)
    return core::invalid(core::cat("threads must be 0 (all cores) or more; got ", options.threads));
  const bool gpu = options.device == Device::gpu;
  using Mode = core::ActivationMode;
  const Mode mode = core::activation_mode(options.activations, gpu ? Mode::f32 : Mode::q8);
  core::Isa isa = core::best_isa();
  if (!options.isa.empty()) {
    LOOM_ASSIGN(isa, core::parse_isa(options.isa));
  }
  auto impl = std::make_shared<Impl>(options.threads, options.exact_threads);
  impl->log = options.log;
  impl->isa = isa;
  impl->ops = &core::cpu_ops(isa);
  impl->activations = mode;
  impl->memory =
      options.memory_limit > 0 ? core::MemoryBudget(options.memory_limit) : core::default_budget();
  if (gpu) LOOM_TRY(core::open_gpu(options, *impl));
  EngineInfo& info = impl->info;
  info.version = kVersion;
  info.threads = impl->pool.lanes();
  info.cores = core::ThreadPool::available_cores();
  info.threads_built_in = LOOM_THREADS != 0;
  info.isa = core::isa_name(isa);
  for (const core::Isa available : core::available_isas())
    info.isas.emplace_back(core::isa_name(available));
  info.activations = mode == Mode::q8 ? Activations::q8 : Activations::f32;
  impl->log_line(LogLevel::debug,
                 core::cat("engine: ", info.device, ", ", info.isa, ", ", info.threads,
                           info.threads == 1 ? " thread" : " threads"));
  return Engine(std::move(impl));
}

Result<Engine> Engine::shared() {
  static const Result<Engine> engine = create();
  return engine;
}

}  // namespace loom
