// Telemetry: what a run tells while it goes on, as lines of JSON, as files of TensorBoard, as a
// text for Prometheus, or through a function. It never holds the run up: a thread of its own
// writes, and what comes faster than it can write is dropped and counted.
//
//   Telemetry told = Telemetry::open({.tensorboard = "runs/first"}).or_exit();
//   fit.on_epoch = [&](const Epoch& e) { return told.epoch(e), true; };
//   trainer.fit(train, fit).or_exit();
//   told.close();
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "loom/export.hpp"
#include "loom/network.hpp"
#include "loom/trainer.hpp"

#ifndef LOOM_MINIMAL  // a build for inference alone leaves this out
namespace loom {

struct TelemetryOptions {
  // A file to which lines of JSON are appended (docs/telemetry.md). "": none.
  std::string json_lines{};
  // A folder for TensorBoard, made if it is not there; every open() begins a file in it. "": none.
  std::string tensorboard{};
  // A file with the last value of each number, in the text format of Prometheus. "": none.
  std::string prometheus{};
  // "http://host:port/path": lines of JSON are posted to it, several at a time. Three posts in a
  // row that fail end it. "": none.
  std::string http{};
  // "host:port": a datagram for each line, of at most 1400 bytes; what is longer says "cut". "":
  // none.
  std::string udp{};
  // "host:port" (17481 where no port is given): a datagram for each layer that a batch goes
  // through, as viewers of the TANHI protocol read them (docs/telemetry.md), of at most 1400 bytes.
  // Give picture() first, and pass() as FitOptions::on_pass. "": none.
  std::string tanhi{};
  // Gets the lines of JSON too, on a thread of its own. An Error ends it, and close() gives it.
  std::function<Status(std::string_view line)> on_line{};
  int64_t queue = 4096;  // records that may wait (layers' passes: 1024); more are dropped
  std::function<double()> clock{};  // seconds since 1970; unset: that of the system
};

// Functions may be called from several threads at once.
class LOOM_API Telemetry {
 public:
  // Errors: invalid_argument (no sink, queue below 1, no such address), those of files.
  static Result<Telemetry> open(const TelemetryOptions& options);
  Telemetry(Telemetry&&) noexcept;
  Telemetry& operator=(Telemetry&&) noexcept;
  ~Telemetry();  // close()

  void scalar(std::string_view tag, int64_t step, double value);
  // How the values of a tensor of any plain type are spread, over 30 ranges of equal width.
  // Errors: invalid_argument (packed values).
  Status histogram(std::string_view tag, int64_t step, const Tensor& values);
  // The cells of a network and who reads whom.
  void picture(const Network& network);
  // A layer that a batch went through: of use to `tanhi` alone, which also gets the begin of a run.
  void pass(const LayerPass& pass);
  void begin_run(std::string_view label);
  // An epoch's losses, metrics, rate, gradient norm, dropped updates and speed, by its number.
  void epoch(const Epoch& epoch);
  // A histogram of every parameter, "weights/" before its name.
  Status weights(int64_t step, const Network& network);

  int64_t dropped() const;  // records that found the queue full
  // Layers' passes that found theirs full, of 1024: viewers see them as gaps in `seq`.
  int64_t passes_dropped() const;
  // Writes what waits, for at most `most`; nothing is taken afterwards. Errors: of a sink that
  // failed, which got nothing after it, or that lost records or reached nobody; io_error if a sink
  // did not end in time.
  Status close(std::chrono::milliseconds most = std::chrono::milliseconds(5000));

  struct LOOM_LOCAL Impl;

 private:
  explicit Telemetry(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace loom
#endif
