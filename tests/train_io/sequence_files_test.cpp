// Samples of different lengths from files: padded and packed arrays, and CSV, of random extents,
// are the same samples; what is wrong is said in one line.
#include <gmock/gmock.h>

#include "base/numbers/rng.hpp"
#include "io/io_testing.hpp"
#include "io/weights/safetensors_write.hpp"
#include "train_io/dataset_files.hpp"

namespace loom::core::sequence_files {
namespace {

using test::TemporaryFolder;
using ::testing::HasSubstr;

// An LSTM over [most, width], which predicts classes for a sample or for each step.
NetworkSpec lstm(int64_t most, int64_t width, int64_t classes, bool of_steps) {
  RecurrentOptions o;
  o.cell = "lstm";
  o.time = most;
  o.in = width;
  o.hidden = {3};
  o.out = classes;
  o.sequence = of_steps;
  return *build_recurrent(o);
}

struct Samples {
  int64_t n = 0, most = 0, width = 0;
  bool of_steps = false;
  std::vector<int64_t> lengths;
  std::vector<std::vector<float>> x;    // [length, width] each
  std::vector<std::vector<int64_t>> y;  // a label, or one for each step

  explicit Samples(uint64_t seed) {
    const Rng rng(seed, 61);
    uint64_t at = 0;
    const auto from = [&](int64_t least, int64_t count) {
      return least + static_cast<int64_t>(rng.bits(at++) % static_cast<uint64_t>(count));
    };
    n = from(1, 5);
    most = from(1, 6);
    width = from(1, 3);
    of_steps = from(0, 2) == 1;
    for (int64_t i = 0; i < n; ++i) {
      lengths.push_back(from(1, most));
      std::vector<float>& values = x.emplace_back();
      for (int64_t k = 0; k < lengths.back() * width; ++k)
        values.push_back(static_cast<float>(from(-50, 100)) / 4.0f);
      std::vector<int64_t>& labels = y.emplace_back();
      for (int64_t k = 0; k < (of_steps ? lengths.back() : 1); ++k) labels.push_back(from(0, 3));
    }
  }
  // Arrays that are padded to `most` positions, or packed without padding.
  template <class T>
  static std::vector<T> laid(const std::vector<std::vector<T>>& samples, int64_t each, T filler) {
    std::vector<T> out;
    for (const std::vector<T>& s : samples) {
      out.insert(out.end(), s.begin(), s.end());
      for (int64_t k = std::ssize(s); k < each; ++k) out.push_back(filler);
    }
    return out;
  }
  void expect(const Dataset& d) const {
    ASSERT_EQ(d.samples, n);
    EXPECT_EQ(d.sample, (Shape{most, width}));
    EXPECT_EQ(std::vector<int64_t>(d.lengths.begin(), d.lengths.end()), lengths);
    EXPECT_EQ(d.inputs, laid(x, most * width, 0.0f));
    for (int64_t i = 0; i < n; ++i) {
      const std::vector<int64_t>& want = y[static_cast<size_t>(i)];
      for (size_t k = 0; k < want.size(); ++k) {
        const int64_t position = i * d.labels_per_sample() + static_cast<int64_t>(k);
        EXPECT_EQ(d.labels[static_cast<size_t>(position)], want[k]) << i << ' ' << k;
      }
    }
  }
};

SafeOutput output(const std::string& name, SafeDType dtype, std::vector<int64_t> shape,
                  const auto& values) {
  return {name, dtype, std::move(shape), std::as_bytes(std::span(values))};
}

class SequenceFiles : public ::testing::TestWithParam<int> {
 protected:
  TemporaryFolder folder;
  Samples s{static_cast<uint64_t>(GetParam()) + 1};
  NetworkSpec network = lstm(s.most, s.width, 3, s.of_steps);
  DatasetOptions options;
};
INSTANTIATE_TEST_SUITE_P(Seeds, SequenceFiles, ::testing::Range(0, 40));

TEST_P(SequenceFiles, AreTheSameSamplesPaddedAndPacked) {
  options.lengths = "n";
  for (const bool x_packed : {false, true}) {
    for (const bool y_packed : {false, true}) {
      const int64_t rows = s.most;
      const auto x = Samples::laid(s.x, x_packed ? 0 : rows * s.width, 77.0f);
      const auto y = Samples::laid(s.y, s.of_steps && !y_packed ? rows : 0, int64_t{2});
      std::vector<int64_t> x_shape = {s.n, rows, s.width}, y_shape = {std::ssize(y)};
      if (x_packed) x_shape = {std::ssize(x) / s.width, s.width};
      if (s.of_steps && !y_packed) y_shape = {s.n, rows};
      const std::string path = folder.path("d.safetensors");
      ASSERT_TRUE(write_safetensors(path,
                                    {output("x", SafeDType::f32, x_shape, x),
                                     output("y", SafeDType::i64, y_shape, y),
                                     output("n", SafeDType::i64, {s.n}, s.lengths)},
                                    {})
                      .ok());
      const Result<LoadedDataset> set = load_dataset(path, network, options);
      ASSERT_TRUE(set.ok()) << set.error().str();
      s.expect(set->data);
    }
  }
}

TEST_P(SequenceFiles, AreTheSameSamplesInACsv) {
  std::string text;
  for (size_t i = 0; i < static_cast<size_t>(s.n); ++i) {
    text += std::to_string(s.lengths[i]);
    for (int64_t k = 0; k < s.most * s.width; ++k) {
      text += ',';
      if (k < std::ssize(s.x[i])) text += std::to_string(s.x[i][static_cast<size_t>(k)]);
    }
    for (int64_t k = 0; k < (s.of_steps ? s.most : 1); ++k) {
      text += ',';
      if (k < std::ssize(s.y[i])) text += std::to_string(s.y[i][static_cast<size_t>(k)]);
    }
    text += '\n';
  }
  folder.write("d.csv", text);
  options.lengths = "1";
  options.header = CsvHeader::no;
  options.targets = s.of_steps ? s.most : 1;
  const Result<LoadedDataset> set = load_dataset(folder.path("d.csv"), network, options);
  ASSERT_TRUE(set.ok()) << set.error().str();
  s.expect(set->data);
}

TEST(SequenceFileErrors, AreSaidInOneLine) {
  const TemporaryFolder folder;
  const NetworkSpec network = lstm(3, 1, 2, false);
  const struct {
    const char* text;
    const char* lengths;
    const char* message;
  } cases[] = {
      {"2,1,,,0\n", "1", "sample 0: input 1 is not finite"},
      {"4,1,2,3,0\n", "1", "length 4 must be an integer from 0 to 3"},
      {"0,1,2,3,0\n", "1", "a length of 0; a sample has at least one position"},
      {"2,1,2,3,0\n", "steps", "no column 'steps' for the lengths of samples"},
      {"2,1,2,3,0\n", "5", "the lengths of samples are in the last column"},
      {"1,2,3,0\n", "1", "and 1 for lengths"},
      {"2,1,2,3,\n", "1", "sample 0: label -1 must be from 0 to 1"},
  };
  for (const auto& c : cases) {
    folder.write("d.csv", c.text);
    DatasetOptions options;
    options.lengths = c.lengths;
    options.header = CsvHeader::no;
    const Result<LoadedDataset> set = load_dataset(folder.path("d.csv"), network, options);
    ASSERT_FALSE(set.ok()) << c.text;
    EXPECT_THAT(set.error().str(), HasSubstr(c.message));
  }
}

TEST(SequenceNormalization, IsOfWhatIsReal) {
  Dataset d;
  d.samples = 3;
  d.sample = Shape{2, 1};
  d.inputs = {1, 0, 3, 10, 5, 20};
  d.lengths = {1, 2, 2};
  const Normalization found = *find_normalization(d, Normalize::standard);
  EXPECT_THAT(found.shift, ::testing::ElementsAre(3.0f, 15.0f));
  EXPECT_FLOAT_EQ(found.scale[1], 0.2f);
  ASSERT_TRUE(normalize(d, found).ok());
  EXPECT_EQ(d.inputs[1], 0.0f) << "padding stays 0";
  EXPECT_FLOAT_EQ(d.inputs[3], -1.0f);
}

}  // namespace
}  // namespace loom::core::sequence_files
