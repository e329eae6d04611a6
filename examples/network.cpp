// A network made in code, trained on an array, saved, loaded and asked: the same bits before and
// after.
#include <cstdio>
#include <cstring>
#include <loom/loom.hpp>

int main() {
  using namespace loom;
  // XOR of the signs of two numbers, which no straight line separates.
  std::vector<float> x;
  std::vector<int32_t> y;
  for (int i = 0; i < 400; ++i) {
    const float a = static_cast<float>(i * 37 % 101 - 50) / 50,
                b = static_cast<float>(i * 61 % 97 - 48) / 48;
    x.insert(x.end(), {a, b});
    y.push_back((a > 0) != (b > 0) ? 1 : 0);
  }
  const Tensor inputs = Tensor::view(x.data(), {400, 2});
  const Dataset data = Dataset::from_arrays(inputs, Tensor::view(y.data(), {400})).or_exit();

  Network net = Network::sequential({Dense{.in = 2, .out = 16, .activation = Activation::tanh},
                                     Dense{.in = 16, .out = 2}},
                                    {.input = {2}, .seed = 7})
                    .or_exit();
  std::printf("%s", net.summary().c_str());
  Trainer trainer = Trainer::create(net, {.loss = Loss::cross_entropy, .rate = 1e-2}).or_exit();
  const History history = trainer.fit(data, {.epochs = 60}).or_exit();
  std::printf("loss %.4f, accuracy %.3f\n", history.epochs.back().train_loss,
              trainer.evaluate(data).or_exit().accuracy.value());

  net.save("xor.entity").or_exit();
  const Tensor before = net.predict(inputs).or_exit();
  const Tensor after = Network::load("xor.entity").or_exit().predict(inputs).or_exit();
  const bool same = std::memcmp(before.data(), after.data(), 400 * 2 * sizeof(float)) == 0;
  std::printf("%s\n", same ? "the same bits" : "other bits");
  return same ? 0 : 1;
}
