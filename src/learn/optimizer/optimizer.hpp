// Optimizers. Each is one row in a file of this folder; registry.cpp, which is generated from
// api/options/training.toml, lists the rows. Code elsewhere asks the row, and never which optimizer
// it is. Private to the room, but for the row's plain fields.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "learn/scribe.hpp"
#include "learn/step/step_tensors.hpp"

namespace loom::core {

// The f32 state of a parameter between updates. If unset, it has none.
struct OptimizerState {
  std::optional<Shape> m, v;
};

// A cache for scalars() between updates. Updates may come in any order.
struct ScalarCache {
  int64_t update = 0;
  double product = 1;
};

// The rows of StepTensors::hyper after those of the learning rates. `rates`: those rows before the
// update `updates`, which counts from 0.
struct ExtraRows {
  double rate = 0;
  int64_t updates = 0;
  std::span<const double> factors;  // of the learning rate, per row
  float* rates = nullptr;           // [factors, 4]
  float* extra = nullptr;           // [OptimizerDef::extra_rows(), 4]
};

// An update of one parameter that takes all of its values together, recorded from ops. Nothing
// moves where `scale` is NaN.
class WholeUpdate {
 public:
  WholeUpdate(TraceBuilder& builder, const Optimizer& optimizer, const Trained& param,
              const Tensor& values, const Tensor& gradient, const Tensor& factor,
              const StepTensors& step)
      : s(builder),
        constants(optimizer),
        t(step),
        p(values),
        g(gradient),
        scale(factor),
        m(param.m),
        v(param.v),
        group(param.group) {}
  Status begin();  // records `finite`

  // g times its scale, in the shape of p.
  Result<Tensor> scaled_gradient();
  // to -= rate[0] (by + decay to), nothing where `factor` is NaN.
  Status move(const Tensor& to, const Tensor& by, const Tensor& rate, const Tensor& factor,
              float decay = 0.0f);
  // average += rate[0] (value - average)
  Status follow(const Tensor& average, const Tensor& value, const Tensor& rate);
  // m = beta1 m + (1 - beta1) gradient
  Status average(const Tensor& gradient);
  // The root of the mean of squares, [1, 1].
  Result<Tensor> rms(const Tensor& x);
  // hyper of the learning rate of this parameter.
  Tensor rate() const { return hyper_of(t.hyper, group); }

  TraceBuilder& s;
  const Optimizer& constants;  // resolved()
  const StepTensors& t;
  Tensor p, g, scale;  // values, gradient, what that is multiplied by
  Tensor m, v;
  int64_t group;
  Tensor finite;  // 1, or NaN where the step is dropped
};

struct DriverOutcome {
  bool updated = false;  // false: something was not finite; nothing changed
  double norm = 0;       // of the gradients
};

// The arguments of a driver. The step owns memory and state; all else outlives the driver.
struct DriverCall {
  const Network& network;
  const TrainStepOptions& options;
  const std::vector<Trained>& trained;
  const Ops& ops;
  ThreadPool& pool;
  std::vector<Buffer>& memory;
  std::vector<StateTensor>& state;
};

// The work of an optimizer besides the recorded update of each parameter.
class OptimizerDriver {
 public:
  virtual ~OptimizerDriver() = default;
  // Before batch `batches` of the run, from 0.
  virtual Status begin_batch(int64_t /*batches*/, const Ops& /*ops*/) const { return {}; }
  // Records what it takes of a batch whose gradients are added up. dy: of the prediction.
  virtual Status record_batch(Trace& /*trace*/, const TrainStepOptions& /*options*/,
                              const std::vector<Trained>& /*trained*/, const StepTensors& /*t*/,
                              const Tensor& /*dy*/) const {
    return {};
  }
  // Directions for the gradients of `trained`, by index; empty: the gradient, by the op.
  virtual Result<std::vector<Tensor>> record_directions(TraceBuilder& /*s*/,
                                                        const std::vector<Trained>& trained,
                                                        const StepTensors& /*t*/) const {
    return std::vector<Tensor>(trained.size());
  }
  // Before the recorded update `updates`, from 0.
  virtual Status begin_update(int64_t /*updates*/, const Ops& /*ops*/, ThreadPool& /*pool*/) const {
    return {};
  }
  // Makes its own programs, whenever the step has made its: t is of the step.
  virtual Status make_programs(const StepTensors& /*t*/, const FeedbackMemory& /*feedback*/) {
    return {};
  }
  // Before a step that begins an update: t has its batch.
  virtual Status before_step(const StepTensors& /*t*/, int64_t /*updates*/) { return {}; }
  // Does update() take the place of the recorded updates? It moves the masters and makes the
  // gradients 0. first: no update came before.
  virtual bool updates_alone() const { return false; }
  virtual Result<DriverOutcome> update(double /*rate*/, bool /*first*/) { return DriverOutcome{}; }
  // Its own memory on a device.
  virtual void add_ranges(std::vector<MemoryRange>& /*ranges*/) const {}
  virtual int64_t arena_bytes() const { return 0; }
  virtual int64_t state_bytes() const { return 0; }
};

// A constant that checkpoints have besides beta1, beta2, eps and decay.
struct SavedConstant {
  const char* key;
  std::optional<float> Optimizer::*real = nullptr;
  std::optional<int64_t> Optimizer::*count = nullptr;
  int64_t fixed = 0;  // if it is not an option
};

struct OptimizerDef {
  // The op that updates a parameter value by value; `state` of those without a function.
  UpdateKind update;
  Optimizer usual = {};  // constants that differ from the others'
  OptimizerState (*state)(const Shape& shape) = nullptr;
  // Records the update of a parameter in place of the op; of matrices alone.
  Status (*step)(WholeUpdate& update) = nullptr;
  bool steps_matrices_alone = false;
  // Writes hyper[1] to hyper[3] (OptimizeArgs) of update t, from 1. The default is 1, 1, 0.
  void (*scalars)(const Optimizer& constants, int64_t t, float* hyper,
                  ScalarCache& cache) = nullptr;
  int64_t (*extra_rows)(int64_t rates) = nullptr;
  void (*fill_extra)(const ExtraRows& rows) = nullptr;
  Result<std::unique_ptr<OptimizerDriver>> (*driver)(const DriverCall& call) = nullptr;
  // Bytes that `driver` would take.
  Result<int64_t> (*driver_bytes)(const Network& network, const TrainStepOptions& options,
                                  const std::vector<Trained>& trained, const Ops& ops) = nullptr;
  bool gathers = false;        // the update is a recording of its own, after the gradients
  bool all_samples = false;    // an update takes all samples, the same ones each time
  bool targets_drawn = false;  // needs a loss whose targets can be drawn
  // Settings that it does not work with. Errors name the optimizer and what to do.
  Status (*check)(const TrainStepOptions& options) = nullptr;
  std::span<const SavedConstant> saved = {};
};

const OptimizerDef& optimizer_def(loom::OptimizerKind kind);  // registry.cpp
void fill_unset(Optimizer& to, const Optimizer& from);        // registry.cpp
// With every constant that it leaves to its kind.
Optimizer resolved(const Optimizer& optimizer);

// Is a parameter of that shape updated by OptimizerDef::step?
bool steps_whole(const OptimizerDef& def, const Shape& shape);
OptimizerState state_of(const OptimizerDef& def, const Shape& shape);

// An OptimizerDef::scalars: 1 - beta1^t, 1 - beta2^t, 0.
void bias_corrections(const Optimizer& constants, int64_t t, float* hyper, ScalarCache& cache);
// 1 - beta^t
double bias_correction(float beta, int64_t t);
// base^exponent, base above 0.
double positive_power(double base, double exponent);

}  // namespace loom::core
