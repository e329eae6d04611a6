// The output of `loom verify training`: hashes of the bits after training, equal on every
// instruction set, thread count and compiler. Data are sines, so no file is needed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "grid/builders.hpp"
#include "learn/step/train_step.hpp"

namespace loom::core {

// A small network around one layer kind.
struct KindNetwork {
  std::string_view kind;  // its name
  NetworkSpec network;
  int64_t batch = 8;
};
// One per layer kind, in the order of registry.def; tests count them.
const std::vector<KindNetwork>& kind_networks();

struct TrainingHash {
  std::string forward;   // the prediction of the first step
  std::string backward;  // all parameters and the optimizer's state after it
  std::string trained;   // the same after the last step, with the last prediction
};
struct TrainingHashOptions {
  DType dtype = DType::f32;  // of the trained matrices
  int steps = 50;
  uint64_t seed = 7;  // of the weights
};
// Adam at 0.01, squared error, gradients clipped to norm 1.
Result<TrainingHash> hash_training(const NetworkSpec& network, int64_t batch,
                                   const TrainingHashOptions& options, const Ops& ops,
                                   ThreadPool& pool);
// Fills x with 0.2 sin(0.11 i + 0.3) (ids: 7 i mod vocab), targets with 0.5 + 0.3 sin(0.17 i)
// (classes: 5 i mod count), weights of rows with their mean and the mask with ones.
// vocab: Network::vocab().
void fill_with_sines(TrainStep& step, int64_t vocab);

}  // namespace loom::core
