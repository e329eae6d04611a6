// loom evolve NETWORK DATA: whole networks that mutate, cross and are trained, under several
// objectives.
#pragma once

#include "../plots/learning.hpp"

namespace loom::cli {

struct EvolveGridFlags {
  std::vector<std::string> objectives = {"accuracy", "parameters"};
  int64_t epochs = 3, batch = 32, most_parameters = 0;
  double rate = 2e-3, cross = 0.3;
  bool fresh = false, retype = false;

  // Options that NEAT has as well.
  std::string network, output, population_file, resume, svg, normalize;
  int64_t population = 12, generations = 10;
  uint64_t seed = 1;
  double validation = 0.25;
  int threads = 0;
  bool force = false, json = false, quiet = false;

  // Given options that --resume reads from its file, by name.
  std::vector<std::pair<std::string, Option>> kept;

  void add(Command verb);
};

// The exit code of the verb.
int evolve_grid(const EvolveGridFlags& f, const DataFlags& data, const Engine& engine);

}  // namespace loom::cli
