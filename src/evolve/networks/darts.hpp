// Architecture search by gradients: Liu, Simonyan and Yang, "DARTS: Differentiable architecture
// search", 2019. One part of the samples trains the weights w of all branches of mixed cells. The
// other part trains the architecture parameters alpha, whose softmax weighs the branches. Each step
// of w by batch t has rate xi. Before it, alpha takes a step of Adam along
//   first order   dLv(w, alpha)/dalpha, of batch v of the other part
//   second order  dLv(w', alpha)/dalpha - xi (dLt(w+, alpha)/dalpha - dLt(w-, alpha)/dalpha) / 2e,
//                 w' = w - xi dLt(w, alpha)/dw,  w+- = w +- e dLv(w', alpha)/dw',
//                 e = 0.01 / |dLv(w', alpha)/dw'|   (equations 6 to 8 of the paper)
// Other values of layers (means of BatchNorm) change in steps of w only. The search does not use
// files; state() is all that it needs to continue with the same bits.
#pragma once

#include <memory>

#include "evolve/networks/darts_cells.hpp"
#include "learn/trainer.hpp"

namespace loom::core {

struct DartsSpec {
  int64_t order = 2;  // 1 or 2
  int64_t epochs = 10, batch = 64;
  uint64_t seed = 1;
  // Weights: momentum 0.9, from `rate` along a half cosine to `min_rate`, gradients clipped to a
  // norm of `clip`. Architecture parameters: Adam with beta1 0.5.
  double rate = 0.025, min_rate = 0.001, decay = 3e-4, clip = 5;
  double alpha_rate = 0.01, alpha_decay = 1e-3;
};
// Errors: invalid_argument, naming the option.
Status check_darts(const DartsSpec& spec);

struct DartsEpoch {
  int64_t epoch = 0;  // from 1
  double train_loss = 0;
  double validation_loss = 0;                // on alpha's samples, at the end
  std::optional<double> accuracy;            // on the same samples
  std::vector<std::vector<double>> weights;  // softmax of alpha: per mixed cell and branch
};

class Darts {
 public:
  // `mixed`: a genome with mixed cells and initial values. Both parts need at least `batch`
  // samples. Errors: invalid_argument; unsupported (order 2 with layers that draw random numbers:
  // the difference of two losses would be between two draws).
  static Result<Darts> create(const GridGenome& mixed, const Dataset& train,
                              const Dataset& validation, const DartsSpec& spec, const Ops& ops,
                              ThreadPool& pool);
  Darts(Darts&&) noexcept;
  Darts& operator=(Darts&&) noexcept;
  ~Darts();

  // Called after each batch with those done in this epoch and the total. false stops with
  // Code::cancelled in the middle of an epoch; discard the search or load it again.
  using OnStep = std::function<bool(int64_t done, int64_t all)>;
  Result<DartsEpoch> epoch(const OnStep& on_step = {});
  // Runs one step of alpha and one of w on these samples.
  Status step(const Dataset& train, const Dataset& validation, double rate);

  const DartsSpec& spec() const;
  const std::vector<DartsEpoch>& history() const;
  std::vector<std::vector<double>> weights() const;  // now
  // Gradient of alpha in the last step, per mixed cell.
  std::vector<std::vector<float>> alpha_gradients() const;
  // The genome with the current weights.
  GridGenome genome() const;

  // Masters, momentum, alpha and its moments.
  std::vector<StateTensor> state() const;
  int64_t updates() const;  // steps of the weights that were not dropped
  // Call it after state() was filled, with the progress at that time.
  Status restored(std::vector<DartsEpoch> history, int64_t updates);

  struct Impl;
  explicit Darts(std::unique_ptr<Impl> impl);

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace loom::core
