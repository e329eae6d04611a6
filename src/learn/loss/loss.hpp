// Losses. Each is one row in a file of this folder; registry.cpp, which is generated from
// api/options/training.toml, lists the rows. Code elsewhere asks the row, and never which loss it
// is. Builds for inference have the rows too, since files of networks name their loss: a row is
// data, and its function is left out there.
#pragma once

#include <limits>
#include <span>

#include "learn/spec.hpp"

namespace loom::core {

class TraceBuilder;

// The owner of a target.
enum class LossForm : uint8_t {
  rows,      // a row of the prediction
  sequence,  // all rows of a sample; a label sequence of any length (learn/loss/ctc_batch.hpp)
  pairs      // two rows of a batch, related by their labels (learn/data/pairs.hpp)
};

// The meaning of the values of a prediction.
enum class Prediction : uint8_t {
  numbers,
  classes,        // logits of one class each; targets are labels or distributions
  binary_logits,  // logits of targets from 0 to 1
  margins         // above 0 for one of two sides, below for the other
};

// The distribution whose negative log-likelihood the loss is, for optimizers that sample targets.
enum class Likelihood : uint8_t { none, normal, categorical };

// Which rows of a batch count, of losses of pairs: those with another row of their label, of
// another label, or both.
enum class Anchors : uint8_t { same, either, both };

// Targets of a row. Without `must`, any finite number.
struct TargetDomain {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool integers = false;
  bool sums_to_one = false;
  const char* must = nullptr;    // "from 0 to 1"
  const char* remedy = nullptr;  // "give counts"
};
// Sums of probabilities are rounded.
constexpr double kSumTolerance = 1e-3;

// An option that only some losses read. Files of networks have it under `key`.
struct LossOption {
  const char* key;
  float LossSpec::*real = nullptr;
  int64_t LossSpec::*integer = nullptr;
  bool LossSpec::*flag = nullptr;
  bool positive = false;          // must be above 0
  const char* run_key = nullptr;  // of checkpoints, if it is not `key`
};

// The tensors of a recorded loss. R: rows.
struct LossTensors {
  Tensor y;       // [R, N]
  Tensor target;  // [R, N]; of pairs the relation [R, R]: 1 same label, -1 another, 0 neither
  Tensor weight;  // [R]
  Tensor rows;    // [R]; output: the loss of each row times its weight
};
// A tensor, and the gradient of the sum of the rows by it. The Differentiator starts there.
struct LossSeed {
  Tensor value, gradient;
};
using RecordLoss = Result<LossSeed> (*)(TraceBuilder& s, const LossSpec& loss,
                                        const LossTensors& t);

struct LossDef {
  // The op that computes the loss of a row and its gradient; not used with `record` or a sequence.
  LossKind op = LossKind::mse;
  // Records the loss from ops. It has no gradient of its own: the Differentiator follows the ops.
  RecordLoss record = nullptr;
  LossForm form = LossForm::rows;
  Prediction prediction = Prediction::numbers;
  TargetDomain domain = {};
  Likelihood likelihood = Likelihood::none;
  Anchors anchors = Anchors::same;
  // Numbers k times as large give a loss k^degree times as large; 0 if it has no such unit.
  int degree = 0;
  bool by_angle = false;  // pairs: rows are compared by their cosine, not by their distance
  float LossSpec::*parameter = &LossSpec::delta;  // LossArgs::delta of the op
  std::span<const LossOption> options = {};

  bool takes_labels() const { return prediction == Prediction::classes || form != LossForm::rows; }
};

// The options that only the loss of `to` reads.
void copy_options(const LossSpec& from, LossSpec& to);

const LossDef& loss_def(loom::Loss kind);  // registry.cpp; not of Loss::automatic

// For LossDef::record. each [R, 1]: the losses of the rows. They are weighted and go to t.rows.
Result<LossSeed> weighted_rows(TraceBuilder& s, const LossTensors& t, const Tensor& each);

}  // namespace loom::core
