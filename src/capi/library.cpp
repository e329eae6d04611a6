// Version, errors, number types, layer kinds, and the engine.
#include <array>
#include <cstdlib>

#include "capi/support.hpp"

namespace {

using namespace loom;
using namespace loom::capi;

static_assert(LOOM_OK == static_cast<int>(Code::ok));
static_assert(LOOM_INVALID_ARGUMENT == static_cast<int>(Code::invalid_argument));
static_assert(LOOM_NOT_FOUND == static_cast<int>(Code::not_found));
static_assert(LOOM_IO_ERROR == static_cast<int>(Code::io_error));
static_assert(LOOM_BAD_FILE == static_cast<int>(Code::bad_file));
static_assert(LOOM_UNSUPPORTED == static_cast<int>(Code::unsupported));
static_assert(LOOM_OUT_OF_MEMORY == static_cast<int>(Code::out_of_memory));
static_assert(LOOM_OUT_OF_RANGE == static_cast<int>(Code::out_of_range));
static_assert(LOOM_CANCELLED == static_cast<int>(Code::cancelled));
static_assert(LOOM_INTERNAL == static_cast<int>(Code::internal));
static_assert(LOOM_DEVICE_GPU == static_cast<int>(Device::gpu));
static_assert(LOOM_ACTIVATIONS_Q8 == static_cast<int>(Activations::q8));
static_assert(LOOM_ACTIVATIONS_F32 == static_cast<int>(Activations::f32));
static_assert(LOOM_GPU_TUNING_OFF == static_cast<int>(GpuTuning::off));
static_assert(LOOM_GPU_TUNING_FORCE == static_cast<int>(GpuTuning::force));
static_assert(LOOM_LOG_WARNING == static_cast<int>(LogLevel::warning));
static_assert(LOOM_FLOAT32 == static_cast<int>(DType::float32));
static_assert(LOOM_NVFP4 == static_cast<int>(DType::nvfp4));
static_assert(LOOM_UINT4_G128 == static_cast<int>(DType::uint4_g128));

Result<EngineOptions> engine_options(const loom_engine_options* given) {
  LOOM_ASSIGN(const loom_engine_options from, options_of(given, "loom_engine_options"));
  EngineOptions options;
  options.threads = from.threads;
  options.exact_threads = from.exact_threads != 0;
  options.isa = text_or(from.isa, "");
  LOOM_ASSIGN(options.activations, enum_of<Activations>(from.activations, "activations"));
  LOOM_ASSIGN(options.device, enum_of<Device>(from.device, "device"));
  options.gpu_library = text_or(from.gpu_library, "");
  LOOM_ASSIGN(options.gpu_tuning, enum_of<GpuTuning>(from.gpu_tuning, "gpu_tuning"));
  options.gpu_cache = text_or(from.gpu_cache, "");
  options.memory_limit = from.memory_limit;
  options.gpu_strict = from.gpu_strict != 0;
  if (from.log != nullptr) {
    options.log = [from](LogLevel level, std::string_view line) {
      (void)from.log(from.log_user, static_cast<loom_log_level>(level), std::string(line).c_str());
    };
  }
  return options;
}

loom_engine_info info_of(const EngineInfo& from) {
  loom_engine_info info{};
  info.threads = from.threads;
  info.cores = from.cores;
  info.threads_built_in = from.threads_built_in ? 1 : 0;
  copy_text(info.isa, from.isa);
  std::string isas;
  for (const std::string& isa : from.isas) isas += (isas.empty() ? "" : " ") + isa;
  copy_text(info.isas, isas);
  info.activations = static_cast<loom_activations>(from.activations);
  copy_text(info.device, from.device);
  return info;
}

}  // namespace

extern "C" {

uint32_t loom_abi_version(void) {
  return LOOM_ABI_VERSION;
}
const char* loom_version(void) {
  return kVersion.data();
}
const char* loom_last_error(void) {
  return last_error_text();
}
loom_status loom_last_error_code(void) {
  return last_error_code();
}
const char* loom_status_name(loom_status status) {
  if (status < LOOM_OK || status > LOOM_INTERNAL) return "unknown";
  return code_name(static_cast<Code>(status)).data();
}
void loom_free(void* memory) {
  std::free(memory);
}

const char* loom_dtype_name(loom_dtype dtype) {
  const char* name = nullptr;
  (void)guarded([&]() -> Status {
    LOOM_ASSIGN(const DType known, dtype_of(dtype));
    name = dtype_name(known).data();
    return {};
  });
  return name;
}

loom_status loom_dtype_parse(const char* name, loom_dtype* out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const std::string given, text_of(name, "name"));
    LOOM_ASSIGN(const DType dtype, parse_dtype(given));
    *out = static_cast<loom_dtype>(dtype);
    return {};
  });
}

int32_t loom_dtype_bits(loom_dtype dtype) {
  int32_t bits = 0;
  (void)guarded([&]() -> Status {
    LOOM_ASSIGN(const DType known, dtype_of(dtype));
    bits = dtype_bits(known);
    return {};
  });
  return bits;
}

loom_status loom_layer_types(char** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    std::string names;
    for (const std::string& name : layer_types()) names += (names.empty() ? "" : "\n") + name;
    return give_text(out, names);
  });
}

loom_status loom_engine_create(const loom_engine_options* options, loom_engine** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const EngineOptions how, engine_options(options));
    LOOM_ASSIGN(Engine engine, Engine::create(how));
    return give(out, std::move(engine));
  });
}

loom_status loom_engine_shared(loom_engine** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(Engine engine, Engine::shared());
    return give(out, std::move(engine));
  });
}

loom_status loom_engine_get_info(const loom_engine* engine, loom_engine_info* out) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(const Engine* object, object_of(engine));
    return give_report(out, info_of(object->info()), "loom_engine_info");
  });
}

loom_status loom_engine_get_memory(const loom_engine* engine, loom_memory* out) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(const Engine object, engine_of(engine));
    const MemoryUse use = object.memory();
    loom_memory to{};
    to.weights = use.weights;
    to.sessions = use.sessions;
    to.training = use.training;
    to.total = use.total;
    to.peak = use.peak;
    to.mapped = use.mapped;
    return give_report(out, to, "loom_memory");
  });
}

void loom_engine_free(loom_engine* engine) {
  free_handle(engine);
}

}  // extern "C"
