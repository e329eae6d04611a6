// Networks that the tests of this room compare and cross.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/numbers/rng.hpp"
#include "e2e/temp_folder.hpp"
#include "loom/loom.hpp"
#include "support/paths.hpp"

namespace loom::core::test {

// Numbers from a standard normal distribution, near enough: sums of twelve uniform ones.
inline std::vector<float> gaussian(int64_t count, uint64_t seed) {
  const Rng rng(seed, 12);
  std::vector<float> out(static_cast<size_t>(count));
  for (size_t i = 0; i < out.size(); ++i) {
    float sum = -6;
    for (uint64_t j = 0; j < 12; ++j) sum += rng.uniform(12 * i + j);
    out[i] = sum;
  }
  return out;
}

// Every parameter gets such numbers.
inline void fill_gaussian(loom::Network& net, uint64_t seed) {
  for (const ParameterInfo& p : net.parameters()) {
    const std::vector<float> values = gaussian(element_count(p.shape), seed++);
    net.set_parameter(p.name, loom::Tensor::copy(values, p.shape).value()).or_exit();
  }
}

inline loom::Network dense_row(const std::vector<int64_t>& widths, uint64_t seed = 1,
                               loom::DType dtype = loom::DType::float32) {
  std::vector<Layer> layers;
  for (size_t i = 0; i + 1 < widths.size(); ++i)
    layers.push_back(
        Dense{.in = widths[i], .out = widths[i + 1], .activation = loom::Activation::tanh});
  return loom::Network::sequential(std::move(layers),
                                   {.input = {widths[0]}, .seed = seed, .dtype = dtype})
      .value();
}

inline void set_values(loom::Network& net, const std::string& name,
                       const std::vector<float>& values) {
  loom::Shape shape;
  for (const ParameterInfo& p : net.parameters()) {
    if (p.name == name) shape = p.shape;
  }
  net.set_parameter(name, loom::Tensor::copy(values, shape).value()).or_exit();
}

inline std::vector<float> values_of(const loom::Network& net, const std::string& name) {
  const loom::Tensor tensor = net.parameter(name).value();
  const auto values = tensor.values<float>().value();
  return {values.begin(), values.end()};
}

// A separate folder for the files of a test.
class EvolveFolder {
 public:
  std::string operator/(const std::string& name) const { return folder_.path() + "/" + name; }

 private:
  TempFolder folder_;
};

inline const std::string kStories = loom_test::source_path("models/stories.entity");

}  // namespace loom::core::test
