#include "lab/training_hash.hpp"

#include "base/numbers/dmath.hpp"
#include "grid/init.hpp"
#include "ops/ops.hpp"
#include "train_io/bits_hash.hpp"

namespace loom::core {
namespace {

void add(BitsHash& hash, const Tensor& t) {
  hash.add({t.f32(), static_cast<size_t>(t.shape.count())});
}

Result<std::string> hash_state(TrainStep& step, bool with_prediction) {
  LOOM_TRY(step.fetch());
  BitsHash hash;
  for (const StateTensor& s : step.state()) add(hash, s.tensor);
  if (with_prediction) add(hash, step.y());
  return hash.hex();
}

}  // namespace

void fill_with_sines(TrainStep& step, int64_t vocab) {
  const auto wave = [](const Tensor& t, double offset, double height, double per, double from) {
    for (int64_t i = 0; i < t.shape.count(); ++i) {
      const double value = offset + height * dmath::sin(per * static_cast<double>(i) + from);
      t.f32()[i] = static_cast<float>(value);
    }
  };
  const auto ids = [](const Tensor& t, int64_t by, int64_t count) {
    for (int64_t i = 0; i < t.shape.count(); ++i) t.i32()[i] = static_cast<int32_t>(i * by % count);
  };
  if (step.x().dtype == DType::i32) {
    ids(step.x(), 7, vocab);
  } else {
    wave(step.x(), 0.0, 0.2, 0.11, 0.3);
  }
  for (const Tensor& target : step.targets()) {
    if (target.dtype == DType::i32) {
      ids(target, 5, step.y().cols());
    } else {
      wave(target, 0.5, 0.3, 0.17, 0.0);
    }
  }
  const Tensor& weight = step.weight();
  for (int64_t i = 0; i < weight.shape.count(); ++i) {
    weight.f32()[i] = 1.0f / static_cast<float>(weight.shape.count());
  }
  if (step.mask().empty()) return;
  for (int64_t i = 0; i < step.mask().shape.count(); ++i) step.mask().f32()[i] = 1.0f;
}

Result<TrainingHash> hash_training(const NetworkSpec& spec, int64_t batch,
                                   const TrainingHashOptions& options, const Ops& ops,
                                   ThreadPool& pool) {
  LOOM_ASSIGN(Network network, Network::finalize(spec.grid, spec.input.after(batch)));
  LOOM_TRY(init_params(network, DType::f32, options.seed, pool));
  TrainStepOptions how;
  how.clip = {Clip::norm, 1.0f};
  how.dtype = options.dtype;
  LOOM_ASSIGN(TrainStep step, TrainStep::create(network, how, ops, pool));
  fill_with_sines(step, network.vocab());
  TrainingHash hash;
  for (int i = 0; i < options.steps; ++i) {
    LOOM_TRY(step.run(0.01));
    if (i > 0) continue;
    LOOM_TRY(to_host(ops, {step.y()}));
    BitsHash prediction;
    add(prediction, step.y());
    hash.forward = prediction.hex();
    LOOM_ASSIGN(hash.backward, hash_state(step, false));
  }
  LOOM_TRY(to_host(ops, {step.y()}));
  LOOM_ASSIGN(hash.trained, hash_state(step, true));
  return hash;
}

}  // namespace loom::core
