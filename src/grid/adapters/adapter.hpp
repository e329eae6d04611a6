// Adapters: small matrices that are trained in place of a large one (Hu et al., "LoRA: low-rank
// adaptation of large language models", 2021). A product with an adapted weight W is
//   y = x W^T + b + scale * (dropout(x) A^T) B^T,   A [rank, in], B [out, rank]
// W does not change. A and B are parameters of the cell, named after W: "q.lora.a", "q.lora.b".
// They are f32, whatever W is. B is zero at first, so a new adapter changes nothing.
#pragma once

#include <string>
#include <vector>

namespace loom::core {

struct AdapterSpec {
  // Names below the cell, "weight" or "0/q", with * and ? as in matches_pattern(). Each selects
  // weights of matrix products: ParamSpec::product.
  std::vector<std::string> weights;
  std::string name = "lora";  // letters, digits, - and _; one weight may have several adapters
  int64_t rank = 8;
  double scale = 2.0;  // alpha / rank, or alpha / sqrt(rank) (Kalajdzievski, "rsLoRA", 2023)
  double dropout = 0;  // probability that a value of x is left out, in training alone
  bool operator==(const AdapterSpec&) const = default;
};

}  // namespace loom::core
