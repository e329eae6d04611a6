#include "api/engine/gpu.hpp"

#ifndef LOOM_WITHOUT_WEBGPU
#include "api/engine/gpu_cache.hpp"
#include "base/text.hpp"
#else
#include "base/left_out.hpp"
#endif

namespace loom::core {

#ifndef LOOM_WITHOUT_WEBGPU
namespace {

webgpu::Tuning tuning_of(GpuTuning tuning) {
  if (tuning == GpuTuning::on) return webgpu::Tuning::on;
  return tuning == GpuTuning::off ? webgpu::Tuning::off : webgpu::Tuning::force;
}

}  // namespace

Status open_gpu(const EngineOptions& options, Engine::Impl& impl) {
  const webgpu::Tuning tuning = tuning_of(options.gpu_tuning);
  LOOM_ASSIGN(impl.gpu, webgpu::Backend::open({.library = options.gpu_library,
                                               .strict = options.gpu_strict,
                                               .tuning = tuning,
                                               .host = impl.ops}));
  impl.ops = &impl.gpu->ops();
  impl.info.device = impl.gpu->adapter().name;
  if (tuning == webgpu::Tuning::off || options.gpu_cache.empty()) return {};
  impl.gpu_cache = options.gpu_cache;
  impl.gpu_cache_note = keep_gpu_choices(*impl.gpu, options.gpu_cache);
  if (!impl.gpu_cache_note.empty())
    impl.log_line(LogLevel::warning, cat(options.gpu_cache, ": not used: ", impl.gpu_cache_note));
  return {};
}

int64_t gpu_bytes(const Engine::Impl& impl) {
  return impl.gpu == nullptr ? 0 : impl.gpu->bytes();
}

int64_t num_cpu_fallbacks(const Engine::Impl& impl) {
  return impl.gpu == nullptr ? 0 : impl.gpu->counts().total_fallbacks();
}

std::vector<std::string> gpu_variants() {
  return webgpu::variant_names();
}

int num_gpu_kernels() {
  int count = 0;
  for (int op = 0; op < kOpCount; ++op) count += webgpu::has_kernel(static_cast<OpId>(op)) ? 1 : 0;
  return count;
}
#else
Status open_gpu(const EngineOptions& /*options*/, Engine::Impl& /*impl*/) {
  return left_out_of_build("backend for GPUs", LOOM_BUILD_WITH("LOOM_WEBGPU=ON"));
}

int64_t gpu_bytes(const Engine::Impl& /*impl*/) {
  return 0;
}

int64_t num_cpu_fallbacks(const Engine::Impl& /*impl*/) {
  return 0;
}

std::vector<std::string> gpu_variants() {
  return {};
}

int num_gpu_kernels() {
  return 0;
}
#endif

}  // namespace loom::core
