// The verbs of `loom`, one file each. add_*() declares a verb's options and returns what runs it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/memory_budget.hpp"
#include "console.hpp"
#include "flags.hpp"

namespace loom::cli {

// A verb that was declared: its command, and the function that returns the exit code.
struct Verb {
  Command command;
  std::function<int()> run;
};

Verb add_run(Command app);
Verb add_perplexity(Command app);
Verb add_info(Command app);
Verb add_tokenize(Command app);
Verb add_bench(Command app);
Verb add_bench_layers(Command app);  // after add_bench
Verb add_bench_open(Command app);    // after add_bench
Verb add_bench_gpu(Command app);     // after add_bench
Verb add_bench_load(Command app);    // after add_bench
Verb add_verify(Command app);
Verb add_verify_training(Command app);  // after add_verify
Verb add_verify_files(Command app);     // after add_verify
Verb add_doctor(Command app);
Verb add_new(Command app);
Verb add_train(Command app);
Verb add_eval(Command app);
Verb add_convert(Command app);
Verb add_diff(Command app);
Verb add_quantize(Command app);

// For --kind with a word that is no layer kind; lists those there are.
Error unknown_kind(const std::string& word);

// Options that many verbs share.

// How much memory reading files may take.
struct MemoryFlags {
  std::string size;

  void add(Command verb);
  // What --memory says, or what the machine has.
  Result<MemoryBudget> create() const;
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
  Result<Engine> create() const;
};

// How a model is loaded.
struct ModelFlags {
  std::string folder;
  MemoryFlags memory;
  ModelOptions options;

  // MODEL and --dtype; `required`: MODEL must be given. Returns the option --dtype.
  Option add(Command verb, bool required = true);
  // With a progress bar on stderr; Ctrl-C stops it.
  Result<Model> load(const Engine& engine, bool quiet) const;
};

}  // namespace loom::cli
