// The verbs of `loom`, one file each. add_*() declares a verb's options and returns its function.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "console.hpp"
#include "flags.hpp"

namespace loom::cli {

// A declared verb: its command, and the function that returns the exit code.
struct Verb {
  Command command;
  std::function<int()> run;
};

Verb add_run(Command app);
Verb add_perplexity(Command app);
Verb add_info(Command app);
Verb add_tokenize(Command app);
Verb add_embed(Command app);
Verb add_rerank(Command app);
Verb add_new(Command app);
Verb add_train(Command app);
Verb add_search(Command app);
Verb add_eval(Command app);
Verb add_predict(Command app);
Verb add_onnx(Command app);
Verb add_convert(Command app);
Verb add_diff(Command app);
Verb add_quantize(Command app);
Verb add_dna(Command app);
Verb add_merge(Command app);
Verb add_cluster(Command app);
Verb add_ensemble(Command app);
Verb add_mesh(Command app);
Verb add_evolve(Command app);
Verb add_darts(Command app);
Verb add_pull(Command app);
Verb add_list(Command app);
Verb add_show(Command app);
Verb add_rm(Command app);
Verb add_absorb(Command app);
Verb add_verify_proof(Command app);  // after core::cli::add_verify
Verb add_compare(Command app);
Verb add_serve(Command app);       // if LOOM_SERVE is on
Verb add_ps(Command app);          // likewise
Verb add_stop(Command app);        // likewise
Verb add_donate(Command app);      // if LOOM_DONATE is on
Verb add_completion(Command app);  // of the whole line, which `app` is a group of

// Options that many verbs share.

// Memory limit for reading files.
struct MemoryFlags {
  std::string size;

  void add(Command verb);
  // Bytes for EngineOptions::memory_limit: the value of --memory minus the program itself; 0 means
  // the machine's memory.
  Result<uint64_t> limit() const;
  // The longest text that is read as a whole, with its tokens.
  Result<uint64_t> text_limit() const;
};

// How the weights of networks are read: settings for a state dict without a configuration, and
// --allow-nonfinite.
struct WeightFlags {
  StateDictOptions answers;
  bool allow_nonfinite = false;

  void add(Command verb);
};

struct EngineFlags {
  int threads = 0;
  std::string isa;
  std::string activations;
  bool exact_threads = false;
  std::string device = "cpu";
  std::string gpu_library, gpu_cache;
  bool strict = false;

  void add(Command verb);         // all three
  void add_lanes(Command verb);   // without --activations
  void add_device(Command verb);  // --device, --strict and those of add_gpu
  void add_gpu(Command verb);     // --gpu-library, --gpu-cache
  Result<Engine> create(const MemoryFlags& memory = {}) const;
};

// --allow-nonfinite: sets `to`.
void add_allow_nonfinite(Command verb, bool& to);

// --force: an output may replace a file.
void add_force(Command verb, bool& to);

// How a model is loaded.
struct ModelFlags {
  std::string folder, dtype;
  std::string chat_template;  // in the place of the model's; empty means that one
  std::string rope_scaling;   // as ModelOptions has it
  std::vector<std::string> lora;
  bool allow_nonfinite = false;
  MemoryFlags memory;

  // MODEL and --dtype; `required`: MODEL must be given; `or_modelfile`: it may be a Modelfile.
  // Returns the option --dtype.
  Option add(Command verb, bool required = true, bool or_modelfile = false);
  // The type of --dtype; unset means as stored.
  Result<std::optional<DType>> number_type() const;
  // With a progress bar on stderr; Ctrl-C stops it.
  Result<Model> load(const Engine& engine, bool quiet) const;
};

// Prints ModelInfo::notes.
void note_unused(const Model& model);

}  // namespace loom::cli
