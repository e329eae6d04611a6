// Initialization, mutation, crossover and distance of NEAT genomes: sections 3.1 to 3.3 of Stanley
// and Miikkulainen, 2002. Every draw comes from `draws`, in an order that depends on the genome
// only.
#pragma once

#include "evolve/neat/genome.hpp"

namespace loom::core {

struct NeatRates {
  double add_node = 0.03;
  double add_connection = 0.3;
  // Where nothing was added: all weights are looked at with probability `weights`; each is replaced
  // with probability `new_weight`, else moved, by up to `weight_step`.
  double weights = 0.8;
  double new_weight = 0.1;
  double weight_step = 2.5;
  double first_weight = 1.0;    // most of a new weight
  double weight_limit = 8.0;    // no weight is moved beyond it
  double enable = 0.0;          // a disabled connection comes back
  double activation = 0.0;      // a hidden node takes another one of `activations`
  double keep_disabled = 0.75;  // crossing: a gene that is disabled in either parent
  double average = 0.4;         // crossing: matching weights are averaged instead of chosen
  // Distance: per excess gene, per disjoint gene, per mean difference of matching weights.
  double excess = 1.0, disjoint = 1.0, weight_difference = 0.4;
};

struct NeatShape {
  int64_t inputs = 1, outputs = 1;
  bool recurrent = false;
  bool connected = true;  // the first genomes have all connections from inputs to outputs
  Activation output = Activation::sigmoid;
  std::vector<Activation> hidden = {Activation::sigmoid};
};

NeatGenome first_genome(const NeatShape& shape, const NeatRates& rates, Innovations& innovations,
                        Draws& draws);

// One structural change, or else changes of weights.
void mutate(NeatGenome& genome, const NeatShape& shape, const NeatRates& rates,
            Innovations& innovations, Draws& draws);

// The child has the genes of `better`; those that `other` has too come from either.
NeatGenome crossed(const NeatGenome& better, const NeatGenome& other, const NeatRates& rates,
                   Draws& draws);

// excess E / N + disjoint D / N + weight_difference W, where N is the larger number of genes, and 1
// below 20 genes.
double distance(const NeatGenome& a, const NeatGenome& b, const NeatRates& rates);

}  // namespace loom::core
