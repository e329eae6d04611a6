// Averages of the weights during training, and the slow weights of lookahead. Both are the update
// of sgd by the gradient follower - live, as for buffers.
#include <cmath>
#include <cstring>

#include "base/text.hpp"
#include "learn/scribe.hpp"
#include "learn/step/train_step_impl.hpp"
#include "ops/recording/program.hpp"

namespace loom::core {
namespace {

std::span<std::byte> plain_memory(const Tensor& t) {
  return {t.data, static_cast<size_t>(plain_bytes(t.dtype, t.shape))};
}

bool in_unit(double value) {
  return value > 0 && value < 1;
}

}  // namespace

Status check_step_options(const TrainStepOptions& o) {
  const AverageSpec& a = o.average;
  if (a.decay != 0 && !in_unit(a.decay))
    return invalid(cat("the decay of ema is ", a.decay, ", must be above 0 and below 1"));
  if (a.from < 0) return invalid(cat("swa begins in epoch ", a.from, ", must be at least 1"));
  if (a.decay > 0 && a.from > 0)
    return invalid("ema and swa are two averages of the same weights; give one of them");
  if (o.lookahead.every < 0)
    return invalid(cat("lookahead every ", o.lookahead.every, " updates, must be at least 1"));
  if (o.lookahead.every > 0 && !(o.lookahead.share > 0 && o.lookahead.share <= 1))
    return invalid(
        cat("the share of lookahead is ", o.lookahead.share, ", must be above 0 and at most 1"));
  if (!(o.noise.std >= 0) || !std::isfinite(o.noise.std) || !(o.noise.fade >= 0))
    return invalid(cat("gradient noise ", o.noise.std, ",", o.noise.fade, ", must be 0 or more"));
  if (o.native && (a.any() || o.lookahead.every > 0))
    return invalid("native training has no float32 masters to average; leave native out");
  const auto check = optimizer_def(o.optimizer.kind).check;
  if (check == nullptr) return {};
  TrainStepOptions own = o;
  own.optimizer = resolved(o.optimizer);
  return check(own);
}

// back: what is followed becomes the follower, once that has moved.
Status TrainStep::Impl::make_averages(bool back, const std::vector<WeightAverage::Pair>& live,
                                      WeightAverage& out) {
  const std::string suffix = back ? "slow" : "average";
  LOOM_ASSIGN(out.share, persistent(Shape{4}));
  LOOM_ASSIGN(out.count, persistent(Shape{1}));
  state.push_back({suffix + "/count", out.count});
  for (WeightAverage::Pair pair : live) {
    LOOM_ASSIGN(pair.follower, persistent(pair.live.shape));
    state.push_back({cat(pair.name, "/", suffix), pair.follower});
    out.pairs.push_back(std::move(pair));
  }
  return {};
}

Status TrainStep::Impl::make_following() {
  std::vector<WeightAverage::Pair> weights;
  for (const Trained& one : trained) {
    if (!one.frozen) weights.push_back({network->params()[one.param].path, one.master, {}});
  }
  if (options.lookahead.every > 0) LOOM_TRY(make_averages(true, weights, slow));
  if (options.average.any()) {
    for (const Param& p : network->params()) {
      if (!p.spec.trained) weights.push_back({p.path, p.tensor, {}});
    }
    LOOM_TRY(make_averages(false, weights, average));
  }
  return restart_following();
}

// As before the first update. The weights of a file may have come since the last time.
Status TrainStep::Impl::restart_following() {
  for (WeightAverage* f : {&slow, &average}) {
    if (f->pairs.empty()) continue;
    f->count.f32()[0] = 0.0f;
    for (const WeightAverage::Pair& pair : f->pairs)
      std::memcpy(pair.follower.data, pair.live.data, plain_memory(pair.live).size());
  }
  return {};
}

Status TrainStep::Impl::follow(WeightAverage& f, double share) {
  if (f.program == nullptr) {
    Trace trace(DType::f32);
    TraceBuilder s(trace);
    for (const WeightAverage::Pair& pair : f.pairs) {
      OptimizeArgs o;
      o.p = pair.follower;
      LOOM_ASSIGN(o.g, s.binary(pair.follower, pair.live, BinaryKind::sub));
      o.hyper = f.share;
      LOOM_TRY(s.ops().optimize(o));
      if (&f == &slow) LOOM_TRY(s.ops().unary({pair.follower, pair.live}));
    }
    LOOM_ASSIGN(Program program, Program::compile(std::move(trace), {}, *ops, *pool));
    f.program = std::make_unique<Program>(std::move(program));
  }
  f.share.f32()[0] = static_cast<float>(share);
  LOOM_TRY(to_device(*ops, f.share));
  // On the host as on the device: counts to 2^24, of which only the first matter.
  f.count.f32()[0] = std::min(f.count.f32()[0] + 1.0f, 16777216.0f);
  LOOM_TRY(to_device(*ops, f.count));
  return f.program->run();
}

// Behind every update.
Status TrainStep::Impl::follow_update() {
  if (!slow.pairs.empty() && updates % options.lookahead.every == 0) {
    LOOM_TRY(follow(slow, options.lookahead.share));
    LOOM_TRY(pack->run());
  }
  if (average.pairs.empty() || options.average.from > 0) return {};
  return follow(average, average.count.f32()[0] > 0 ? 1.0 - options.average.decay : 1.0);
}

Status TrainStep::average() {
  Impl& s = *impl_;
  if (s.average.pairs.empty()) return {};
  LOOM_TRY(s.take_all());
  LOOM_TRY(show_average(false));
  return s.follow(s.average, 1.0 / (static_cast<double>(s.average.count.f32()[0]) + 1.0));
}

bool TrainStep::has_average() const {
  const WeightAverage& f = impl_->average;
  return !f.pairs.empty() && f.count.f32()[0] > 0;
}

// All that changes when averages take the place of weights: masters, what they are packed in, and
// the ranges that scales are held at.
std::vector<std::span<std::byte>> TrainStep::Impl::shown_memory() {
  std::vector<std::span<std::byte>> all;
  for (const WeightAverage::Pair& pair : average.pairs) all.push_back(plain_memory(pair.live));
  for (const Trained& one : trained) {
    const Param& p = network->params()[one.param];
    if (p.spec.matrix()) all.push_back({p.tensor.data, static_cast<size_t>(p.bytes())});
    if (!one.ranges.empty()) all.push_back(plain_memory(one.ranges));
  }
  return all;
}

Status TrainStep::show_average(bool shown) {
  Impl& s = *impl_;
  if (shown == !s.hidden.empty() || (shown && !has_average())) return {};
  LOOM_TRY(s.take_all());
  LOOM_TRY(fetch());
  const std::vector<std::span<std::byte>> memory = s.shown_memory();
  if (!shown) {
    for (size_t i = 0; i < memory.size(); ++i)
      std::memcpy(memory[i].data(), s.hidden[i].data(), memory[i].size());
    s.hidden.clear();
    return send();
  }
  for (const std::span<std::byte> m : memory) s.hidden.emplace_back(m.begin(), m.end());
  for (const WeightAverage::Pair& pair : s.average.pairs)
    std::memcpy(pair.live.data, pair.follower.data, plain_memory(pair.live).size());
  LOOM_TRY(send());
  return s.pack->run();
}

}  // namespace loom::core
