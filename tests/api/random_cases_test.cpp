// Random networks through every file format, and random options of templates. The result is the
// same network, or one line that names the invalid option. A failing case prints its seed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <random>

#include "e2e/temp_folder.hpp"
#include "loom/loom.hpp"

namespace {

using namespace loom;
using testing::HasSubstr;

std::string random_scratch(const std::string& name) {
  static const core::test::TempFolder folder;
  return folder.path() + "/" + name;
}

class Draw {
 public:
  explicit Draw(uint64_t seed) : engine_(seed) {}
  // From `low` to `high`, both included.
  int64_t from(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(int64_t one_in) { return from(1, one_in) == 1; }
  template <class T>
  T one_of(std::initializer_list<T> all) {
    return *(all.begin() + from(0, static_cast<int64_t>(all.size()) - 1));
  }

 private:
  std::mt19937_64 engine_;
};

// Any of the templates, with extents from `least` on: from 0 on some make no network.
Result<std::string> random_template(Draw& draw, int64_t least) {
  const auto width = [&] { return draw.from(least, 12); };
  const auto list = [&](int64_t most) {
    std::vector<int64_t> out;
    for (int64_t n = draw.from(0, most); n > 0; --n) out.push_back(width());
    return out;
  };
  const auto activation = static_cast<Activation>(draw.from(0, 12));
  switch (draw.from(0, 4)) {
    case 0: return describe(Mlp{width(), width(), list(3), activation});
    case 1:
      return describe(Cnn{{draw.from(least, 3), draw.from(5, 9), draw.from(5, 9)},
                          {width(), width()},
                          {draw.one_of<int64_t>({1, 3, 5})},
                          draw.from(1, 2),
                          list(2),
                          width(),
                          activation});
    case 2: {
      const int64_t heads = draw.from(std::max<int64_t>(least, 1), 3);
      return describe(Transformer{draw.from(least, 20), heads * 2 * draw.from(1, 3),
                                  draw.from(least, 2), heads, 0, draw.from(0, 9), draw.from(1, 6),
                                  draw.from(0, 5), draw.chance(2)});
    }
    case 3: {
      std::vector<int64_t> hidden = list(2);
      hidden.push_back(width());
      return describe(Recurrent{static_cast<RecurrentCell>(draw.from(0, 2)), width(), width(),
                                draw.from(1, 6), hidden, draw.from(0, 1) * width(),
                                draw.chance(2)});
    }
    default:
      return describe(RandomGrid{width(), width(), width(), draw.from(1, 2), draw.from(1, 2),
                                 draw.from(1, 2), 2, static_cast<uint64_t>(draw.from(0, 1 << 20))});
  }
}

// The network's output for fixed numbers, or ids.
std::vector<float> answer_of(const Network& net) {
  const NetworkInfo info = net.info();
  Shape shape = info.input;
  shape.insert(shape.begin(), 2);
  const int64_t count = element_count(shape);
  std::vector<float> numbers;
  for (int64_t i = 0; i < count; ++i)
    numbers.push_back(info.takes_ids ? 0.0f : static_cast<float>(i % 11) / 8.0f - 0.5f);
  Tensor x = Tensor::view(numbers.data(), shape);
  if (info.takes_ids) x = x.to(DType::int32).or_exit();
  const Tensor y = net.predict(x).or_exit();
  const auto values = y.values<float>().or_exit();
  return {values.begin(), values.end()};
}

bool same_floats(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(RandomTemplates, AreNetworksOrSayWhatMakesNone) {
  int made = 0, refused = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    Draw draw(seed);
    const int64_t least = draw.from(-1, 1);
    const Result<std::string> text = random_template(draw, least);
    const Result<Network> net =
        text.ok() ? Network::from_json(*text) : Result<Network>(text.error());
    if (!net.ok()) {
      ++refused;
      EXPECT_LT(least, 1) << "seed " << seed << ": " << net.error().str();
      EXPECT_EQ(net.error().str().find('\n'), std::string::npos) << "seed " << seed;
      EXPECT_NE(net.error().code, Code::internal) << "seed " << seed;
      continue;
    }
    ++made;
    // The description describes itself.
    EXPECT_EQ(net->json(), Network::from_json(net->json()).or_exit().json()) << "seed " << seed;
    EXPECT_FALSE(answer_of(*net).empty()) << "seed " << seed;
  }
  EXPECT_GT(made, 100);
  EXPECT_GT(refused, 50);
}

TEST(RandomNetworks, HaveTheSameBitsThroughFilesAndConversions) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Draw draw(seed * 7919);
    const std::string text = random_template(draw, 1).or_exit();
    const Network net = Network::from_json(text, {.seed = seed}).or_exit();
    const std::vector<float> expected = answer_of(net);
    std::string path = random_scratch("start.entity");
    ASSERT_TRUE(net.save(path).ok());
    std::string way = "seed " + std::to_string(seed) + ": entity";
    for (int step = 0; step < 4; ++step) {
      const std::string ending = draw.one_of<std::string>({".entity", ".safetensors", ".npz"});
      const std::string to = random_scratch("step" + std::to_string(step) + ending);
      const Result<Converted> done = convert(path, to);
      ASSERT_TRUE(done.ok()) << way << ending << ": " << done.error().str();
      way += ending;
      path = to;
      EXPECT_TRUE(same_floats(answer_of(Network::load(path).or_exit()), expected)) << way;
      const ModelFile file = ModelFile::open(path).or_exit();
      EXPECT_EQ(file.parameters(), net.info().parameters) << way;
    }
    for (const TensorDifference& d :
         diff(random_scratch("start.entity"), path, {.by_parameters = true}).or_exit())
      EXPECT_TRUE(d.equal()) << way << ": " << d.name;
  }
}

TEST(RandomNetworks, AreLookedIntoAsTheyAreInMemory) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Draw draw(seed * 104729);
    const Network net =
        Network::from_json(random_template(draw, 1).or_exit(), {.seed = seed}).or_exit();
    const std::string bytes = net.save_bytes(NetworkFormat::entity).or_exit();
    const std::string path = random_scratch("looked.entity");
    ASSERT_TRUE(net.save(path).ok());
    const ModelFile file = ModelFile::open(path).or_exit();
    const ModelFile memory =
        ModelFile::open({.bytes = std::as_bytes(std::span(bytes)), .name = path}).or_exit();
    ASSERT_EQ(file.tensors().size(), memory.tensors().size()) << seed;
    ASSERT_EQ(file.tensors().size(), net.parameters().size()) << seed;
    for (size_t i = 0; i < file.tensors().size(); ++i) {
      EXPECT_EQ(file.tensors()[i].name, memory.tensors()[i].name) << seed;
      EXPECT_EQ(file.hash(i).or_exit(), memory.hash(i).or_exit()) << seed;
    }
    int64_t cells = 0;
    file.layers([&](const LayerInfo& layer) { cells += layer.depth == 0 ? 1 : 0; });
    EXPECT_EQ(cells, net.info().layers) << seed;
    EXPECT_EQ(verify_hashes(path).or_exit(), static_cast<int64_t>(file.tensors().size())) << seed;
  }
}

TEST(RandomNetworks, PackedByAConversionAreThePackedOnes) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Draw draw(seed * 15485863);
    const DType dtype = draw.one_of({DType::int8, DType::int4, DType::q4_0, DType::float16,
                                     DType::bfloat16, DType::ternary, DType::q6_k});
    const Network net =
        Network::from_json(random_template(draw, 1).or_exit(), {.seed = seed}).or_exit();
    const std::string from = random_scratch("whole.entity"), to = random_scratch("packed.entity");
    ASSERT_TRUE(net.save(from).ok());
    const Result<Converted> done = convert(from, to, {.dtype = dtype, .measure = true});
    ASSERT_TRUE(done.ok()) << "seed " << seed << ": " << done.error().str();
    const std::string saved = net.save_bytes(NetworkFormat::entity, {.dtype = dtype}).or_exit();
    const Network converted = Network::load(to).or_exit();
    const Network packed = Network::load({.bytes = std::as_bytes(std::span(saved))}).or_exit();
    EXPECT_TRUE(same_floats(answer_of(converted), answer_of(packed)))
        << "seed " << seed << ", " << dtype_name(dtype);
    for (const PackedTensor& t : done->tensors) EXPECT_GE(t.bytes_from, 0) << t.name;
  }
}

}  // namespace
