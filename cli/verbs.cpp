#include "verbs.hpp"

#include "progress.hpp"

namespace loom::cli {

void set_examples(CLI::App& verb, const std::string& examples) {
  verb.footer(examples);  // HelpFormatter in main.cpp puts it first
}

void EngineFlags::add_lanes(CLI::App& verb) {
  verb.add_option("--threads", threads, "Lanes of work, at most the cores there are; 0: all cores")
      ->check(CLI::Range(0, 4096));
  verb.add_option("--isa", isa, "Instruction set: scalar, avx2, avx512, ... (default: the best)");
}

void EngineFlags::add(CLI::App& verb) {
  add_lanes(verb);
  verb.add_option("--activations", activations,
                  "q8: activations in int8 for integer types; f32: in float")
      ->capture_default_str();
}

Result<Engine> EngineFlags::create() const {
  EngineOptions options;
  options.threads = threads;
  options.isa = isa;
  options.activations = activations;
  options.oversubscribe = oversubscribe;
  return Engine::create(options);
}

CLI::Option* ModelFlags::add(CLI::App& verb, bool required) {
  verb.add_option("MODEL", folder, "Folder with config.json and safetensors")->required(required);
  verb.add_flag("--rope-bf16", options.rope_bf16_frequencies,
                "Round the rotary frequencies to bfloat16, as model.to(bfloat16) does");
  return verb.add_option("--dtype", options.dtype,
                         "Number type of the weights (default: as stored)");
}

Result<Model> ModelFlags::load(const Engine& engine, bool quiet) const {
  Progress bar("loading", "tensors", quiet);
  ModelOptions loading = options;
  loading.progress = [&](int64_t done, int64_t total) {
    bar.update(done, total);
    return !interrupted();
  };
  return Model::load(engine, folder, loading);
}

}  // namespace loom::cli
