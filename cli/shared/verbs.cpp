#include "verbs.hpp"

#include <algorithm>
#include <cstdlib>

#include <fmt/core.h>

#include "held_stderr.hpp"
#include "progress.hpp"

namespace loom::cli {
namespace {
constexpr std::string_view kMachine = "Machine";
}  // namespace

void MemoryFlags::add(Command verb) {
  verb = verb.default_group(kMachine);
  verb.option("--memory", size,
              "The memory limit for reading files, as 512M or 2G (default: three quarters of what "
              "the machine has)");
}

void WeightFlags::add(Command verb) {
  verb = verb.default_group("Weights of others");
  add_allow_nonfinite(verb, allow_nonfinite);
  verb.option(
      "--activation", answers.activation,
      "Bare .safetensors: the activation between layers, as relu, tanh, or linear for none");
  verb.option("--input-shape", answers.input, "Bare .safetensors: shape of one sample, as 1,28,28")
      .split_at(',');
  verb.option("--attention-heads", answers.heads, "Bare .safetensors: query heads of attention")
      .range(1, 4096);
  verb.option("--stride", answers.stride,
              "Bare .safetensors: of convolutions; one number, or one for each")
      .split_at(',');
  verb.option("--padding", answers.padding,
              "Bare .safetensors: of convolutions; one number, or one for each")
      .split_at(',');
  verb.flag("--assume", answers.assume,
            "Bare .safetensors: take the usual choice for what the options above leave open");
}

Result<uint64_t> MemoryFlags::limit() const {
  constexpr uint64_t kProgram = uint64_t{32} << 20;  // code, tables, stacks
  if (size.empty()) return uint64_t{0};
  const Result<uint64_t> bytes = parse_size(size);
  if (!bytes.ok()) {
    return Error{
        Code::invalid_argument, fmt::format("--memory: {}", bytes.error().message), {}, -1};
  }
  if (*bytes >= 2 * kProgram) return *bytes - kProgram;
  return Error{Code::invalid_argument,
               fmt::format("--memory {}: must be at least {}; the program itself takes {}", size,
                           size_text(2 * kProgram), size_text(kProgram)),
               {},
               -1};
}

Result<uint64_t> MemoryFlags::text_limit() const {
  LOOM_ASSIGN(const uint64_t bytes, limit());
  return bytes == 0 ? kMostOfTextFile : std::min(kMostOfTextFile, bytes / kMemoryPerTextByte);
}

void EngineFlags::add_lanes(Command verb) {
  verb = verb.default_group(kMachine);
  verb.option("--threads", threads, "Lanes of work, at most the cores there are; 0: all cores")
      .range(0, 4096);
  verb.option("--isa", isa, "Instruction set: scalar, avx2, avx512, ... (default: the best)");
}

void EngineFlags::add(Command verb) {
  verb = verb.default_group(kMachine);
  add_lanes(verb);
  verb.option("--activations", activations,
              "q8: activations in int8 for integer types; f32: in float (default: q8 on the CPU, "
              "f32 on the GPU)");
}

void EngineFlags::add_device(Command verb) {
  verb = verb.default_group(kMachine);
  verb.option("--device", device, "cpu, or gpu: through WebGPU").show_default();
  add_gpu(verb);
  verb.flag("--strict", strict, "Stop where the GPU cannot go on, instead of using the CPU");
}

void EngineFlags::add_gpu(Command verb) {
  verb = verb.default_group(kMachine);
  verb.option("--gpu-library", gpu_library,
              "WebGPU library (default: $LOOM_WEBGPU_LIB, or one that the system finds)");
  verb.option("--gpu-cache", gpu_cache,
              "File that keeps which kernels are fastest on this GPU, or none (default: "
              "loom/gpu.json in $XDG_CACHE_HOME or ~/.cache)");
}

namespace {

// Empty if there is no suitable folder.
std::string cache_file() {
  const char* caches = std::getenv("XDG_CACHE_HOME");
  if (caches != nullptr && caches[0] == '/') return std::string(caches) + "/loom/gpu.json";
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return std::string(home) + "/.cache/loom/gpu.json";
  return {};
}

}  // namespace

Result<Engine> EngineFlags::create(const MemoryFlags& memory) const {
  EngineOptions options;
  LOOM_ASSIGN(options.memory_limit, memory.limit());
  options.threads = threads;
  options.isa = isa;
  if (!activations.empty()) {
    LOOM_ASSIGN(options.activations, parse_activations(activations));
  }
  options.exact_threads = exact_threads;
  LOOM_ASSIGN(options.device, parse_device(device));
  options.gpu_library = gpu_library;
  const char* named = std::getenv("LOOM_WEBGPU_LIB");
  if (gpu_library.empty() && named != nullptr) options.gpu_library = named;
  options.gpu_strict = strict;
  if (gpu_cache != "none") options.gpu_cache = gpu_cache.empty() ? cache_file() : gpu_cache;
  const char* tuning = std::getenv("LOOM_GPU_TUNE");
  if (tuning != nullptr) {
    LOOM_ASSIGN(options.gpu_tuning, parse_gpu_tuning(tuning));
  }
  if (options.device != Device::gpu) return Engine::create(options);
  HeldStderr held;
  Result<Engine> engine = Engine::create(options);
  const std::string output = held.release();
  if (engine.ok() || output.empty()) return engine;
  constexpr size_t kMax = 300;
  Error error = engine.error();
  error.message += fmt::format(" (the library says: {})", printable(output, kMax));
  return error;
}

void add_allow_nonfinite(Command verb, bool& to) {
  verb.flag("--allow-nonfinite", to, "Go on where weights are NaN or infinite");
}

void add_force(Command verb, bool& to) {
  verb.flag("--force", to, "Replace output files that exist");
}

Option ModelFlags::add(Command verb, bool required, bool or_modelfile) {
  verb.option("MODEL", folder,
              fmt::format(".entity or .gguf file, a folder with config.json, {}or the name of a "
                          "model: NAME if it was pulled, hf:ORG/NAME[:Q4_K_M] of the hub",
                          or_modelfile ? "a Modelfile, " : ""))
      .names_model(or_modelfile)
      .required(required);
  const Command loading = verb.group("Loading");
  memory.add(loading);
  add_allow_nonfinite(loading, allow_nonfinite);
  loading.option("--rope-scaling", rope_scaling,
                 "Scaling of rotary positions for longer contexts: linear:4, dynamic:4, yarn:4 or "
                 "none (default: that of the model)");
  loading.option("--lora", lora, "LoRA adapter, a folder of PEFT: PATH, or PATH=WEIGHT; may repeat")
      .one_at_a_time();
  return loading.option("--dtype", dtype, "Number type of the weights (default: as stored)");
}

Result<std::optional<DType>> ModelFlags::number_type() const {
  if (dtype.empty()) return std::optional<DType>();
  LOOM_ASSIGN(const DType named, parse_dtype(dtype));
  return std::optional<DType>(named);
}

void note_unused(const Model& model) {
  for (const std::string& text : model.info().notes) note(text);
}

Result<Model> ModelFlags::load(const Engine& engine, bool quiet) const {
  Progress bar("loading", "tensors", quiet);
  ModelOptions loading;
  LOOM_ASSIGN(loading.dtype, number_type());
  loading.progress = [&](int64_t done, int64_t total) {
    bar.update(done, total);
    return !interrupted();
  };
  loading.allow_nonfinite = allow_nonfinite;
  loading.chat_template = chat_template;
  loading.rope_scaling = rope_scaling;
  loading.lora = lora;
  Result<Model> model = Model::load(engine, folder, loading);
  bar.finish();
  if (model.ok() && !quiet) note_unused(*model);
  return model;
}

}  // namespace loom::cli
