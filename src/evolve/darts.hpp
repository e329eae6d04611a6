// Architecture search by gradients: Liu, Simonyan and Yang, "DARTS: Differentiable architecture
// search", 2019. The weights w of all branches of mixed cells learn from one part of the samples,
// the architecture parameters alpha, whose softmax weighs the branches, from the other. Before each
// step of w by batch t at rate xi, alpha takes a step of Adam along
//   first order   dLv(w, alpha)/dalpha, of batch v of the other part
//   second order  dLv(w', alpha)/dalpha - xi (dLt(w+, alpha)/dalpha - dLt(w-, alpha)/dalpha) / 2e,
//                 w' = w - xi dLt(w, alpha)/dw,  w+- = w +- e dLv(w', alpha)/dw',
//                 e = 0.01 / |dLv(w', alpha)/dw'|   (equations 6 to 8 of the paper)
// What layers keep beside their weights (means of BatchNorm) moves in steps of w alone. It knows no
// files; state() is all that a search needs to go on with the same bits.
#pragma once

#include <memory>

#include "evolve/darts_cells.hpp"
#include "learn/trainer.hpp"

namespace loom::core {

struct DartsSpec {
  int64_t order = 2;  // 1 or 2
  int64_t epochs = 10, batch = 64;
  uint64_t seed = 1;
  // Weights: momentum 0.9, from `rate` along a half cosine to `least_rate`, gradients clipped to a
  // norm of `clip`. Architecture parameters: Adam with beta1 0.5.
  double rate = 0.025, least_rate = 0.001, decay = 3e-4, clip = 5;
  double alpha_rate = 0.01, alpha_decay = 1e-3;
};
// Errors: invalid_argument, naming the option.
Status check_darts(const DartsSpec& spec);

struct DartsEpoch {
  int64_t epoch = 0;  // from 1
  double train_loss = 0;
  double validation_loss = 0;                // of the samples that alpha learns from, at the end
  std::optional<double> accuracy;            // of them
  std::vector<std::vector<double>> weights;  // softmax of alpha: per mixed cell and branch
};

class Darts {
 public:
  // `mixed`: a genome with mixed cells, its values those to begin with. Both parts need at least
  // `batch` samples. Errors: invalid_argument; unsupported (order 2 with layers that draw random
  // numbers, since a difference of two losses would be one of two draws).
  static Result<Darts> create(const GridGenome& mixed, const Dataset& train,
                              const Dataset& validation, const DartsSpec& spec, const Ops& ops,
                              ThreadPool& pool);
  Darts(Darts&&) noexcept;
  Darts& operator=(Darts&&) noexcept;
  ~Darts();

  // Called after each batch with those done in this epoch and all. false: stop with
  // Code::cancelled; the search is in the middle of an epoch then, to be left or loaded again.
  using OnStep = std::function<bool(int64_t done, int64_t all)>;
  Result<DartsEpoch> epoch(const OnStep& on_step = {});
  // One step of alpha and one of w, of these samples.
  Status step(const Dataset& train, const Dataset& validation, double rate);

  const DartsSpec& spec() const;
  const std::vector<DartsEpoch>& history() const;
  std::vector<std::vector<double>> weights() const;  // now
  // Gradient of alpha in the last step, per mixed cell.
  std::vector<std::vector<float>> alpha_gradients() const;
  // The genome with the weights as they are now.
  GridGenome genome() const;

  // Masters, momentum, alpha and its moments.
  std::vector<StateTensor> state() const;
  int64_t updates() const;  // steps of the weights that were not dropped
  // After state() was filled: what was done by then.
  Status restored(std::vector<DartsEpoch> history, int64_t updates);

  struct Impl;
  explicit Darts(std::unique_ptr<Impl> impl);

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace loom::core
