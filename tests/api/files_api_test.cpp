// Files through the public interface: conversion, inspection, comparison, tokenizing, templates.
// Nothing here includes a header of src/.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "e2e/temp_folder.hpp"
#include "loom/loom.hpp"
#include "support/paths.hpp"

namespace {

using namespace loom;
using testing::HasSubstr;

const std::string kStory = loom_test::source_path("models/stories.entity");

std::string scratch_file(const std::string& name) {
  static const core::test::TempFolder folder;
  return folder.path() + "/" + name;
}

Network small() {
  return Network::from_json(describe(Mlp{.in = 64, .out = 3, .hidden = {64}}).or_exit(),
                            {.seed = 3})
      .or_exit();
}

TEST(FilesApi, AConvertedModelDiffersInWhatWasPackedAlone) {
  const std::string from = scratch_file("net.entity"), to = scratch_file("small.entity");
  ASSERT_TRUE(small().save(from).ok());
  const Converted done =
      convert(from, to,
              {.dtype = DType::q8_0, .rules = {{"*1*/weight", DType::float32}}, .measure = true})
          .or_exit();
  EXPECT_EQ(done.format, "entity");
  EXPECT_EQ(done.bytes, static_cast<int64_t>(std::filesystem::file_size(to)));
  int packed = 0;
  for (const PackedTensor& t : done.tensors) {
    if (t.to != DType::q8_0) continue;
    ++packed;
    EXPECT_LT(t.bytes_to, t.bytes_from);
    EXPECT_GT(t.cosine, 0.999);
    EXPECT_GT(t.error, 0);
  }
  EXPECT_GT(packed, 0);
  const std::vector<TensorDifference> all = diff(from, to, {.by_parameters = true}).or_exit();
  int64_t equal = 0;
  for (const TensorDifference& d : all) equal += d.equal() ? 1 : 0;
  EXPECT_EQ(equal, static_cast<int64_t>(all.size()) - packed);
  for (const TensorDifference& d : diff(from, from).or_exit()) EXPECT_TRUE(d.equal()) << d.name;
}

TEST(FilesApi, ProgressStopsAConversionAndLeavesNothing) {
  const std::string from = scratch_file("stop.entity"), to = scratch_file("never.entity");
  std::filesystem::remove(to);
  ASSERT_TRUE(small().save(from).ok());
  const auto stopped =
      convert(from, to, {.progress = [](std::string_view, uint64_t, uint64_t) { return false; }});
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().code, Code::cancelled);
  EXPECT_FALSE(std::filesystem::exists(to));
}

TEST(FilesApi, AFileSaysWhatItHolds) {
  const std::string path = scratch_file("said.entity");
  const Network net = small();
  ASSERT_TRUE(net.save(path).ok());
  const ModelFile file = ModelFile::open(path).or_exit();
  EXPECT_EQ(file.format(), "entity");
  EXPECT_FALSE(file.decoder());
  EXPECT_EQ(file.parameters(), net.info().parameters);
  int64_t cells = 0;
  file.layers([&](const LayerInfo& layer) { cells += layer.depth == 0 ? 1 : 0; });
  EXPECT_EQ(cells, net.info().layers);
  EXPECT_FALSE(file.tensors().empty());
  EXPECT_EQ(file.hash(0).or_exit().size(), 32u);
  EXPECT_EQ(file.hash(file.tensors().size()).error().code, Code::out_of_range);
  EXPECT_GT(verify_hashes(path).or_exit(), 0);
}

TEST(FilesApi, ALanguageModelSaysItsSizesAndItsTokenizerAgrees) {
  if (!std::filesystem::exists(kStory)) GTEST_SKIP() << kStory << " is not there";
  const ModelFile file = ModelFile::open(kStory).or_exit();
  ASSERT_TRUE(file.decoder());
  const Tokenizer tokenizer = Tokenizer::load(kStory).or_exit();
  EXPECT_EQ(file.decoder()->tokenizer_tokens, tokenizer.vocab_size());
  const Model model = Model::load(Engine::shared().or_exit(), kStory).or_exit();
  EXPECT_EQ(file.decoder()->vocab, model.info().vocab);
  const std::string text = "Once upon a time, there was a loom.";
  const std::vector<TokenId> ids = tokenizer.encode(text).or_exit();
  EXPECT_EQ(ids, model.tokenize(text).or_exit());
  EXPECT_EQ(tokenizer.decode(ids).or_exit(), model.detokenize(ids).or_exit());
}

TEST(FilesApi, PerplexityIsThatOfTheLogits) {
  if (!std::filesystem::exists(kStory)) GTEST_SKIP() << kStory << " is not there";
  const Model model = Model::load(Engine::shared().or_exit(), kStory).or_exit();
  const std::vector<TokenId> ids =
      model.tokenize("Once upon a time there was a girl who had a dog and a red ball.").or_exit();
  ASSERT_GT(ids.size(), 9u);
  const Perplexity measured = model.perplexity(ids, {.window = 8}).or_exit();
  ASSERT_GE(measured.predictions, 8);
  ModelSession session = model.session().or_exit();
  double nats = 0;
  int64_t count = 0;
  for (size_t window = 0; window + 8 < ids.size(); window += 8) {
    session.rewind(0);
    const auto sink = [&](int64_t i, std::span<const float> logits) {
      double most = -1e30, sum = 0;
      for (const float v : logits) most = std::max(most, static_cast<double>(v));
      for (const float v : logits) sum += std::exp(static_cast<double>(v) - most);
      const auto next = static_cast<size_t>(ids[window + static_cast<size_t>(i) + 1]);
      nats += std::log(sum) + most - static_cast<double>(logits[next]);
      ++count;
      return Status();
    };
    ASSERT_TRUE(session.feed_all(std::span(ids).subspan(window, 8), sink).ok());
  }
  EXPECT_EQ(measured.predictions, count);
  EXPECT_NEAR(measured.nats_per_token, nats / static_cast<double>(count), 1e-5);
}

TEST(FilesApi, EveryTemplateIsANetwork) {
  const std::vector<Result<std::string>> texts = {
      describe(Mlp{.in = 4, .out = 2, .hidden = {8}}),
      describe(Cnn{}),
      describe(Transformer{.vocab = 16, .width = 16, .layers = 1, .heads = 2, .time = 4}),
      describe(Recurrent{.cell = RecurrentCell::lstm, .in = 2, .out = 2, .time = 3}),
      describe(RandomGrid{.seed = 5}),
  };
  for (const Result<std::string>& text : texts) {
    ASSERT_TRUE(text.ok()) << text.error().str();
    const Network net = Network::from_json(*text).or_exit();
    EXPECT_TRUE(net.info().fresh);
    EXPECT_GT(net.info().parameters, 0);
  }
  EXPECT_THAT(describe(Recurrent{.hidden = {0}}).error().str(), HasSubstr("hidden"));
}

TEST(FilesApi, FilesAppearWholeOrNotAtAll) {
  const std::string path = scratch_file("note.txt");
  ASSERT_TRUE(write_file(path, "one").ok());
  EXPECT_EQ(read_file(path).or_exit(), "one");
  EXPECT_EQ(read_file(path, 2).error().code, Code::bad_file);
  EXPECT_TRUE(check_writable(path).ok());
  EXPECT_EQ(read_file(path).or_exit(), "one");
  EXPECT_EQ(check_writable(scratch_file("nowhere/note.txt")).error().code, Code::not_found);
}

TEST(FilesApi, ANetworkOpenedFromMastersStartsWithThem) {
  const std::string weights = scratch_file("masters.safetensors");
  std::vector<float> x, y;
  for (int i = 0; i < 240; ++i) x.push_back(static_cast<float>(i * 37 % 101 - 50) / 50);
  for (int i = 0; i < 40; ++i) y.push_back(x[static_cast<size_t>(i * 6)]);
  const Dataset data =
      Dataset::from_arrays(Tensor::view(x.data(), {40, 6}), Tensor::view(y.data(), {40, 1}))
          .or_exit();
  const Network net = Network::from_json(describe(Mlp{.in = 6, .out = 1, .hidden = {32}}).or_exit(),
                                         {.dtype = DType::int8, .seed = 3})
                          .or_exit();
  // Packed weights alone would lose what int8 cannot hold.
  Trainer half = Trainer::create(net, {.seed = 3}).or_exit();
  ASSERT_TRUE(half.fit(data, {.epochs = 2}).ok());
  ASSERT_TRUE(half.save_weights(weights).ok());
  const Network again = Network::load(weights).or_exit();
  Trainer rest = Trainer::create(again, {.seed = 3}).or_exit();
  const Evaluation before = half.evaluate(data).or_exit(), after = rest.evaluate(data).or_exit();
  EXPECT_EQ(before.loss, after.loss);
  EXPECT_EQ(half.weights_hash().or_exit(), rest.weights_hash().or_exit());
}

}  // namespace
