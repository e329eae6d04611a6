// The verbs of `loom`, one file each. add_*() declares a verb's options and returns what runs it.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "console.hpp"

namespace loom::cli {

// A verb that was declared: its parser, and the function that returns the exit code.
struct Verb {
  CLI::App* app;
  std::function<int()> run;
};

Verb add_run(CLI::App& app);
Verb add_perplexity(CLI::App& app);
Verb add_info(CLI::App& app);
Verb add_tokenize(CLI::App& app);
Verb add_bench(CLI::App& app);
Verb add_bench_layers(CLI::App& app);  // after add_bench
Verb add_verify(CLI::App& app);
Verb add_doctor(CLI::App& app);
Verb add_new(CLI::App& app);
Verb add_train(CLI::App& app);
Verb add_eval(CLI::App& app);

// The examples stand first in the help of a verb.
void set_examples(CLI::App& verb, const std::string& examples);

// Options that many verbs share.
struct EngineFlags {
  int threads = 0;
  std::string isa;
  std::string activations = "q8";
  bool oversubscribe = false;

  void add(CLI::App& verb);        // all three
  void add_lanes(CLI::App& verb);  // without --activations
  Result<Engine> create() const;
};

// How a model is loaded.
struct ModelFlags {
  std::string folder;
  ModelOptions options;

  // MODEL, --dtype and --rope-bf16; `required`: MODEL must be given. Returns the option --dtype.
  CLI::Option* add(CLI::App& verb, bool required = true);
  // With a progress bar on stderr; Ctrl-C stops it.
  Result<Model> load(const Engine& engine, bool quiet) const;
};

}  // namespace loom::cli
