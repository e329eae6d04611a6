// loom evolve NETWORK DATA: whole networks that mutate, cross and are trained, under several
// objectives.
#pragma once

#include "../plots/learning.hpp"
#include "../train/option_flags.hpp"

namespace loom::cli {

struct EvolveGridFlags {
  OptionFlags method;  // ArchitectureOptions; --resume reads them from its file

  // Options that NEAT has as well.
  std::string network, output, population_file, resume, svg;
  int64_t generations = 10;
  int threads = 0;
  bool force = false, json = false, quiet = false;

  void add(Command verb);
};

// The exit code of the verb.
int evolve_grid(const EvolveGridFlags& f, const DataFlags& data, const Engine& engine);

}  // namespace loom::cli
