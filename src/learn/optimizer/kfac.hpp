// K-FAC: gradients of the weights of products and convolutions, multiplied by an approximate
// inverse of the Fisher information (Martens and Grosse, 2015; for convolutions Grosse and Martens,
// 2016). For a product with inputs a, at T positions of each of n predictions, and gradients g at
// the input of the activation:
//   A = E[sum over positions of a a'],  G = E[mean over positions of g g'],  both moving averages:
//       of update k, from 1, the share min(1 - 1 / k, 0.95) stays
//   g   gradients of the loss with targets drawn from the prediction (softmax_ce, mse); for other
//       losses those at the real targets
//   pi  = sqrt((trace A / size of A) / (trace G / size of G)), l = sqrt(damping)
//   a   ends in a 1 where the layer has a bias, which is the last column of W then (section 2.1)
//   direction of a weight W: (G + l / pi)^-1 dW (A + l pi)^-1
//   step  nu = min(1, sqrt(trust / (rate^2 sum of direction * gradient))): the most that the
//       prediction may change, as a divergence; then m = beta1 m + nu direction, W -= rate m
// Inverses are taken every few updates from a Cholesky factor in doubles, on the host, with sums in
// a fixed order. Everything else (norms, tables, convolutions in groups, sides above kMaxSide)
// takes steps of Adam with the same rate. Private to the room.
#pragma once

#include "learn/optimizer/optimizer.hpp"

namespace loom::core {

class Kfac : public OptimizerDriver {
 public:
  static constexpr int64_t kMaxSide = 4096;

  // Finds the products of the network whose weights are trained. Errors: invalid_argument where
  // there is none, or for a mesh.
  static Result<std::unique_ptr<OptimizerDriver>> create(const DriverCall& call);
  // Bytes of the factors and inverses that create() would make.
  static Result<int64_t> planned_bytes(const Network& network, const TrainStepOptions& options,
                                       const std::vector<Trained>& trained, const Ops& ops);

  // The factors of a batch and their averages.
  Status record_batch(Trace& trace, const TrainStepOptions& options,
                      const std::vector<Trained>& trained, const StepTensors& t,
                      const Tensor& dy) const override;
  Result<std::vector<Tensor>> record_directions(TraceBuilder& s,
                                                const std::vector<Trained>& trained,
                                                const StepTensors& t) const override;

  // How much of the averages stays.
  Status begin_batch(int64_t batches, const Ops& ops) const override;
  // New inverses, where they are due. Factors that are not positive definite leave the old ones.
  Status begin_update(int64_t updates, const Ops& ops, ThreadPool& pool) const override;

 private:
  struct Side {
    Tensor factor, inverse;
  };
  struct Layer {
    Tensor weight;  // when it was found; morph() may have moved it since
    size_t trained = 0;
    int64_t bias = -1;  // into what is trained; -1 if none
    bool is_conv = false;
    ConvShape shape;
    int64_t in_side() const { return weight.cols() + (bias >= 0 ? 1 : 0); }
    Tensor identity;  // packed, [patch, patch]: a convolution with it gives the patches
    Side in, out;
  };
  static Result<std::vector<Layer>> find(const Network& network, const TrainStepOptions& options,
                                         const std::vector<Trained>* trained);
  Status make(Layer& layer, const std::string& path, std::vector<Buffer>& memory,
              std::vector<StateTensor>& state);
  Status add_conv(TraceBuilder& s, const Layer& layer, const Differentiator::Product& use,
                  const Tensor& a, const Tensor& g) const;
  Result<Tensor> joined(TraceBuilder& s, const Layer& layer, const Differentiator::Product& use,
                        const Tensor& a) const;
  Status record_layer(TraceBuilder& s, const Layer& layer,
                      const std::vector<Differentiator::Product>& uses, double predictions,
                      const Tensor& finite) const;

  float damping_ = 0, trust_ = 0;
  int64_t every_ = 0;  // updates
  std::vector<Layer> layers_;
  Tensor mix_;  // [4]: hyper of an op that moves averages, the share first
};

// The inverse of a symmetric matrix [n, n] with `shift` on its diagonal, of which the upper half is
// read. `work`: n * n doubles. False: it is not positive definite, and `to` is as it was.
bool invert_shifted(const Tensor& from, double shift, std::vector<double>& work, const Tensor& to);

}  // namespace loom::core
