// Adapters of a language model, read from a file of their own (formats/hf/adapter.hpp).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "grid/network.hpp"

namespace loom::core {

// The matrices for one weight of a decoder: a product with W becomes W x + scale B (A x).
struct WeightAdapter {
  Coord cell;
  std::string below;  // the name of W below the cell: "1/q"
  int64_t rank = 0;
  double scale = 0;
  std::vector<float> a, b;  // [rank, in], [out, rank]
};

struct ModelAdapter {
  std::string name;  // letters, digits, - and _; unique in a model
  std::string path;  // of the file
  std::vector<WeightAdapter> weights;
};

// `base` with adapters: the parameters of `base` are used where they are, and those of the adapters
// are added, in f32. Errors: invalid: a weight that cannot have one.
Result<Network> with_model_adapters(std::shared_ptr<const Network> base,
                                    const std::vector<ModelAdapter>& adapters, ThreadPool& pool);

}  // namespace loom::core
