// Telemetry: reports of a running program as lines of JSON, TensorBoard files, Prometheus text, or
// calls of a function. It never blocks the run: a separate thread writes. Records that arrive
// faster than it can write are dropped and counted.
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
  // A file to which lines of JSON are appended (docs/telemetry.md). Empty means none.
  std::string json_lines{};
  // A folder for TensorBoard, created if needed; every open() starts a new file. Empty means none.
  std::string tensorboard{};
  // A file with the last value of each number, in Prometheus text format. Empty means none.
  std::string prometheus{};
  // "http://host:port/path": posts lines of JSON, several at a time. Three failed posts in a row
  // end it. Empty means none.
  std::string http{};
  // "host:port": sends a datagram of at most 1400 bytes for each line; a longer line says "cut".
  // Empty means none.
  std::string udp{};
  // "host:port" (default port 17481): sends a datagram of at most 1400 bytes for each layer that a
  // batch passes through, in the TANHI protocol (docs/telemetry.md). Call picture() first, and use
  // pass() as FitOptions::on_pass. Empty means none.
  std::string tanhi{};
  // Receives the lines of JSON too, on a separate thread. An Error ends it; close() returns it.
  std::function<Status(std::string_view line)> on_line{};
  int64_t queue = 4096;             // maximum queued records (layer passes: 1024); more are dropped
  std::function<double()> clock{};  // seconds since 1970; unset means the system clock
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
  // The distribution of a tensor's values, of any plain type, over 30 ranges of equal width.
  // Errors: invalid_argument (packed values).
  Status histogram(std::string_view tag, int64_t step, const Tensor& values);
  // The cells of a network and their connections.
  void picture(const Network& network);
  // A layer that a batch passed through; only `tanhi` uses it, and the start of a run.
  void pass(const LayerPass& pass);
  void begin_run(std::string_view label);
  // Losses, metrics, rate, gradient norm, dropped updates and speed of an epoch, by its number.
  void epoch(const Epoch& epoch);
  // A histogram of every parameter, under "weights/" and its name.
  Status weights(int64_t step, const Network& network);

  int64_t dropped() const;  // records dropped because the queue was full
  // Layer passes dropped because their queue of 1024 was full: viewers see them as gaps in `seq`.
  int64_t passes_dropped() const;
  // Writes queued records, for at most `most`; later records are ignored. Errors: those of a sink
  // that failed and stopped, that lost records or that no receiver accepted; io_error if a sink did
  // not end in time.
  Status close(std::chrono::milliseconds most = std::chrono::milliseconds(5000));

  struct LOOM_LOCAL Impl;

 private:
  explicit Telemetry(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace loom
#endif
