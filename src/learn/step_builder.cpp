#include "learn/step_builder.hpp"

#include "base/text.hpp"

namespace loom::core {

Tensor cell(const Tensor& row, int64_t i) {
  return slice_cols(row, i, 1);
}

Result<Tensor> persistent(const Shape& shape, std::vector<Buffer>& memory) {
  LOOM_ASSIGN(Buffer buffer, Buffer::allocate(plain_bytes(DType::f32, shape)));
  Tensor t;
  t.shape = shape;
  t.row_stride = shape.last();
  t.data = buffer.data();
  memory.push_back(std::move(buffer));
  return t;
}

namespace {

// Shorthands for small tensors of a trace.
class Scribe {
 public:
  explicit Scribe(Trace& trace) : trace_(trace), ops_(trace) {}
  Recorder& ops() { return ops_; }
  Tensor fresh(const Shape& shape) { return trace_.fresh(shape); }
  Result<Tensor> number(float value) {
    const Tensor t = fresh(Shape{1, 1});
    LOOM_TRY(ops_.fill({t, value}));
    return t;
  }
  Result<Tensor> binary(const Tensor& a, const Tensor& b, BinaryKind kind) {
    const Tensor y = fresh(a.shape);
    LOOM_TRY(ops_.binary({a, b, y, kind}));
    return y;
  }

 private:
  Trace& trace_;
  Recorder ops_;
};

// Sum of squares of a matrix into one number: row by row, then over the rows.
Status sum_of_squares(Scribe& s, const Tensor& g, const Tensor& out) {
  const int64_t rows = g.rows();
  const Tensor sums = s.fresh(Shape{rows});
  LOOM_TRY(s.ops().reduce({g, sums, ReduceKind::sum_squares}));
  return s.ops().reduce({as_matrix(sums, 1, rows), out, ReduceKind::sum});
}

// min(1, limit / (norm + 1e-6)), of the sum of squares; the norm goes to `norm`.
Result<Tensor> clip_scale(Scribe& s, const Tensor& squares, float limit, const Tensor& norm) {
  LOOM_TRY(s.ops().unary({squares, norm, UnaryKind::sqrt}));
  LOOM_ASSIGN(const Tensor tiny, s.number(1e-6f));
  LOOM_ASSIGN(const Tensor above, s.binary(norm, tiny, BinaryKind::add));
  LOOM_ASSIGN(const Tensor most, s.number(limit));
  LOOM_ASSIGN(const Tensor ratio, s.binary(most, above, BinaryKind::div));
  LOOM_ASSIGN(const Tensor one, s.number(1.0f));
  return s.binary(ratio, one, BinaryKind::min);
}

// 1 when `value` is finite, else NaN: 1 + 0 * value, to `out`. numbers: 0 and 1.
Status guard(Scribe& s, const Tensor& numbers, const Tensor& value, const Tensor& out) {
  LOOM_ASSIGN(const Tensor nothing, s.binary(value, cell(numbers, 0), BinaryKind::mul));
  return s.ops().binary({nothing, cell(numbers, 1), out, BinaryKind::add});
}

class Updater {
 public:
  Updater(Trace& trace, const TrainStepOptions& options, StepTensors& t, bool together)
      : scribe_(trace), options_(options), t_(t), together_(together) {}

  bool needs_all() const { return options_.clip.kind == ClipKind::norm; }

  // From here on `scale` is what gradients are multiplied by: NaN where `loss` is not finite.
  Status begin(const Tensor& loss) {
    const bool last = together_ && !needs_all();
    scale_ = last ? cell(t_.report, 1) : scribe_.fresh(Shape{1, 1});
    LOOM_TRY(guard(scribe_, t_.numbers, loss, scale_));
    if (!together_ || loss.data == cell(t_.report, 2).data) return {};
    return scribe_.ops().unary({loss, cell(t_.report, 2)});
  }

  // Clips by the norm of all gradients together.
  Status clip_all(const std::vector<Tensor>& gradients) {
    const auto n = static_cast<int64_t>(gradients.size());
    const Tensor squares = scribe_.fresh(Shape{1, n});
    for (int64_t i = 0; i < n; ++i) {
      LOOM_TRY(sum_of_squares(scribe_, gradients[static_cast<size_t>(i)], cell(squares, i)));
    }
    const Tensor all = scribe_.fresh(Shape{1, 1}), norm = scribe_.fresh(Shape{1, 1});
    LOOM_TRY(scribe_.ops().reduce({squares, all, ReduceKind::sum}));
    LOOM_ASSIGN(const Tensor clip, clip_scale(scribe_, all, options_.clip.limit, norm));
    const Tensor finite = scribe_.fresh(Shape{1, 1});
    LOOM_TRY(guard(scribe_, t_.numbers, norm, finite));
    LOOM_ASSIGN(const Tensor both, scribe_.binary(scale_, finite, BinaryKind::mul));
    LOOM_ASSIGN(scale_, scribe_.binary(both, clip, BinaryKind::mul));
    LOOM_TRY(scribe_.ops().unary({norm, cell(t_.report, 0)}));
    return together_ ? report() : Status{};
  }

  // rows: of a sparse gradient (Differentiator::rows); empty: all.
  Status update(const Trained& p, const Tensor& gradient, const Tensor& rows = {}) {
    LOOM_ASSIGN(const Tensor g, clipped(gradient));
    LOOM_ASSIGN(const Tensor scale, layer_scale(gradient));
    OptimizeArgs o;
    o.p = p.master;
    if (p.master.empty()) {
      o.p = scribe_.fresh(p.weight.shape);
      LOOM_TRY(scribe_.ops().convert({p.weight, o.p, rows}));
    }
    o.g = g;
    o.m = p.m;
    o.v = p.v;
    o.hyper = t_.hyper;
    o.scale = scale;
    o.kind = options_.optimizer.kind;
    o.beta1 = options_.optimizer.beta1;
    o.beta2 = options_.optimizer.beta2;
    o.eps = options_.optimizer.eps;
    o.decay = options_.optimizer.decay;
    o.rows = rows;
    waiting_.push_back({&p, o});
    waiting_bytes_ += plain_bytes(DType::f32, g.shape);
    return together_ && waiting_bytes_ < kTogether ? Status{} : apply();
  }

  Status finish() {
    LOOM_TRY(apply());
    return together_ ? Status{} : report();
  }
  Recorder& ops() { return scribe_.ops(); }

 private:
  Result<Tensor> clipped(const Tensor& g) {
    if (options_.clip.kind != ClipKind::value) return g;
    LOOM_ASSIGN(const Tensor high, scribe_.number(options_.clip.limit));
    LOOM_ASSIGN(const Tensor low, scribe_.number(-options_.clip.limit));
    LOOM_ASSIGN(const Tensor below, scribe_.binary(g, high, BinaryKind::min));
    return scribe_.binary(below, low, BinaryKind::max);
  }

  Result<Tensor> layer_scale(const Tensor& g) {
    if (options_.clip.kind != ClipKind::layer) return scale_;
    const Tensor squares = scribe_.fresh(Shape{1, 1}), norm = scribe_.fresh(Shape{1, 1});
    LOOM_TRY(sum_of_squares(scribe_, g, squares));
    LOOM_ASSIGN(const Tensor clip, clip_scale(scribe_, squares, options_.clip.limit, norm));
    return scribe_.binary(scale_, clip, BinaryKind::mul);
  }

  // What waits, one after the other: first the updates, then the packing.
  Status apply() {
    for (const Waiting& w : waiting_) LOOM_TRY(scribe_.ops().optimize(w.args));
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
    return scribe_.ops().pack(pack);
  }

  Status report() { return scribe_.ops().unary({scale_, cell(t_.report, 1)}); }

  struct Waiting {
    const Trained* p;
    OptimizeArgs args;
  };
  // Bytes of gradients that are kept for it.
  static constexpr int64_t kTogether = int64_t{64} << 20;

  Scribe scribe_;
  const TrainStepOptions& options_;
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
Status record_parts(Scribe& s, LossArgs loss, bool together) {
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
Status add_losses(Scribe& s, StepTensors& t, Tensor total) {
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
Status record_given(Trace& trace, Scribe& s, StepTensors& t, const Tensor& dy, bool together) {
  t.given_gradient = dy;
  t.given_loss = s.fresh(Shape{1, 1});
  const bool alone = t.network.losses.empty();
  t.loss = alone ? t.given_loss : together ? cell(t.report, 2) : s.fresh(Shape{1, 1});
  trace.note(t.network.y, kGivenNote);
  return add_losses(s, t, t.given_loss);
}

// Records the loss; the gradient of y goes to dy unless that is empty. t.loss: the sum over rows
// and added losses.
Status record_loss(Trace& trace, Scribe& s, const TrainStepOptions& options, StepTensors& t,
                   const Tensor& dy, bool together) {
  const Tensor y = as_matrix(t.network.y, t.network.y.rows(), t.network.y.cols());
  LOOM_ASSIGN(const std::vector<int64_t> widths, head_widths(options.loss, y));
  if (widths.size() > 1 && options.loss.kind != LossKind::softmax_ce) {
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
    loss.kind = options.loss.kind;
    loss.delta = options.loss.delta;
    loss.smoothing = options.loss.smoothing;
    LOOM_TRY(record_parts(s, loss, together));
    first += width;
  }
  t.loss = together ? cell(t.report, 2) : s.fresh(Shape{1, 1});
  const Tensor total = t.network.losses.empty() ? t.loss : s.fresh(Shape{1, 1});
  LOOM_TRY(s.ops().reduce({as_matrix(rows, 1, heads * y.rows()), total, ReduceKind::sum}));
  return add_losses(s, t, total);
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

std::vector<Tensor*> StepTensors::pins() {
  std::vector<Tensor*> all;
  for (Tensor* t : {&network.x, &network.y, &network.step, &weight, &loss}) all.push_back(t);
  if (!network.mask.empty()) all.push_back(&network.mask);
  for (Tensor& t : network.more) all.push_back(&t);
  if (!row_losses.empty()) all.push_back(&row_losses);
  if (!given_loss.empty()) all.insert(all.end(), {&given_gradient, &given_loss});
  for (Tensor& target : targets) all.push_back(&target);
  return all;
}

Result<FeedbackMemory> carried_feedback(const Network& network, bool carry, const Ops& ops) {
  if (!carry) return FeedbackMemory();
  std::vector<Shape> outputs;
  for (const GridNode& cell : network.cells()) outputs.push_back(cell.out);
  return FeedbackMemory::create(network, outputs, ops);
}

const std::vector<Tensor>* tensors_of(const FeedbackMemory& feedback) {
  return feedback.empty() ? nullptr : &feedback.tensors();
}

namespace {

// Gradients of all parameters, and their updates unless they are gathered first.
Status record_learning(Trace& trace, const TrainStepOptions& options,
                       const std::vector<Trained>& trained, StepTensors& t, bool together) {
  Differentiator d(trace);
  d.checkpoint(segments(t.network, options.checkpoint_cells));
  Scribe s(trace);
  const Tensor dy = s.fresh(Shape{t.network.y.rows(), t.network.y.cols()});
  LOOM_TRY(options.given_loss ? record_given(trace, s, t, dy, together)
                              : record_loss(trace, s, options, t, dy, together));
  const bool alone = options.accumulate == 1 && !options.optimizer.lbfgs();
  for (const Trained& p : trained) d.want(p.weight, p.gradient, !alone);
  if (options.observed) {
    for (const Tensor& y : t.network.outputs) d.want(y);
  }
  // Gradients of outputs become notes behind those of the outputs; true when `of` is one.
  const auto noted = [&](const Tensor& of) {
    bool found = false;
    for (size_t i = 0; options.observed && i < t.network.outputs.size(); ++i) {
      const Tensor& y = t.network.outputs[i];
      if (trace.find(of.data) < 0 || trace.find(y.data) != trace.find(of.data)) continue;
      const Tensor gradient = d.gradient(y);
      const auto id = static_cast<int64_t>(t.network.outputs.size() + i);
      if (!gradient.empty()) trace.note(gradient, id);
      found = true;
    }
    return found;
  };
  d.seed(t.network.y, dy);
  for (const AddedLoss& added : t.network.losses) {
    LOOM_ASSIGN(const Tensor weight, s.number(added.weight));
    d.seed(added.value, weight);
  }
  d.on_done([&](const Tensor& of, const Tensor&) -> Status {
    noted(of);
    return {};
  });
  if (!alone) return d.run();

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
    return updater.finish();
  }
  LOOM_TRY(d.run());
  std::vector<Tensor> gradients;
  std::vector<const Trained*> owners;
  for (const Trained& p : trained) {
    const Tensor g = d.gradient(p.weight);
    if (g.empty()) continue;
    gradients.push_back(g);
    owners.push_back(&p);
  }
  LOOM_TRY(updater.clip_all(gradients));
  for (size_t i = 0; i < gradients.size(); ++i) {
    LOOM_TRY(updater.update(*owners[i], gradients[i], d.rows(owners[i]->weight)));
  }
  return updater.finish();
}

}  // namespace

Status record_step(Trace& trace, const Network& network, const TrainStepOptions& options,
                   const std::vector<Trained>& trained, const std::vector<Tensor>* feedback,
                   StepTensors& t, bool together) {
  TraceOptions o;
  o.training = true;
  o.seed = options.seed;
  o.masked = options.masked;
  o.noted = options.observed;
  o.feedback = feedback;
  if (options.forward) {
    LOOM_ASSIGN(t.network, options.forward(trace, o));
  } else {
    LOOM_ASSIGN(t.network, trace_network(network, trace, o));
  }
  LOOM_TRY(record_learning(trace, options, trained, t, together));
  Recorder last(trace);
  if (options.finish) LOOM_TRY(options.finish(t.network, last));
  return feedback != nullptr ? record_feedback(t.network, *feedback, last) : Status{};
}

Status record_evaluation(Trace& trace, const Network& network, const TrainStepOptions& options,
                         const std::vector<Tensor>* feedback, StepTensors& t) {
  TraceOptions o;
  o.seed = options.seed;
  o.masked = options.masked;
  o.feedback = feedback;
  LOOM_ASSIGN(t.network, trace_network(network, trace, o));
  Scribe s(trace);
  LOOM_TRY(record_loss(trace, s, options, t, {}, false));
  return feedback != nullptr ? record_feedback(t.network, *feedback, s.ops()) : Status{};
}

Status record_update(Trace& trace, const TrainStepOptions& options,
                     const std::vector<Trained>& trained, StepTensors& t, bool together) {
  Updater updater(trace, options, t, together);
  std::vector<Tensor> gradients;
  for (const Trained& p : trained) gradients.push_back(p.gradient);
  LOOM_TRY(updater.begin(t.loss));
  if (updater.needs_all()) LOOM_TRY(updater.clip_all(gradients));
  for (const Trained& p : trained) {
    LOOM_TRY(updater.update(p, p.gradient));
    if (!together) LOOM_TRY(updater.ops().fill({p.gradient, 0.0f}));
  }
  LOOM_TRY(updater.finish());
  for (const Trained& p : trained) {
    if (together) LOOM_TRY(updater.ops().fill({p.gradient, 0.0f}));
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
