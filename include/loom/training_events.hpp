// The progress of training: epochs, and statistics of layers, as FitOptions passes them on.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "loom/network.hpp"

namespace loom {

// One of TrainerOptions::metrics; NaN if the samples do not determine it.
struct Metric {
  std::string name;
  double value = 0;
};

// An epoch of a run.
struct Epoch {
  int64_t number = 0;  // from 1
  double train_loss = 0;
  std::optional<double> validation_loss, validation_accuracy;
  std::vector<Metric> validation_metrics;  // those of TrainerOptions::metrics
  double rate = 0;                         // of the last step
  double gradient_norm = 0;                // of the last step, if clipping is on
  int64_t dropped = 0;                     // updates that were not finite
  bool best = false;                       // least loss so far (validation loss if there is one)
  double samples_per_second = 0;
};

// An epoch of a mesh.
struct MeshEpoch {
  int64_t number = 0;              // from 1
  double loss = 0;                 // mean over the samples
  std::optional<double> accuracy;  // of labels
  double ticks_per_second = 0;
};

// Statistics of a layer's output, or of its gradient, in the last step of an epoch.
struct LayerStats {
  int64_t epoch = 0;
  Coord at;
  std::string type;       // "Dense"
  bool backward = false;  // statistics of the gradient of its output
  double mean = 0, std = 0, min = 0, max = 0;
  int64_t active = 0, total = 0;  // values with magnitude above 1e-6, and all
};

// A layer that a batch just passed through, forward or backward. Times are nanoseconds since 1970,
// monotonic during a run; they cover the work of this layer only.
struct LayerPass {
  Coord at;
  std::string type;       // "Dense"
  bool backward = false;  // the gradient of its output is computed
  int64_t begin_ns = 0, end_ns = 0;
  std::vector<int64_t> shape;  // of its output
};

// A learning rule's statistics of a layer, averaged over the batches of an epoch: docs/rules.md.
struct LinkStats {
  int64_t epoch = 0;
  Coord at;
  std::string type;   // "Dense"
  double budget = 0;  // 1 if its output has the direction of its target, 0 if the opposite
  double gap = 0;     // root mean square of output - target
  double closed = 0;  // share of the batches in which it did not learn
  double cosine = 0;  // between its signal and the gradient of the loss
  double size = 0;    // root mean square of its signal
};

// Writes a file.
using SaveFile = std::function<Status(const std::string& path)>;

}  // namespace loom
