#include "learn/optimizer/lbfgs.hpp"

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "learn/rules/rule.hpp"
#include "ops/recording/program.hpp"

namespace loom::core {
// One program in the making: the vector operations of the method, over all parameters.
class Lbfgs::Recording {
 public:
  Recording(const std::vector<Memory>& params, const Lbfgs& owner)
      : params_(params), owner_(owner), trace_(DType::f32), ops_(trace_) {}

  using Pick = Tensor (*)(const Memory&, int64_t slot);
  static Tensor s(const Memory& m, int64_t slot) { return m.s[static_cast<size_t>(slot)]; }
  static Tensor y(const Memory& m, int64_t slot) { return m.y[static_cast<size_t>(slot)]; }
  static Tensor r(const Memory& m, int64_t) { return m.r; }
  static Tensor g(const Memory& m, int64_t) { return m.gradient; }

  Tensor number() { return trace_.fresh(Shape{1, 1}); }

  Status copy(const Tensor& from, const Tensor& to) { return ops_.unary({from, to}); }
  Status fill(const Tensor& t, float value) { return ops_.fill({t, value}); }
  Status binary(const Tensor& a, const Tensor& b, const Tensor& out, BinaryKind kind) {
    return ops_.binary({a, b, out, kind});
  }

  // out = sum over all parameters of a.b, or of |a| when `b` is null.
  Status dot(Pick a, int64_t a_slot, Pick b, int64_t b_slot, const Tensor& out) {
    const auto n = static_cast<int64_t>(params_.size());
    const Tensor parts = trace_.fresh(Shape{1, n});
    for (int64_t i = 0; i < n; ++i) {
      const Memory& m = params_[static_cast<size_t>(i)];
      const Tensor left = a(m, a_slot);
      const Tensor product = trace_.fresh(left.shape);
      if (b != nullptr) {
        LOOM_TRY(binary(left, b(m, b_slot), product, BinaryKind::mul));
      } else {
        LOOM_TRY(ops_.unary({left, product, UnaryKind::abs}));
      }
      const int64_t rows = product.rows();
      const Tensor sums = trace_.fresh(Shape{rows});
      LOOM_TRY(ops_.reduce({product, sums, ReduceKind::sum}));
      LOOM_TRY(ops_.reduce({as_matrix(sums, 1, rows), cell(parts, i), ReduceKind::sum}));
    }
    return ops_.reduce({parts, out, ReduceKind::sum});
  }

  // x -= hyper[0] * scale * d.
  Status move(const Tensor& x, const Tensor& d, const Tensor& scale, const Tensor& hyper) {
    OptimizeArgs o;
    o.p = x;
    o.g = d;
    o.scale = scale;
    o.hyper = hyper;
    o.kind = UpdateKind::sgd;
    return ops_.optimize(o);
  }
  // The same for every parameter.
  Status move_all(Pick x, Pick d, int64_t slot, const Tensor& scale, const Tensor& hyper) {
    for (const Memory& m : params_) LOOM_TRY(move(x(m, 0), d(m, slot), scale, hyper));
    return {};
  }

  Status two_loops(int64_t pairs);

  Result<std::unique_ptr<Program>> compile(const Ops& ops, ThreadPool& pool) {
    LOOM_ASSIGN(Program program, Program::compile(std::move(trace_), {}, ops, pool));
    return std::make_unique<Program>(std::move(program));
  }

 private:
  const std::vector<Memory>& params_;
  const Lbfgs& owner_;
  Trace trace_;
  Recorder ops_;
};

// r = H g. Pairs that are not there have rho 0 and change nothing.
Status Lbfgs::Recording::two_loops(int64_t pairs) {
  std::vector<Tensor> alphas(static_cast<size_t>(pairs) + 1);
  for (const Memory& m : params_) LOOM_TRY(copy(m.gradient, m.r));
  for (int64_t i = 1; i <= pairs; ++i) {
    const Tensor product = number(), alpha = number();
    LOOM_TRY(dot(s, i, r, 0, product));
    LOOM_TRY(binary(product, cell(owner_.rho_, i - 1), alpha, BinaryKind::mul));
    LOOM_TRY(move_all(r, y, i, alpha, owner_.plus_));
    alphas[static_cast<size_t>(i)] = alpha;
  }
  for (const Memory& m : params_) {
    const Tensor before = trace_.fresh(m.r.shape);
    LOOM_TRY(copy(m.r, before));
    LOOM_TRY(binary(before, owner_.gamma_, m.r, BinaryKind::mul));
  }
  for (int64_t i = pairs; i >= 1; --i) {
    const Tensor product = number(), beta = number(), by = number();
    LOOM_TRY(dot(y, i, r, 0, product));
    LOOM_TRY(binary(product, cell(owner_.rho_, i - 1), beta, BinaryKind::mul));
    LOOM_TRY(binary(alphas[static_cast<size_t>(i)], beta, by, BinaryKind::sub));
    LOOM_TRY(move_all(r, s, i, by, owner_.minus_));
  }
  return {};
}

Result<Tensor> Lbfgs::persistent(const std::string& name, const Shape& shape) {
  LOOM_ASSIGN(const Tensor t, loom::core::persistent(shape, buffers_));
  if (!name.empty()) state_.push_back({name, t});
  return t;
}

Status Lbfgs::remember(const Trained& trained, int64_t index) {
  Memory m;
  m.p = trained.master;
  m.gradient = trained.gradient;
  const Shape& shape = trained.master.shape;
  const std::string name = cat("lbfgs/", index, "/");
  LOOM_ASSIGN(m.p_before, persistent(name + "before", shape));
  LOOM_ASSIGN(m.gradient_before, persistent(name + "gradient_before", shape));
  LOOM_ASSIGN(m.r, persistent("", shape));
  for (int64_t slot = 0; slot <= kPairs; ++slot) {
    const bool saved = slot > 0;
    LOOM_ASSIGN(const Tensor s, persistent(saved ? cat(name, "s", slot) : "", shape));
    LOOM_ASSIGN(const Tensor y, persistent(saved ? cat(name, "y", slot) : "", shape));
    m.s.push_back(s);
    m.y.push_back(y);
  }
  params_.push_back(std::move(m));
  return {};
}

Status Lbfgs::record_all(const Ops& ops, ThreadPool& pool) {
  const int64_t pairs = kPairs;
  const Tensor all_pairs = cell(report_, 0);
  Recording pair(params_, *this), insert(params_, *this), direction(params_, *this),
      apply(params_, *this), forget(params_, *this), decay(params_, *this);
  for (const Memory& m : params_) {
    LOOM_TRY(decay.move(m.gradient, m.p, {}, decay_rate_));
    LOOM_TRY(pair.binary(m.p, m.p_before, m.s[0], BinaryKind::sub));
    LOOM_TRY(pair.binary(m.gradient, m.gradient_before, m.y[0], BinaryKind::sub));
  }
  LOOM_TRY(pair.dot(Recording::s, 0, Recording::y, 0, all_pairs));
  LOOM_TRY(pair.dot(Recording::y, 0, Recording::y, 0, cell(report_, 1)));

  for (int64_t i = pairs; i >= 1; --i) {
    for (const Memory& m : params_) {
      LOOM_TRY(insert.copy(Recording::s(m, i - 1), Recording::s(m, i)));
      LOOM_TRY(insert.copy(Recording::y(m, i - 1), Recording::y(m, i)));
    }
    if (i > 1) LOOM_TRY(insert.copy(cell(rho_, i - 2), cell(rho_, i - 1)));
  }
  const Tensor one = insert.number();
  LOOM_TRY(insert.fill(one, 1.0f));
  LOOM_TRY(insert.binary(one, all_pairs, cell(rho_, 0), BinaryKind::div));
  LOOM_TRY(insert.binary(all_pairs, cell(report_, 1), gamma_, BinaryKind::div));

  LOOM_TRY(direction.two_loops(pairs));
  LOOM_TRY(direction.dot(Recording::r, 0, Recording::g, 0, cell(report_, 2)));
  LOOM_TRY(direction.dot(Recording::g, 0, nullptr, 0, cell(report_, 3)));
  LOOM_TRY(direction.dot(Recording::g, 0, Recording::g, 0, cell(report_, 4)));

  LOOM_TRY(forget.fill(rho_, 0.0f));
  LOOM_TRY(forget.fill(gamma_, 1.0f));
  for (const Memory& m : params_) {
    LOOM_TRY(forget.copy(m.gradient, m.r));
    LOOM_TRY(apply.copy(m.p, m.p_before));
    LOOM_TRY(apply.copy(m.gradient, m.gradient_before));
    LOOM_TRY(apply.move(m.p, m.r, {}, rate_));
    LOOM_TRY(apply.fill(m.gradient, 0.0f));
  }
  LOOM_ASSIGN(decay_, decay.compile(ops, pool));
  LOOM_ASSIGN(pair_, pair.compile(ops, pool));
  LOOM_ASSIGN(insert_, insert.compile(ops, pool));
  LOOM_ASSIGN(direction_, direction.compile(ops, pool));
  LOOM_ASSIGN(forget_, forget.compile(ops, pool));
  LOOM_ASSIGN(apply_, apply.compile(ops, pool));
  return {};
}

Result<std::unique_ptr<OptimizerDriver>> Lbfgs::create(const DriverCall& call) {
  auto made = std::make_unique<Lbfgs>();
  made->decay_factor_ = *call.options.optimizer.weight_decay;
  const std::vector<Trained>& trained = call.trained;
  for (size_t i = 0; i < trained.size(); ++i) {
    if (!trained[i].frozen) LOOM_TRY(made->remember(trained[i], static_cast<int64_t>(i)));
  }
  LOOM_ASSIGN(made->rho_, made->persistent("lbfgs/rho", Shape{1, kPairs}));
  LOOM_ASSIGN(made->gamma_, made->persistent("lbfgs/gamma", Shape{1, 1}));
  LOOM_ASSIGN(made->report_, made->persistent("", Shape{1, 5}));
  for (Tensor* hyper : {&made->rate_, &made->plus_, &made->minus_, &made->decay_rate_}) {
    LOOM_ASSIGN(*hyper, made->persistent("", Shape{4}));
  }
  made->gamma_.f32()[0] = 1.0f;
  made->plus_.f32()[0] = 1.0f;
  made->minus_.f32()[0] = -1.0f;
  made->decay_rate_.f32()[0] = -made->decay_factor_;
  made->ops_ = &call.ops;
  std::vector<MemoryRange> ranges;
  made->add_ranges(ranges);
  LOOM_ASSIGN(made->attached_, Attached::attach(call.ops.device, ranges, MemoryUse::state, true));
  LOOM_TRY(made->record_all(call.ops, call.pool));
  call.state.insert(call.state.end(), made->state_.begin(), made->state_.end());
  return std::unique_ptr<OptimizerDriver>(std::move(made));
}

Result<int64_t> Lbfgs::planned_bytes(const Network& network, const TrainStepOptions&,
                                     const std::vector<Trained>&, const Ops&) {
  return 2 * kPairs * network.param_count() * 4;
}

Result<DriverOutcome> Lbfgs::update(double rate, bool first) {
  DriverOutcome outcome;
  if (decay_factor_ > 0) LOOM_TRY(decay_->run());
  if (!first) {
    LOOM_TRY(pair_->run());
    LOOM_TRY(to_host(*ops_, {report_}));
    const float sy = read(report_, 0);
    if (sy > 1e-10f && std::isfinite(sy)) LOOM_TRY(insert_->run());
  }
  LOOM_TRY(direction_->run());
  LOOM_TRY(to_host(*ops_, {report_, rho_}));
  outcome.norm = std::sqrt(static_cast<double>(read(report_, 4)));
  outcome.updated = std::isfinite(outcome.norm) && std::isfinite(read(report_, 2));
  if (outcome.updated && read(report_, 2) <= 0.0f) {
    LOOM_TRY(forget_->run());
    LOOM_TRY(to_host(*ops_, {rho_}));
  }
  const bool has_pairs = rho_.f32()[0] != 0.0f;
  const double l1 = static_cast<double>(read(report_, 3));
  const double scale = has_pairs || l1 <= 1.0 ? 1.0 : 1.0 / l1;
  rate_.f32()[0] = static_cast<float>(rate * scale);
  LOOM_TRY(to_device(*ops_, rate_));
  if (outcome.updated) {
    LOOM_TRY(apply_->run());
    return outcome;
  }
  for (const Memory& m : params_) {
    std::fill_n(m.gradient.f32(), m.gradient.shape.count(), 0.0f);
    LOOM_TRY(to_device(*ops_, m.gradient));
  }
  return outcome;
}

void Lbfgs::add_ranges(std::vector<MemoryRange>& ranges) const {
  for (const Buffer& buffer : buffers_) ranges.push_back(range_of(buffer));
}

int64_t Lbfgs::arena_bytes() const {
  int64_t bytes = 0;
  for (const auto* p : {&decay_, &pair_, &insert_, &direction_, &apply_, &forget_}) {
    bytes += (*p)->arena_bytes();
  }
  return bytes;
}
int64_t Lbfgs::state_bytes() const {
  int64_t bytes = 0;
  for (const Buffer& b : buffers_) bytes += b.size();
  return bytes;
}

namespace {

Status check_lbfgs(const TrainStepOptions& o) {
  if (o.native || o.clip.kind != Clip::none)
    return invalid("lbfgs goes neither with clipping nor with native training; leave them out");
  if (o.lookahead.every > 0 || o.noise.std > 0)
    return invalid("lbfgs goes neither with lookahead nor with noise of gradients; leave them out");
  if (!rule_def(o.rule.kind).end_to_end)
    return invalid("L-BFGS follows the gradient of the loss; choose another optimizer or rule");
  if (!o.rules.rates.empty())
    return invalid("lbfgs has one rate for all parameters; leave rate_for out");
  return {};
}

constexpr SavedConstant kSavedOfLbfgs[] = {{.key = "history", .fixed = Lbfgs::kPairs}};

}  // namespace

extern const OptimizerDef kLbfgsOptimizer;
const OptimizerDef kLbfgsOptimizer = {.update = UpdateKind::sgd,
                                      .driver = Lbfgs::create,
                                      .driver_bytes = Lbfgs::planned_bytes,
                                      .gathers = true,
                                      .all_samples = true,
                                      .check = check_lbfgs,
                                      .saved = kSavedOfLbfgs};

}  // namespace loom::core
