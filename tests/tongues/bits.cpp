// Prints what a network, its training and a story come to, over the C++ headers: tests/capi/bits.c
// is the same in C, and the tongues print it too.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "loom/loom.hpp"

namespace {

constexpr int kSamples = 240, kInputs = 4;

void print_outputs(const loom::Network& net, const loom::Tensor& x) {
  const loom::Tensor y = net.predict(x).or_exit();
  std::printf("outputs ");
  for (int64_t i = 0; i < y.bytes(); ++i)
    std::printf("%02x", static_cast<unsigned>(std::to_integer<unsigned char>(y.data()[i])));
  std::printf("\n");
}

}  // namespace

int main() {
  std::vector<float> values(kSamples * kInputs);
  std::vector<int32_t> labels(kSamples);
  uint64_t state = 88172645463325252U;
  for (int i = 0; i < kSamples; ++i) {
    float* row = &values[static_cast<size_t>(i) * kInputs];
    for (int k = 0; k < kInputs; ++k) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      row[k] = static_cast<float>(state >> 40) / static_cast<float>(1 << 23) - 1.0F;
    }
    labels[static_cast<size_t>(i)] = row[0] + row[1] > 0.3F ? 0 : row[2] - row[3] > 0.0F ? 1 : 2;
  }
  const loom::Tensor x = loom::Tensor::view(values.data(), {kSamples, kInputs});
  loom::Network net = loom::Network::sequential(
                          {loom::Dense{.in = 4, .out = 16, .activation = loom::Activation::tanh},
                           loom::Dense{.in = 16, .out = 3}},
                          {.input = {4}, .seed = 7})
                          .or_exit();
  print_outputs(net, x);
  const loom::Dataset data =
      loom::Dataset::from_arrays(x, loom::Tensor::view(labels.data(), {kSamples})).or_exit();
  loom::Trainer trainer = loom::Trainer::create(net, {.rate = 1e-2}).or_exit();
  trainer.fit(data, {.epochs = 3}).or_exit();
  std::printf("trained %s\n", trainer.weights_hash().or_exit().c_str());
  print_outputs(net, x);
  const char* path = std::getenv("LOOM_TEST_MODEL");
  const loom::Model model = loom::Model::load(loom::Engine::shared().or_exit(),
                                              path != nullptr ? path : "models/stories.entity")
                                .or_exit();
  loom::ModelSession session = model.session().or_exit();
  const loom::Generation story =
      session
          .generate("Once upon a time",
                    {.max_tokens = 60, .sampler = {.temperature = 0.8F, .seed = 7}})
          .or_exit();
  std::printf("story %s\n", story.text.c_str());
}
