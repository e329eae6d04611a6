#include "learn/step/step_builder.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "learn/loss/loss.hpp"
#include "learn/loss/predictions.hpp"
#include "learn/optimizer/optimizer.hpp"
#include "learn/rules/forward_forward.hpp"
#include "learn/rules/rule.hpp"
#include "learn/rules/signals.hpp"
#include "learn/scribe.hpp"

namespace loom::core {

namespace {

// min(1, limit / (norm + 1e-6)), of the sum of squares; the norm goes to `norm`.
Result<Tensor> clip_scale(TraceBuilder& s, const Tensor& squares, float limit, const Tensor& norm) {
  LOOM_TRY(s.ops().unary({squares, norm, UnaryKind::sqrt}));
  LOOM_ASSIGN(const Tensor tiny, s.number(1e-6f));
  LOOM_ASSIGN(const Tensor above, s.binary(norm, tiny, BinaryKind::add));
  LOOM_ASSIGN(const Tensor most, s.number(limit));
  LOOM_ASSIGN(const Tensor ratio, s.binary(most, above, BinaryKind::div));
  LOOM_ASSIGN(const Tensor one, s.number(1.0f));
  return s.binary(ratio, one, BinaryKind::min);
}

class Updater {
 public:
  Updater(Trace& trace, const TrainStepOptions& options, StepTensors& t, bool together)
      : builder_(trace),
        options_(options),
        constants_(resolved(options.optimizer)),
        def_(optimizer_def(options.optimizer.kind)),
        t_(t),
        together_(together) {}

  bool needs_all() const { return options_.clip.kind == Clip::norm; }

  // From here on `scale` is what gradients are multiplied by: NaN where `loss` is not finite.
  Status begin(const Tensor& loss) {
    const bool last = together_ && !needs_all();
    scale_ = last ? cell(t_.report, 1) : builder_.fresh(Shape{1, 1});
    LOOM_TRY(builder_.guard(t_.numbers, loss, scale_));
    if (!together_ || loss.data == cell(t_.report, 2).data) return {};
    return builder_.ops().unary({loss, cell(t_.report, 2)});
  }

  // Clips by the norm of all gradients together.
  Status clip_all(const std::vector<Tensor>& gradients) {
    const auto n = static_cast<int64_t>(gradients.size());
    const Tensor squares = builder_.fresh(Shape{1, n});
    for (int64_t i = 0; i < n; ++i) {
      LOOM_TRY(builder_.sum_of_squares(gradients[static_cast<size_t>(i)], cell(squares, i)));
    }
    const Tensor all = builder_.fresh(Shape{1, 1}), norm = builder_.fresh(Shape{1, 1});
    LOOM_TRY(builder_.ops().reduce({squares, all, ReduceKind::sum}));
    LOOM_ASSIGN(const Tensor clip, clip_scale(builder_, all, options_.clip.limit, norm));
    const Tensor finite = builder_.fresh(Shape{1, 1});
    LOOM_TRY(builder_.guard(t_.numbers, norm, finite));
    LOOM_ASSIGN(const Tensor both, builder_.binary(scale_, finite, BinaryKind::mul));
    LOOM_ASSIGN(scale_, builder_.binary(both, clip, BinaryKind::mul));
    LOOM_TRY(builder_.ops().unary({norm, cell(t_.report, 0)}));
    return together_ ? report() : Status{};
  }

  // rows: of a sparse gradient (Differentiator::rows); empty: all.
  // direction: of a driver, to be followed as it is.
  Status update(const Trained& p, const Tensor& gradient, const Tensor& rows = {},
                bool direction = false) {
    LOOM_ASSIGN(Tensor g, clipped(gradient));
    LOOM_ASSIGN(Tensor scale, layer_scale(gradient));
    const bool weighed = p.param < t_.factors.size() && !t_.factors[p.param].empty();
    if (weighed) {
      LOOM_ASSIGN(scale, builder_.binary(scale, t_.factors[p.param], BinaryKind::mul));
    }
    if (options_.noise.std > 0) LOOM_TRY(add_noise(p, g, scale));
    OptimizeArgs o;
    o.p = p.master;
    if (p.master.empty()) {
      o.p = builder_.fresh(p.weight.shape);
      LOOM_TRY(builder_.ops().convert({p.weight, o.p, rows}));
    }
    if (steps_whole(def_, p.weight.shape)) {
      if (!rows.empty()) {
        LOOM_ASSIGN(g, all_rows(g, rows, p.weight.shape));
        if (p.master.empty()) LOOM_TRY(builder_.ops().convert({p.weight, o.p}));
      }
      WholeUpdate parameter(builder_, constants_, p, o.p, g, scale, t_);
      LOOM_TRY(parameter.begin());
      LOOM_TRY(def_.step(parameter));
      return pack(p, o);
    }
    o.g = g;
    o.m = p.m;
    o.v = p.v;
    o.hyper = hyper_of(t_.hyper, p.group);
    o.scale = scale;
    o.kind = direction ? UpdateKind::momentum : def_.update;
    if (direction) o.v = {};
    o.beta1 = *constants_.beta1;
    o.beta2 = *constants_.beta2;
    o.eps = *constants_.eps;
    o.decay = *constants_.weight_decay;
    o.rows = rows;
    waiting_.push_back({&p, o});
    waiting_bytes_ += plain_bytes(DType::f32, g.shape);
    return together_ && waiting_bytes_ < kTogether ? Status{} : apply();
  }

  Status finish() {
    LOOM_TRY(apply());
    return together_ ? Status{} : report();
  }
  // The factor of all gradients; NaN if the step is dropped.
  const Tensor& scale() const { return scale_; }
  Recorder& ops() { return builder_.ops(); }

 private:
  Result<Tensor> clipped(const Tensor& g) {
    if (options_.clip.kind != Clip::value) return g;
    LOOM_ASSIGN(const Tensor high, builder_.number(options_.clip.limit));
    LOOM_ASSIGN(const Tensor low, builder_.number(-options_.clip.limit));
    LOOM_ASSIGN(const Tensor below, builder_.binary(g, high, BinaryKind::min));
    return builder_.binary(below, low, BinaryKind::max);
  }

  Result<Tensor> layer_scale(const Tensor& g) {
    if (options_.clip.kind != Clip::layer) return scale_;
    const Tensor squares = builder_.fresh(Shape{1, 1}), norm = builder_.fresh(Shape{1, 1});
    LOOM_TRY(builder_.sum_of_squares(g, squares));
    LOOM_ASSIGN(const Tensor clip, clip_scale(builder_, squares, options_.clip.limit, norm));
    return builder_.binary(scale_, clip, BinaryKind::mul);
  }

  // A sparse gradient with the rows that are 0.
  Result<Tensor> all_rows(const Tensor& g, const Tensor& rows, const Shape& shape) {
    const Tensor whole = builder_.fresh(shape);
    LOOM_TRY(builder_.ops().fill({whole, 0.0f}));
    LOOM_TRY(builder_.ops().scatter_add_rows({g, rows, whole, -1}));
    return whole;
  }

  // g becomes g scale + noise, scale what is left of it: 1, or NaN where the step is dropped.
  Status add_noise(const Trained& p, Tensor& g, Tensor& scale) {
    constexpr uint64_t kNoiseStream = uint64_t{1} << 50;  // not those of layers and of rounding
    RandomArgs random;
    random.y = builder_.fresh(g.shape);
    random.step = t_.network.step;
    random.seed = options_.seed;
    random.stream = kNoiseStream + p.stream;
    random.kind = RandomKind::normal;
    LOOM_TRY(builder_.ops().random(random));
    LOOM_ASSIGN(const Tensor scaled, builder_.binary(g, scale, BinaryKind::mul));
    LOOM_ASSIGN(const Tensor noise,
                builder_.binary(random.y, cell(t_.numbers, 2), BinaryKind::mul));
    LOOM_ASSIGN(g, builder_.binary(scaled, noise, BinaryKind::add));
    const Tensor finite = builder_.fresh(Shape{1, 1});
    LOOM_TRY(builder_.guard(t_.numbers, scale, finite));
    scale = finite;
    return {};
  }

  // The deferred commands in order: first the updates, then the packing.
  Status apply() {
    for (const Waiting& w : waiting_) LOOM_TRY(builder_.ops().optimize(w.args));
    for (const Waiting& w : waiting_) LOOM_TRY(pack(*w.p, w.args));
    waiting_.clear();
    waiting_bytes_ = 0;
    return {};
  }

  Status pack(const Trained& p, const OptimizeArgs& o) {
    if (p.weight.layout != Layout::r16) return {};
    PackArgs pack = pack_of(p, o.p, options_);
    if (r16_packs_rows(p.weight.dtype)) pack.rows = o.rows;
    if (p.master.empty()) {
      pack.stochastic = true;
      pack.seed = options_.seed;
      pack.stream = p.stream;
      pack.step = t_.network.step;
    }
    return builder_.ops().pack(pack);
  }

  Status report() { return builder_.ops().unary({scale_, cell(t_.report, 1)}); }

  struct Waiting {
    const Trained* p;
    OptimizeArgs args;
  };
  // Bytes of gradients that are kept for it.
  static constexpr int64_t kTogether = int64_t{64} << 20;

  TraceBuilder builder_;
  const TrainStepOptions& options_;
  Optimizer constants_;
  const OptimizerDef& def_;
  StepTensors& t_;
  bool together_;
  Tensor scale_;
  std::vector<Waiting> waiting_;
  int64_t waiting_bytes_ = 0;
};

Result<std::vector<int64_t>> head_widths(const LossSpec& loss, const Tensor& y) {
  if (loss.heads.empty()) return std::vector<int64_t>{y.cols()};
  int64_t sum = 0;
  for (int64_t width : loss.heads) sum += width;
  if (sum == y.cols()) return loss.heads;
  return invalid(
      cat("the heads of the loss have ", sum, " values together, a prediction has ", y.cols()));
}

// On a device the gradient of a small loss is a command of its own: what comes next waits for that
// alone, and it is value by value, so that a kernel can make it with what it makes.
Status record_parts(TraceBuilder& s, LossArgs loss, bool together) {
  using enum LossKind;
  constexpr int64_t kSmall = 2048;
  const bool by_value =
      loss.kind == mse || loss.kind == mae || loss.kind == huber || loss.kind == bce;
  if (together && by_value && !loss.dpred.empty() && loss.pred.shape.count() <= kSmall) {
    LossArgs gradient = loss;
    gradient.row_loss = Tensor{};
    LOOM_TRY(s.ops().loss(gradient));
    loss.dpred = Tensor{};
  }
  return s.ops().loss(loss);
}

// From `total` to t.loss, by way of the losses that layers add.
Status add_losses(TraceBuilder& s, StepTensors& t, Tensor total) {
  for (size_t i = 0; i < t.network.losses.size(); ++i) {
    const AddedLoss& added = t.network.losses[i];
    LOOM_ASSIGN(const Tensor weight, s.number(added.weight));
    LOOM_ASSIGN(const Tensor part, s.binary(added.value, weight, BinaryKind::mul));
    const bool last = i + 1 == t.network.losses.size();
    const Tensor sum = last ? t.loss : s.fresh(Shape{1, 1});
    LOOM_TRY(s.ops().binary({total, part, sum, BinaryKind::add}));
    total = sum;
  }
  return {};
}

// Records the place where the caller gives the loss and dy.
Status record_with_gradient(Trace& trace, TraceBuilder& s, StepTensors& t, const Tensor& dy,
                            bool together) {
  t.custom_gradient = dy;
  t.custom_loss = s.fresh(Shape{1, 1});
  const bool alone = t.network.losses.empty();
  t.loss = alone ? t.custom_loss : together ? cell(t.report, 2) : s.fresh(Shape{1, 1});
  trace.note(t.network.y, kGivenNote);
  return add_losses(s, t, t.custom_loss);
}

// t.loss: the sum over `rows`, which has the losses of all rows, and over added losses.
Status record_total(TraceBuilder& s, StepTensors& t, const Tensor& rows, bool together) {
  t.loss = together ? cell(t.report, 2) : s.fresh(Shape{1, 1});
  const Tensor total = t.network.losses.empty() ? t.loss : s.fresh(Shape{1, 1});
  LOOM_TRY(s.ops().reduce({as_matrix(rows, 1, rows.shape.count()), total, ReduceKind::sum}));
  return add_losses(s, t, total);
}

// Records the op of the loss; the gradient of y goes to dy unless that is empty.
Status record_loss(Trace& trace, TraceBuilder& s, const TrainStepOptions& options, StepTensors& t,
                   const Tensor& dy, bool together) {
  const Tensor y = as_matrix(t.network.y, t.network.y.rows(), t.network.y.cols());
  const LossDef& def = loss_def(options.loss.kind);
  LOOM_ASSIGN(const std::vector<int64_t> widths, head_widths(options.loss, y));
  if (widths.size() > 1 && !options.loss.has_classes()) {
    return invalid("several heads are for softmax_ce");
  }
  const auto heads = static_cast<int64_t>(widths.size());
  const Tensor rows = s.fresh(Shape{heads, y.rows()});
  if (dy.empty()) t.row_losses = rows;
  t.weight = s.fresh(Shape{y.rows()});
  int64_t first = 0;
  for (int64_t h = 0; h < heads; ++h) {
    const int64_t width = widths[static_cast<size_t>(h)];
    const Tensor target = options.class_ids ? trace.fresh(Shape{y.rows()}, DType::i32)
                                            : s.fresh(Shape{y.rows(), width});
    t.targets.push_back(target);
    LossArgs loss;
    loss.pred = slice_cols(y, first, width);
    loss.target = target;
    loss.weight = t.weight;
    loss.row_loss = rows.slice_rows(h, 1);
    loss.row_loss.shape = Shape{y.rows()};
    loss.row_loss.row_stride = y.rows();
    if (!dy.empty()) loss.dpred = slice_cols(dy, first, width);
    loss.kind = def.op;
    loss.delta = options.loss.*def.parameter;
    loss.smoothing = options.loss.smoothing;
    loss.alpha = options.loss.alpha;
    LOOM_TRY(record_parts(s, loss, together));
    first += width;
  }
  return record_total(s, t, rows, together);
}

// The same of a loss that is recorded from other ops (LossDef::record). training: its rows are not
// read.
Result<LossSeed> record_ops(TraceBuilder& s, const TrainStepOptions& options, StepTensors& t,
                            bool together, bool training) {
  const Tensor y = as_matrix(t.network.y, t.network.y.rows(), t.network.y.cols());
  const Tensor rows = s.fresh(Shape{y.rows()});
  if (!training) t.row_losses = as_matrix(rows, 1, y.rows());
  t.weight = s.fresh(Shape{y.rows()});
  t.targets.push_back(s.fresh(options.loss.pairs() ? Shape{y.rows(), y.rows()} : y.shape));
  LOOM_ASSIGN(
      const LossSeed seed,
      loss_def(options.loss.kind).record(s, options.loss, {y, t.targets[0], t.weight, rows}));
  LOOM_TRY(record_total(s, t, rows, together));
  return seed;
}

// Ends of the segments of gradient checkpointing; the last group is in use when the backward pass
// begins, and is not repeated.
std::vector<int64_t> segments(const TracedNetwork& network, int64_t cells) {
  std::vector<int64_t> ends;
  if (cells < 1) return ends;
  const auto n = static_cast<int64_t>(network.starts.size());
  for (int64_t i = cells; i < n; i += cells) {
    ends.push_back(network.starts[static_cast<size_t>(i)]);
  }
  return ends;
}

}  // namespace

Result<FeedbackMemory> carried_feedback(const Network& network, bool carry, const Ops& ops) {
  if (!carry) return FeedbackMemory();
  std::vector<Shape> outputs;
  for (const GridNode& cell : network.cells()) outputs.push_back(cell.out);
  return FeedbackMemory::create(network, outputs, ops);
}

// The update is that of sgd by the gradient buffer - value. Like the updates of parameters, it is
// skipped if `finite` is NaN.
Status record_kept(Trace& trace, const TracedNetwork& network, const Tensor& finite) {
  TraceBuilder s(trace);
  for (const BufferUpdate& kept : network.kept) {
    OptimizeArgs o;
    o.p = kept.buffer;
    o.g = s.fresh(kept.buffer.shape);
    o.scale = finite;
    o.hyper = s.fresh(Shape{4});
    LOOM_TRY(s.ops().fill({o.hyper, kept.rate}));
    if (!kept.gate.empty()) {
      const Tensor rate = o.hyper;
      o.hyper = s.fresh(Shape{4});
      LOOM_TRY(s.ops().binary({rate, kept.gate, o.hyper, BinaryKind::mul}));
    }
    LOOM_TRY(s.ops().binary({kept.buffer, kept.value, o.g, BinaryKind::sub}));
    LOOM_TRY(s.ops().optimize(o));
  }
  return {};
}

namespace {

// The loss, and the tensor that the backward pass begins with. Ops recorded before forward_done()
// have a gradient.
template <class Done>
Result<LossSeed> record_seed(Trace& trace, TraceBuilder& s, const TrainStepOptions& options,
                             StepTensors& t, bool together, Done forward_done) {
  if (loss_def(options.loss.kind).record != nullptr && !options.custom_loss) {
    LOOM_ASSIGN(const LossSeed seed, record_ops(s, options, t, together, true));
    forward_done();
    return seed;
  }
  forward_done();
  const LossSeed seed{t.network.y, s.fresh(Shape{t.network.y.rows(), t.network.y.cols()})};
  const bool given = options.custom_loss || options.loss.sequence();
  LOOM_TRY(given ? record_with_gradient(trace, s, t, seed.gradient, together)
                 : record_loss(trace, s, options, t, seed.gradient, together));
  return seed;
}

// Gradients of all parameters, and their updates unless they are gathered first. Returns what is
// NaN where the step is dropped.
Result<Tensor> record_learning(Trace& trace, const Network& network,
                               const TrainStepOptions& options, const std::vector<Trained>& trained,
                               StepTensors& t, bool together) {
  TraceBuilder s(trace);
  // Tensors after it have no gradients, except for the passes that a rule adds.
  std::optional<Differentiator> late;
  const auto record_contrast = rule_def(options.rule.kind).contrast;
  const bool contrasts = record_contrast != nullptr;
  LOOM_ASSIGN(const LossSeed seed, record_seed(trace, s, options, t, together, [&] {
                if (!contrasts) late.emplace(trace);
              }));
  const Tensor& dy = seed.gradient;
  Contrast contrast;
  if (contrasts) {
    LOOM_ASSIGN(contrast, record_contrast(trace, network, options, t, dy));
    late.emplace(trace);
  }
  Differentiator& d = *late;
  d.checkpoint(segments(t.network, options.checkpoint_cells));
  const bool alone = !options.gathers();
  for (const Trained& p : trained) {
    if (!p.frozen) d.want(p.weight, p.gradient, !alone);
  }
  if (options.observed) {
    // A layer that only looks at its input in another shape gives the same memory: asked for once.
    for (size_t i = 0; i < t.network.outputs.size(); ++i) {
      const auto earlier = t.network.outputs.begin() + static_cast<int64_t>(i);
      const bool same = std::any_of(t.network.outputs.begin(), earlier,
                                    [&](const Tensor& y) { return y.data == earlier->data; });
      if (!same) d.want(*earlier);
    }
  }
  // Adds the gradients of outputs as notes after those of the outputs, last layer first. True if
  // `of` is one.
  const auto noted = [&](const Tensor& of) {
    bool found = false;
    for (size_t i = t.network.outputs.size(); options.observed && i-- > 0;) {
      const Tensor& y = t.network.outputs[i];
      if (trace.find(of.data) < 0 || trace.find(y.data) != trace.find(of.data)) continue;
      const Tensor gradient = d.gradient(y);
      const auto id = static_cast<int64_t>(t.network.outputs.size() + i);
      if (!gradient.empty()) trace.note(gradient, id);
      found = true;
    }
    return found;
  };
  d.seed(seed.value, dy);
  for (const AddedLoss& added : t.network.losses) {
    LOOM_ASSIGN(const Tensor weight, s.number(added.weight));
    d.seed(added.value, weight);
  }
  LOOM_TRY(contrasts ? contrast.hand_to(d, t) : record_signals(trace, network, options, t, dy, d));
  d.on_done([&](const Tensor& of, const Tensor&) -> Status {
    noted(of);
    return {};
  });
  if (!alone) {
    LOOM_TRY(d.run());
    if (t.driver != nullptr) LOOM_TRY(t.driver->record_batch(trace, options, trained, t, dy));
    return t.loss;
  }

  Updater updater(trace, options, t, together);
  LOOM_TRY(updater.begin(t.loss));
  if (!updater.needs_all()) {
    size_t which = 0;
    d.on_done([&](const Tensor& weight, const Tensor& gradient) -> Status {
      if (noted(weight)) return {};
      for (which = 0; which < trained.size(); ++which) {
        if (trained[which].weight.data == weight.data) break;
      }
      if (gradient.empty()) return {};
      return updater.update(trained[which], gradient, d.rows(weight));
    });
    LOOM_TRY(d.run());
    LOOM_TRY(updater.finish());
    return updater.scale();
  }
  LOOM_TRY(d.run());
  std::vector<Tensor> gradients;
  std::vector<const Trained*> owners;
  for (const Trained& p : trained) {
    const Tensor g = p.frozen ? Tensor{} : d.gradient(p.weight);
    if (g.empty()) continue;
    gradients.push_back(g);
    owners.push_back(&p);
  }
  LOOM_TRY(updater.clip_all(gradients));
  for (size_t i = 0; i < gradients.size(); ++i) {
    LOOM_TRY(updater.update(*owners[i], gradients[i], d.rows(owners[i]->weight)));
  }
  LOOM_TRY(updater.finish());
  return updater.scale();
}

}  // namespace

Status record_step(Trace& trace, const Network& network, const TrainStepOptions& options,
                   const std::vector<Trained>& trained, const std::vector<Tensor>* feedback,
                   StepTensors& t, bool together) {
  TraceOptions o = traced_as_in_steps(options);
  o.noted = options.observed;
  o.feedback = feedback;
  if (options.forward) {
    LOOM_ASSIGN(t.network, options.forward(trace, o));
  } else {
    LOOM_ASSIGN(t.network, trace_network(network, trace, o));
  }
  t.network.y = predictions_of(t.network.y);
  LOOM_ASSIGN(const Tensor scale, record_learning(trace, network, options, trained, t, together));
  if (!t.network.kept.empty()) {
    TraceBuilder s(trace);
    const Tensor finite = s.fresh(Shape{1, 1});
    LOOM_TRY(s.guard(t.numbers, scale, finite));
    LOOM_TRY(record_kept(trace, t.network, finite));
  }
  Recorder last(trace);
  if (options.finish) LOOM_TRY(options.finish(t.network, last));
  return feedback != nullptr ? record_feedback(t.network, *feedback, last) : Status{};
}

Status record_evaluation(Trace& trace, const Network& network, const TrainStepOptions& options,
                         const std::vector<Tensor>* feedback, StepTensors& t) {
  TraceOptions o = traced_as_in_steps(options);
  o.training = o.partial = false;
  o.feedback = feedback;
  LOOM_ASSIGN(t.network, trace_network(network, trace, o));
  t.network.y = predictions_of(t.network.y);
  TraceBuilder s(trace);
  const LossDef& def = loss_def(options.loss.kind);
  const bool from_ops = def.record != nullptr;
  if (def.form == LossForm::rows && from_ops) LOOM_TRY(record_ops(s, options, t, false, false));
  if (def.form == LossForm::rows && !from_ops)
    LOOM_TRY(record_loss(trace, s, options, t, {}, false));
  return feedback != nullptr ? record_feedback(t.network, *feedback, s.ops()) : Status{};
}

Status record_update(Trace& trace, const TrainStepOptions& options,
                     const std::vector<Trained>& trained, StepTensors& t, bool together) {
  Updater updater(trace, options, t, together);
  std::vector<Tensor> gradients;
  for (const Trained& p : trained) {
    if (!p.frozen) gradients.push_back(p.gradient);
  }
  LOOM_TRY(updater.begin(t.loss));
  if (updater.needs_all()) LOOM_TRY(updater.clip_all(gradients));
  std::vector<Tensor> directions(trained.size());
  if (t.driver != nullptr) {
    TraceBuilder s(trace);
    LOOM_ASSIGN(directions, t.driver->record_directions(s, trained, t));
  }
  for (size_t i = 0; i < trained.size(); ++i) {
    const Trained& p = trained[i];
    if (p.frozen) continue;
    const bool given = !directions[i].empty();
    LOOM_TRY(updater.update(p, given ? directions[i] : p.gradient, {}, given));
    if (!together) LOOM_TRY(updater.ops().fill({p.gradient, 0.0f}));
  }
  LOOM_TRY(updater.finish());
  for (const Trained& p : trained) {
    if (together && !p.frozen) LOOM_TRY(updater.ops().fill({p.gradient, 0.0f}));
  }
  return {};
}

PackArgs pack_of(const Trained& p, const Tensor& values, const TrainStepOptions& options) {
  PackArgs pack{values, p.weight};
  pack.ranges = p.ranges;
  pack.band = static_cast<float>(options.scale_band);
  return pack;
}

Status record_pack(Trace& trace, const TrainStepOptions& options,
                   const std::vector<Trained>& trained) {
  Recorder recorder(trace);
  for (const Trained& p : trained) {
    if (p.weight.layout == Layout::r16 && !p.master.empty()) {
      LOOM_TRY(recorder.pack(pack_of(p, p.master, options)));
    }
  }
  return {};
}

}  // namespace loom::core
