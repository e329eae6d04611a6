// Telemetry as a program uses it: with a trainer, and with the test's clock.
#include "loom/telemetry.hpp"

#include <gtest/gtest.h>

#include <mutex>

#include "loom/loom.hpp"

namespace loom {
namespace {

Network small_network() {
  return Network::sequential({Dense{.in = 4, .out = 3}, Dense{.in = 3, .out = 2}}, {.input = {4}})
      .or_exit();
}

Dataset two_classes() {
  std::vector<float> x;
  std::vector<int32_t> y;
  for (int i = 0; i < 40; ++i) {
    for (int k = 0; k < 4; ++k) x.push_back(static_cast<float>((i * 7 + k * 3) % 11) / 11);
    y.push_back(i % 2);
  }
  return Dataset::from_arrays(Tensor::copy(x, {40, 4}).or_exit(), Tensor::copy(y, {40}).or_exit())
      .or_exit();
}

// The received lines, and a clock that advances by a second each time.
struct Lines {
  std::mutex mutex;
  std::vector<std::string> all;
  double now = 100;

  TelemetryOptions options() {
    TelemetryOptions o;
    o.on_line = [this](std::string_view line) -> Status {
      const std::lock_guard<std::mutex> lock(mutex);
      all.emplace_back(line);
      return {};
    };
    o.clock = [this] { return now += 1; };
    return o;
  }
  int64_t with(std::string_view text) const {
    return std::count_if(all.begin(), all.end(), [&](const std::string& line) {
      return line.find(text) != std::string::npos;
    });
  }
};

TEST(Telemetry, TellsEpochsWeightsAndTheNetworkInTheirOrder) {
  Lines lines;
  Telemetry report = Telemetry::open(lines.options()).or_exit();
  Network net = small_network();
  Trainer trainer = Trainer::create(net).or_exit();
  report.picture(net);
  FitOptions fit;
  fit.epochs = 3;
  fit.on_epoch = [&](const Epoch& e) {
    report.epoch(e);
    return report.weights(e.number, trainer.network()).ok();
  };
  ASSERT_TRUE(trainer.fit(two_classes(), fit).ok());
  ASSERT_TRUE(report.close().ok());
  EXPECT_EQ(report.dropped(), 0);
  EXPECT_EQ(lines.with("\"nodes\""), 1);
  EXPECT_EQ(lines.with("loss/train"), 3);
  EXPECT_EQ(lines.with("\"histogram\""), 3 * 4);
  EXPECT_NE(lines.all[0].find("\"wall\":102"), std::string::npos) << lines.all[0];
  EXPECT_NE(lines.all[0].find("z0_y0_x1_l0_Dense"), std::string::npos) << lines.all[0];
}

TEST(Telemetry, ChangesNoBitOfTheTraining) {
  std::string hashes[2];
  for (const bool tells : {false, true}) {
    Lines lines;
    Telemetry report = Telemetry::open(lines.options()).or_exit();
    Trainer trainer = Trainer::create(small_network()).or_exit();
    FitOptions fit;
    fit.epochs = 4;
    fit.on_epoch = [&](const Epoch& e) {
      return !tells || report.weights(e.number, trainer.network()).ok();
    };
    ASSERT_TRUE(trainer.fit(two_classes(), fit).ok());
    hashes[tells ? 1 : 0] = trainer.weights_hash().or_exit();
  }
  EXPECT_EQ(hashes[0], hashes[1]);
}

TEST(Telemetry, GivesTheErrorOfAFunctionThatFails) {
  TelemetryOptions o;
  o.on_line = [](std::string_view) -> Status {
    return Error{Code::io_error, "the pipe is closed", {}, -1};
  };
  Telemetry report = Telemetry::open(o).or_exit();
  report.scalar("x", 1, 2);
  const Status closed = report.close();
  ASSERT_FALSE(closed.ok());
  EXPECT_EQ(closed.error().message, "the pipe is closed");
}

TEST(Telemetry, RefusesWhatHasNowhereToGo) {
  const struct {
    TelemetryOptions options;
    const char* says;
  } cases[] = {
      {{}, "needs json_lines, tensorboard, prometheus, http, udp, tanhi or on_line"},
      {{.json_lines = testing::TempDir() + "x.jsonl", .queue = 0}, "queue is 0"},
      {{.json_lines = "no/such/folder/x.jsonl"}, "cannot write"},
      {{.json_lines = testing::TempDir()}, "this is a folder"},
      {{.tanhi = "127.0.0.1:x"}, "127.0.0.1:x"},
      {{.tensorboard = "no/such/folder"}, "cannot make the folder"},
  };
  for (const auto& c : cases) {
    const Result<Telemetry> report = Telemetry::open(c.options);
    ASSERT_FALSE(report.ok()) << c.says;
    EXPECT_NE(report.error().message.find(c.says), std::string::npos) << report.error().message;
  }
}

TEST(Telemetry, TakesTensorsOfAnyPlainTypeAndEmptyOnes) {
  Lines lines;
  Telemetry report = Telemetry::open(lines.options()).or_exit();
  const std::vector<int32_t> whole = {1, 2, 3};
  EXPECT_TRUE(report.histogram("i", 1, Tensor::copy(whole, {3}).or_exit()).ok());
  EXPECT_TRUE(report.histogram("empty", 1, Tensor()).ok());
  ASSERT_TRUE(report.close().ok());
  EXPECT_NE(lines.all[0].find("\"sum\":6"), std::string::npos) << lines.all[0];
  EXPECT_NE(lines.all[1].find("\"count\":0"), std::string::npos) << lines.all[1];
}

}  // namespace
}  // namespace loom
