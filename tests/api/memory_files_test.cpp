// Files in memory: they have the contents of the same files on disk, damaged ones give the same
// errors, and writes to memory equal writes to files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <random>

#include "api/network/network_impl.hpp"
#include "e2e/temp_folder.hpp"
#include "loom/loom.hpp"
#include "onnx/export/export.hpp"
#include "onnx/file/model.hpp"
#include "support/paths.hpp"

namespace {

using namespace loom;
using testing::HasSubstr;

const std::string kStoryFile = loom_test::source_path("models/stories.entity");

std::string memory_scratch(const std::string& name) {
  static const core::test::TempFolder folder;
  return folder.path() + "/" + name;
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// Bytes that begin at a multiple of 64, and end where another value of 1 would begin.
class Aligned {
 public:
  explicit Aligned(const std::string& text) : memory_(text.size() + 64), size_(text.size()) {
    void* at = memory_.data();
    size_t room = memory_.size();
    begin_ = static_cast<std::byte*>(std::align(64, size_, at, room));
    std::memcpy(begin_, text.data(), size_);
  }
  std::span<const std::byte> bytes() const { return {begin_, size_}; }
  void spoil() { std::memset(begin_, 0x5a, size_); }

 private:
  std::vector<std::byte> memory_;
  std::byte* begin_ = nullptr;
  size_t size_ = 0;
};

Network trained_pair(uint64_t seed) {
  Network net = Network::sequential({Dense{.in = 6, .out = 8, .activation = Activation::tanh},
                                     Dense{.in = 8, .out = 2}},
                                    {.input = {6}, .seed = seed})
                    .or_exit();
  const std::vector<float> x(4 * 6, 0.5f);
  const std::vector<int32_t> y = {0, 1, 1, 0};
  Trainer trainer = Trainer::create(net, {.normalize = Normalize::standard}).or_exit();
  (void)trainer.train_step(Tensor::view(x.data(), {4, 6}), Tensor::view(y.data(), {4})).or_exit();
  return net;
}

std::vector<float> answers(const Network& net) {
  const std::vector<float> x = {0.1f, -0.2f, 0.3f, 0.4f, -0.5f, 0.6f};
  const Tensor y = net.predict(Tensor::view(x.data(), {1, 6})).or_exit();
  const auto values = y.values<float>().or_exit();
  return {values.begin(), values.end()};
}

TEST(MemoryFiles, OfNetworksAreWrittenAndReadAsFilesAre) {
  const Network net = trained_pair(3);
  for (int i = 0; i < 5; ++i) {
    const auto format = static_cast<NetworkFormat>(i);
    const std::string name = "net." + std::string(network_format_name(format));
    const std::string path = memory_scratch(name);
    const std::string bytes = net.save_bytes(format).or_exit();
    ASSERT_TRUE(net.save(path).ok());
    EXPECT_EQ(bytes, read_file(path).or_exit()) << name;
    const Network back = Network::load({.bytes = bytes_of(bytes), .name = name}).or_exit();
    EXPECT_EQ(answers(back), answers(net)) << name;
    EXPECT_EQ(back.info().trained, Network::load(path).or_exit().info().trained) << name;
    EXPECT_EQ(back.save_bytes(NetworkFormat::entity).or_exit(),
              Network::load(path).or_exit().save_bytes(NetworkFormat::entity).or_exit())
        << name;
  }
  const auto stop = [](uint64_t, uint64_t) { return false; };
  EXPECT_EQ(net.save_bytes(NetworkFormat::npz, {.progress = stop}).error().code, Code::cancelled);
}

TEST(MemoryFiles, AreCopiedUnlessTheyAreBorrowed) {
  const Network net = trained_pair(4);
  const std::vector<float> expected = answers(net);
  Aligned file(net.save_bytes(NetworkFormat::entity, {.dtype = DType::int8}).or_exit());
  Network copied = Network::load({.bytes = file.bytes()}).or_exit();
  const std::vector<float> before = answers(copied);
  const Network borrowed = Network::load({.bytes = file.bytes(), .borrow = true}).or_exit();
  EXPECT_EQ(answers(borrowed), before);
  file.spoil();
  EXPECT_EQ(answers(copied), before);
  // Training continues from the file's data next to the packed weights.
  const std::vector<float> x(6, 0.5f);
  const std::vector<int32_t> y = {1};
  Trainer trainer = Trainer::create(copied).or_exit();
  EXPECT_TRUE(trainer.train_step(Tensor::view(x.data(), {1, 6}), Tensor::view(y.data(), {1})).ok());

  const Aligned odd("x" + net.save_bytes(NetworkFormat::entity).or_exit());
  const auto moved = odd.bytes().subspan(1);
  EXPECT_THAT(Network::load({.bytes = moved, .borrow = true}).error().message,
              HasSubstr("multiple of 64"));
  EXPECT_EQ(answers(Network::load({.bytes = moved}).or_exit()), expected);
}

std::vector<float> logits_of(const Model& model) {
  ModelSession session = model.session({.context = 16}).or_exit();
  const std::vector<TokenId> ids = {1, 20, 300, 4};
  EXPECT_TRUE(session.feed(ids).ok());
  return {session.logits().begin(), session.logits().end()};
}

TEST(MemoryFiles, OfModelsHaveTheLogitsOfTheirFiles) {
  const Engine engine = Engine::shared().or_exit();
  const std::string gguf = memory_scratch("stories.gguf");
  (void)convert(kStoryFile, gguf).or_exit();
  for (const std::string& path : {kStoryFile, gguf}) {
    const Model file = Model::load(engine, path).or_exit();
    Aligned bytes(read_file(path).or_exit());
    const Model borrowed = Model::load(engine, {.bytes = bytes.bytes(), .borrow = true}).or_exit();
    EXPECT_EQ(logits_of(borrowed), logits_of(file)) << path;
    const Model copied = Model::load(engine, {.bytes = bytes.bytes(), .name = "m"}).or_exit();
    bytes.spoil();
    EXPECT_EQ(logits_of(copied), logits_of(file)) << path;
    EXPECT_EQ(copied.info().source, "m");
    EXPECT_EQ(copied.tokenize("Once upon").or_exit(), file.tokenize("Once upon").or_exit());
  }
}

TEST(MemoryFiles, WithADamagedWeightAreRefusedWhenItIsUsed) {
  const Engine engine = Engine::shared().or_exit();
  std::string bytes = read_file(kStoryFile).or_exit();
  bytes[bytes.size() - 4096] = static_cast<char>(bytes[bytes.size() - 4096] ^ 1);
  const Result<Model> model = Model::load(engine, {.bytes = bytes_of(bytes), .name = "damaged"});
  const auto used = [&]() -> Status {
    LOOM_ASSIGN(ModelSession session, model->session({.context = 16}));
    const std::vector<TokenId> ids = {1, 2, 3};
    return session.feed(ids);
  };
  const Status done = model.ok() ? used() : Status(model.error());
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().code, Code::bad_file);
  EXPECT_THAT(done.error().str(), HasSubstr("damaged"));
}

TEST(MemoryFiles, OfTokenizersAndSamplesGiveWhatTheirFilesGive) {
  const std::string json =
      read_file(loom_test::source_path("tests/data/stories/tokenizer.json")).or_exit();
  const Tokenizer file = Tokenizer::load(loom_test::source_path("tests/data/stories")).or_exit();
  const Tokenizer memory =
      Tokenizer::load({.bytes = bytes_of(json), .name = "tokenizer.json"}).or_exit();
  const std::string entity = read_file(kStoryFile).or_exit();
  const Tokenizer packed = Tokenizer::load({.bytes = bytes_of(entity)}).or_exit();
  for (const std::string text : {"Once upon a time", "", "\xc3\xa9 \xf0\x9f\x98\x80"}) {
    EXPECT_EQ(memory.encode(text).or_exit(), file.encode(text).or_exit());
    EXPECT_EQ(packed.encode(text).or_exit(), file.encode(text).or_exit());
  }

  const Network net = trained_pair(5);
  const std::string csv = "1,2,3,4,5,6,0\n6,5,4,3,2,1,1\n0,0,1,1,0,0,1\n";
  int64_t rows = 0;
  DatasetOptions options;
  options.progress = [&](int64_t done, int64_t total) {
    EXPECT_EQ(total, 3);
    rows = done;
    return true;
  };
  const Dataset data = Dataset::from_file({.bytes = bytes_of(csv)}, net, options).or_exit();
  EXPECT_EQ(rows, 3);
  ASSERT_TRUE(write_file(memory_scratch("samples.csv"), csv).ok());
  EXPECT_EQ(data.hash(), Dataset::from_file(memory_scratch("samples.csv"), net).or_exit().hash());
  EXPECT_EQ(data.bytes(), 3 * (6 + 1) * 4);
  options.progress = [](int64_t, int64_t) { return false; };
  EXPECT_EQ(Dataset::from_file({.bytes = bytes_of(csv)}, net, options).error().code,
            Code::cancelled);
  const std::string bad = "1,2,3,4,5,6,0\n6,x,4,3,2,1,1\n";
  const Error error = Dataset::from_file({.bytes = bytes_of(bad), .name = "bad.csv"}, net).error();
  EXPECT_EQ(error.code, Code::bad_file);
  EXPECT_THAT(error.str(), HasSubstr("bad.csv"));
}

// The errors for a file and for the same bytes in memory differ only in the name.
template <class Load, class LoadFile>
void expect_same_refusal(const std::string& bytes, const std::string& path, const Load& load,
                         const LoadFile& load_file, const std::string& what) {
  ASSERT_TRUE(write_file(path, bytes).ok());
  const Status memory = load(FileBytes{.bytes = bytes_of(bytes), .name = path});
  const Status file = load_file(path);
  ASSERT_EQ(memory.ok(), file.ok()) << what;
  if (memory.ok()) return;
  EXPECT_EQ(memory.error().str(), file.error().str()) << what;
  EXPECT_EQ(memory.error().str().find('\n'), std::string::npos) << what;
}

TEST(MemoryFiles, ThatAreCutOrFlippedGiveTheErrorsOfDamagedFiles) {
  std::mt19937_64 random(20261123);
  const Network net = trained_pair(6);
  for (int i = 0; i < 5; ++i) {
    const auto format = static_cast<NetworkFormat>(i);
    const std::string ending(network_format_name(format));
    const std::string whole = net.save_bytes(format).or_exit();
    const std::string path = memory_scratch("damaged." + ending);
    for (int round = 0; round < 60; ++round) {
      std::string bytes = whole;
      if (round % 2 == 0) {
        bytes.resize(random() % bytes.size());
      } else {
        const size_t at = random() % std::min<size_t>(bytes.size(), 600);
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
      }
      const auto answer = [](const Result<Network>& net_of_it) -> Status {
        return net_of_it.ok() ? Status() : Status(net_of_it.error());
      };
      expect_same_refusal(
          bytes, path, [&](const FileBytes& f) { return answer(Network::load(f)); },
          [&](const std::string& p) { return answer(Network::load(p)); },
          ending + ", round " + std::to_string(round));
    }
  }
}

TEST(MemoryFiles, OfNothingAndOfRubbishAreOneLine) {
  const Engine engine = Engine::shared().or_exit();
  const Network net = trained_pair(7);
  for (const std::string& bytes : {std::string(), std::string("GGUF"), std::string(100, '\0'),
                                   std::string("{"), std::string("ENTITY\0\0\2\0", 10)}) {
    const FileBytes file{.bytes = bytes_of(bytes)};
    for (const Error& error :
         {Network::load(file).error(), Model::load(engine, file).error(),
          Tokenizer::load(file).error(), Dataset::from_file(file, net).error()}) {
      EXPECT_THAT(error.str(), HasSubstr("the bytes"));
      EXPECT_EQ(error.str().find('\n'), std::string::npos);
    }
  }
}

// An ONNX file that scales its inputs and has no Loom training record.
std::string scaling_onnx() {
  core::OnnxExportOptions options;
  options.normalization.shift = {5, -3};
  options.normalization.scale = {0.5f, 4};
  const Network made =
      Network::sequential({Dense{.in = 2, .out = 2}}, {.input = {2}, .seed = 3}).value();
  const auto weights = made.impl().weights().value();
  const auto model = core::export_onnx(*weights, core::Shape{2}, options);
  EXPECT_TRUE(model.ok()) << model.error().str();
  return *core::onnx_bytes(*model);
}

TEST(MemoryFiles, ASavedNetworkKeepsTheScalesOfInputsThatItCameWith) {
  const std::string onnx = scaling_onnx();
  const Result<Network> network = Network::load(FileBytes{bytes_of(onnx), "scales.onnx"});
  ASSERT_TRUE(network.ok()) << network.error().str();
  const Tensor x = Tensor::copy(std::vector<float>{6, -2, 4, 1}, {2, 2}).value();
  const auto ask = [&](const Network& n) {
    const Tensor y = n.session({.max_batch = 2}).value().run(x).value();
    const auto values = y.values<float>().value();
    return std::vector<float>(values.begin(), values.end());
  };
  const std::vector<float> desired = ask(*network);
  for (const NetworkFormat format :
       {NetworkFormat::entity, NetworkFormat::json, NetworkFormat::npz, NetworkFormat::onnx}) {
    const Result<std::string> saved = network->save_bytes(format);
    ASSERT_TRUE(saved.ok()) << saved.error().str();
    const std::string name = "again." + std::string(network_format_name(format));
    const Result<Network> again = Network::load(FileBytes{bytes_of(*saved), name});
    ASSERT_TRUE(again.ok()) << again.error().str();
    EXPECT_EQ(ask(*again), desired) << name;
  }
}

}  // namespace
