// Callbacks for embedders: log lines, memory of objects, progress, and cancellation of every long
// call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "e2e/temp_folder.hpp"
#include "loom/loom.hpp"
#include "support/paths.hpp"

namespace {

using namespace loom;
using testing::Contains;
using testing::HasSubstr;

const std::string kTold = loom_test::source_path("models/stories.entity");

std::string hooks_scratch(const std::string& name) {
  static const core::test::TempFolder folder;
  return folder.path() + "/" + name;
}

Network wide_net(const Engine& engine) {
  return Network::sequential({Dense{.in = 16, .out = 64, .activation = Activation::relu},
                              Dense{.in = 64, .out = 4}},
                             {.input = {16}, .engine = engine})
      .or_exit();
}

Dataset small_set(int64_t samples) {
  std::vector<float> x;
  std::vector<int32_t> y;
  for (int64_t i = 0; i < samples * 16; ++i) x.push_back(static_cast<float>(i % 7) - 3.0f);
  for (int64_t i = 0; i < samples; ++i) y.push_back(static_cast<int32_t>(i % 4));
  return Dataset::from_arrays(Tensor::view(x.data(), {samples, 16}),
                              Tensor::view(y.data(), {samples}))
      .or_exit();
}

TEST(Log, SaysWhatWasMadeAndLoaded) {
  std::vector<std::string> lines;
  const auto sink = [&](LogLevel level, std::string_view line) {
    lines.push_back(std::string(log_level_name(level)) + ": " + std::string(line));
  };
  const Engine engine = Engine::create({.threads = 1, .log = sink}).or_exit();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("debug: engine: cpu, "));
  (void)Model::load(engine, kTold).or_exit();
  EXPECT_THAT(lines.back(), HasSubstr("info: " + kTold + ": LlamaForCausalLM"));
  const std::string path = hooks_scratch("told.entity");
  ASSERT_TRUE(wide_net(engine).save(path).ok());
  (void)Network::load(path, {.engine = engine}).or_exit();
  EXPECT_THAT(lines.back(), HasSubstr("info: " + path + ": a network of 1348 parameters"));
  for (const std::string& line : lines) EXPECT_EQ(line.find('\n'), std::string::npos);
}

TEST(Log, SaysThatACheckpointWasDamaged) {
  std::vector<std::string> warnings;
  const auto sink = [&](LogLevel level, std::string_view line) {
    if (level == LogLevel::warning) warnings.emplace_back(line);
  };
  const Engine engine = Engine::create({.threads = 1, .log = sink}).or_exit();
  const std::string path = hooks_scratch("damaged.safetensors");
  const Dataset data = small_set(8);
  for (const int64_t epochs : {2, 3}) {
    Network net = wide_net(engine);
    Trainer trainer = Trainer::create(net).or_exit();
    if (epochs == 3) {
      ASSERT_TRUE(write_file(path, "damaged").ok());
    }
    (void)trainer.fit(data, {.epochs = epochs, .checkpoint = path, .resume = epochs == 3});
  }
  EXPECT_THAT(warnings, Contains(HasSubstr(path + ".previous")));
}

TEST(Memory, OfAnEngineIsThatOfItsObjects) {
  const Engine engine = Engine::create({.threads = 1}).or_exit();
  EXPECT_EQ(engine.memory().total, 0);
  int64_t peak = 0;
  {
    Network net = wide_net(engine);
    const int64_t weights = engine.memory().weights;
    EXPECT_GE(weights, net.info().parameters * 4);
    EXPECT_LT(weights, net.info().bytes + 4096);
    {
      Session session = net.session({.max_batch = 8}).or_exit();
      EXPECT_EQ(engine.memory().sessions, session.bytes());
      const std::vector<float> x(9 * 16, 1.0f);
      (void)session.run(Tensor::view(x.data(), {9, 16})).or_exit();  // a rest of one sample
      EXPECT_EQ(engine.memory().sessions, session.bytes());
      EXPECT_GT(session.bytes(), 0);
    }
    EXPECT_EQ(engine.memory().sessions, 0);
    {
      Trainer trainer = Trainer::create(net).or_exit();
      EXPECT_EQ(trainer.bytes(), 0);
      (void)trainer.fit(small_set(8), {.epochs = 1}).or_exit();
      EXPECT_EQ(engine.memory().training, trainer.bytes());
      EXPECT_GT(trainer.bytes(), 3 * weights);
    }
    const MemoryUse after = engine.memory();
    EXPECT_EQ(after.training, 0);
    EXPECT_EQ(after.weights, weights);
    EXPECT_EQ(after.total, after.weights);
    peak = after.peak;
    EXPECT_GT(peak, after.total);
  }
  EXPECT_EQ(engine.memory().total, 0);
  EXPECT_EQ(engine.memory().peak, peak);
}

TEST(Memory, OfAModelIsMappedOrPacked) {
  const Engine engine = Engine::create({.threads = 1}).or_exit();
  {
    const Model mapped = Model::load(engine, kTold).or_exit();
    EXPECT_EQ(engine.memory().weights, 0);
    EXPECT_EQ(engine.memory().mapped, mapped.info().bytes);
    const ModelSession session = mapped.session({.context = 64}).or_exit();
    EXPECT_EQ(engine.memory().sessions, session.bytes());
    EXPECT_EQ(session.bytes(), session.activation_bytes() + session.cache_bytes());
  }
  const Model packed = Model::load(engine, kTold, {.dtype = DType::q4_0}).or_exit();
  EXPECT_EQ(engine.memory().mapped, 0);
  EXPECT_GE(engine.memory().weights, packed.info().bytes);
}

TEST(Cancelling, StopsEveryLongCall) {
  const Engine engine = Engine::create({.threads = 1}).or_exit();
  const std::string path = hooks_scratch("stopped.entity");
  Network net = wide_net(engine);
  ASSERT_TRUE(net.save(path).ok());
  const Dataset data = small_set(96);
  const Model model = Model::load(engine, kTold).or_exit();
  ModelSession session = model.session({.context = 512}).or_exit();
  const std::vector<TokenId> ids(400, 17);
  Trainer trainer = Trainer::create(net, {.batch = 16}).or_exit();
  int calls = 0;
  const auto code = [](const auto& result) { return result.ok() ? Code::ok : result.error().code; };
  const auto stop = [&](auto, auto) { return ++calls < 2; };
  const auto stop_work = [&](std::string_view, uint64_t, uint64_t) { return ++calls < 2; };
  struct Case {
    std::string name;
    std::function<Code()> call;
  };
  const std::vector<Case> cases = {
      {"Network::load", [&] { return code(Network::load(path, {.progress = stop})); }},
      {"Network::save entity",
       [&] { return code(net.save(hooks_scratch("never.entity"), {.progress = stop})); }},
      {"Network::save safetensors",
       [&] { return code(net.save(hooks_scratch("never.safetensors"), {.progress = stop})); }},
      {"Network::save npz",
       [&] { return code(net.save(hooks_scratch("never.npz"), {.progress = stop})); }},
      {"Model::load",
       [&] { return code(Model::load(engine, kTold, {.dtype = DType::q4_0, .progress = stop})); }},
      {"convert",
       [&] { return code(convert(kTold, hooks_scratch("never.gguf"), {.progress = stop_work})); }},
      {"verify_hashes", [&] { return code(verify_hashes(kTold, engine, stop)); }},
      {"diff", [&] { return code(diff(kTold, kTold, {.progress = stop})); }},
      {"fit",
       [&] {
         const auto batch = [&](int64_t, int64_t, double) { return ++calls < 2; };
         return code(trainer.fit(data, {.on_batch = batch}));
       }},
      {"fit, validating",
       [&] { return code(trainer.fit(data, data, {.epochs = 50, .on_validation = stop})); }},
      {"evaluate", [&] { return code(trainer.evaluate(data, {}, stop)); }},
      {"calibrate", [&] { return code(trainer.calibrate(data, stop)); }},
      {"feed", [&] { return code(session.feed(ids, stop)); }},
      {"perplexity", [&] { return code(model.perplexity(ids, {.window = 16, .progress = stop})); }},
  };
  for (const Case& c : cases) {
    calls = 0;
    EXPECT_EQ(c.call(), Code::cancelled) << c.name;
    EXPECT_EQ(calls, 2) << c.name;
  }
  EXPECT_EQ(session.position(), 400);
  for (const std::string name : {"never.entity", "never.safetensors", "never.npz", "never.gguf"})
    EXPECT_FALSE(std::filesystem::exists(hooks_scratch(name))) << name;
}

}  // namespace
