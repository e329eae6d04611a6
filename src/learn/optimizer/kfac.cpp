#include "learn/optimizer/kfac.hpp"

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "dtype/r16/r16.hpp"
#include "learn/loss/loss.hpp"
#include "learn/loss/predictions.hpp"
#include "learn/optimizer/drawn_targets.hpp"
#include "ops/recording/device.hpp"

namespace loom::core {
namespace {

constexpr float kStays = 0.95f;  // of the averages, at most
using Use = Differentiator::Product;

double mean_of_diagonal(const Tensor& m) {
  double sum = 0;
  for (int64_t i = 0; i < m.rows(); ++i) sum += static_cast<double>(m.f32_row(i)[i]);
  return sum / static_cast<double>(m.rows());
}

Result<Tensor> sum_of_products(TraceBuilder& s, const Tensor& a, const Tensor& b) {
  const Tensor rows = s.fresh(Shape{a.rows()}), all = s.fresh(Shape{1, 1});
  LOOM_ASSIGN(const Tensor products, s.binary(a, b, BinaryKind::mul));
  LOOM_TRY(s.ops().reduce({products, rows, ReduceKind::sum}));
  LOOM_TRY(s.ops().reduce({as_matrix(rows, 1, a.rows()), all, ReduceKind::sum}));
  return all;
}

// Rows [0, rows) and columns [0, cols) of a matrix.
Tensor corner_of(const Tensor& t, int64_t rows, int64_t cols) {
  return slice_cols(t.slice_rows(0, rows), 0, cols);
}

Result<Tensor> matrix_product(TraceBuilder& s, const Tensor& a, const Tensor& b) {
  const Tensor y = s.fresh(Shape{a.rows(), b.cols()});
  LOOM_TRY(s.ops().gemm({a, b, y}));
  return y;
}

}  // namespace

// Row by row, so that a vector of the processor holds sums that do not meet: the order of each is
// that of the loops.
bool invert_shifted(const Tensor& from, double shift, std::vector<double>& work, const Tensor& to) {
  const int64_t n = from.rows();
  work.assign(static_cast<size_t>(2 * n * n), 0.0);
  double* const u = work.data();
  double* const x = u + n * n;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = i; j < n; ++j) u[i * n + j] = static_cast<double>(from.f32_row(i)[j]);
    u[i * n + i] += shift;
  }
  const auto take = [n](double* row, const double* other, double by, int64_t begin) {
    for (int64_t k = begin; k < n; ++k) row[k] -= by * other[k];
  };
  for (int64_t j = 0; j < n; ++j) {  // U' U, U above the diagonal
    double* const row = u + j * n;
    if (!(row[j] > 0) || !std::isfinite(row[j])) return false;
    const double root = std::sqrt(row[j]);
    for (int64_t k = j; k < n; ++k) row[k] /= root;
    for (int64_t i = j + 1; i < n; ++i) take(u + i * n, row, row[i], i);
  }
  for (int64_t j = 0; j < n; ++j) {  // U' Y = 1, Y below the diagonal
    double* const row = x + j * n;
    row[j] = 1.0;
    for (int64_t k = 0; k < j; ++k) {
      const double by = u[k * n + j];
      const double* const other = x + k * n;
      for (int64_t c = 0; c <= k; ++c) row[c] -= by * other[c];
    }
    for (int64_t c = 0; c <= j; ++c) row[c] /= u[j * n + j];
  }
  for (int64_t j = n; j-- > 0;) {  // U X = Y
    double* const row = x + j * n;
    for (int64_t k = j + 1; k < n; ++k) take(row, x + k * n, u[j * n + k], 0);
    for (int64_t c = 0; c < n; ++c) row[c] /= u[j * n + j];
  }
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) to.f32_row(i)[j] = static_cast<float>(x[i * n + j]);
  return true;
}

Result<std::vector<Kfac::Layer>> Kfac::find(const Network& network, const TrainStepOptions& options,
                                            const std::vector<Trained>* trained) {
  if (options.forward) return invalid("kfac is not for meshes; choose adam");
  Trace trace(DType::f32, true);
  LOOM_ASSIGN(TracedNetwork t, trace_network(network, trace, traced_as_in_steps(options)));
  t.y = predictions_of(t.y);
  Differentiator d(trace);
  for (const Param& p : network.params()) {
    if (p.spec.trained) d.follow(p.tensor);
  }
  d.seed(t.y, trace.fresh(Shape{t.y.rows(), t.y.cols()}));
  const auto index_of = [&](const Tensor& p) -> int64_t {
    for (size_t i = 0; trained != nullptr && !p.empty() && i < trained->size(); ++i) {
      if ((*trained)[i].weight.data == p.data && !(*trained)[i].frozen)
        return static_cast<int64_t>(i);
    }
    return -1;
  };
  std::vector<Layer> layers;
  d.on_product([&](const Use& use) -> Status {
    const bool known = std::any_of(layers.begin(), layers.end(), [&](const Layer& layer) {
      return layer.weight.data == use.w.data;
    });
    const bool fits = use.w.rows() <= kMaxSide && use.w.cols() <= kMaxSide;
    const int64_t index = index_of(use.w);
    const bool grouped = use.shape != nullptr && use.shape->groups != 1;
    if (known || !fits || grouped || (trained != nullptr && index < 0)) return {};
    Layer layer;
    layer.weight = use.w;
    layer.trained = static_cast<size_t>(std::max<int64_t>(index, 0));
    layer.bias = index_of(use.bias);
    layer.is_conv = use.shape != nullptr;
    if (layer.is_conv) layer.shape = *use.shape;
    layers.push_back(layer);
    return {};
  });
  LOOM_TRY(d.run());
  if (layers.empty()) return invalid("kfac finds no product or convolution to train; choose adam");
  return layers;
}

Status Kfac::make(Layer& layer, const std::string& path, std::vector<Buffer>& memory,
                  std::vector<StateTensor>& state) {
  const int64_t out = layer.weight.rows(), in = layer.weight.cols(), side = layer.in_side();
  LOOM_ASSIGN(layer.in.factor, persistent(Shape{side, side}, memory));
  LOOM_ASSIGN(layer.in.inverse, persistent(Shape{side, side}, memory));
  LOOM_ASSIGN(layer.out.factor, persistent(Shape{out, out}, memory));
  LOOM_ASSIGN(layer.out.inverse, persistent(Shape{out, out}, memory));
  state.push_back({path + "/kfac/in", layer.in.factor});
  state.push_back({path + "/kfac/in_inverse", layer.in.inverse});
  state.push_back({path + "/kfac/out", layer.out.factor});
  state.push_back({path + "/kfac/out_inverse", layer.out.inverse});
  if (!layer.is_conv) return {};
  const R16 geometry = r16_geometry(DType::f32, in, in);
  LOOM_ASSIGN(Buffer packed, Buffer::allocate(geometry.bytes()));
  std::vector<float> ones(static_cast<size_t>(in * in));
  for (int64_t i = 0; i < in; ++i) ones[static_cast<size_t>(i * in + i)] = 1.0f;
  r16_pack(geometry, ones.data(), 0, in, ScaleScope::per_row, TensorRange{}, packed.data());
  layer.identity = r16_tensor(geometry, packed.data());
  memory.push_back(std::move(packed));
  return {};
}

Result<std::unique_ptr<OptimizerDriver>> Kfac::create(const DriverCall& call) {
  const Optimizer& constants = call.options.optimizer;
  if (!(*constants.damping > 0) || !std::isfinite(*constants.damping))
    return invalid(cat("the damping of kfac is ", *constants.damping, ", must be above 0"));
  if (*constants.inverse_every < 1)
    return invalid(cat("kfac takes inverses every ", *constants.inverse_every,
                       " updates, must be at least 1"));
  auto made = std::make_unique<Kfac>();
  made->damping_ = *constants.damping;
  made->trust_ = *constants.trust;
  made->every_ = *constants.inverse_every;
  LOOM_ASSIGN(made->layers_, find(call.network, call.options, &call.trained));
  LOOM_ASSIGN(made->mix_, persistent(Shape{4}, call.memory));
  for (Layer& layer : made->layers_) {
    const Param& p = call.network.params()[call.trained[layer.trained].param];
    LOOM_TRY(made->make(layer, p.path, call.memory, call.state));
  }
  return std::unique_ptr<OptimizerDriver>(std::move(made));
}

Result<int64_t> Kfac::planned_bytes(const Network& network, const TrainStepOptions& options,
                                    const std::vector<Trained>&, const Ops&) {
  LOOM_ASSIGN(const std::vector<Layer> layers, find(network, options, nullptr));
  int64_t bytes = 0;
  for (const Layer& layer : layers) {
    const int64_t out = layer.weight.rows(), in = layer.weight.cols(), side = in + 1;
    bytes += 4 * (2 * (out * out + side * side) + (layer.is_conv ? in * in : 0));
  }
  return bytes;
}

Status Kfac::add_conv(TraceBuilder& s, const Layer& layer, const Use& use, const Tensor& a,
                      const Tensor& g) const {
  ConvShape patches = layer.shape;
  patches.filters = layer.shape.patch();
  const int64_t samples = use.x.rows(), positions = layer.shape.out_positions();
  ConvArgs conv;
  conv.x = use.x;
  conv.w = layer.identity;
  conv.y = s.fresh(Shape{samples, patches.filters * positions});
  conv.shape = patches;
  LOOM_TRY(s.ops().conv(conv));
  LOOM_TRY(s.ops().conv_dw({use.x, conv.y, a, patches}));
  ConvShape dot;
  dot.channels = dot.filters = layer.shape.filters;
  std::copy_n(layer.shape.out, 3, dot.in);
  std::copy_n(layer.shape.out, 3, dot.out);
  return s.ops().conv_dw({use.dz, use.dz, g, dot});
}

// A of the inputs with a 1 appended, from `a` without it.
Result<Tensor> Kfac::joined(TraceBuilder& s, const Layer& layer, const Use& use,
                            const Tensor& a) const {
  const int64_t in = a.rows();
  const Tensor sums = s.fresh(Shape{1, in}), all = s.fresh(Shape{in + 1, in + 1});
  int64_t positions = 1;
  if (layer.is_conv) {
    positions = layer.shape.out_positions();
    ConvShape one = layer.shape;
    one.filters = 1;
    const Tensor ones = s.fresh(Shape{use.x.rows(), positions});
    LOOM_TRY(s.ops().fill({ones, 1.0f}));
    LOOM_TRY(s.ops().conv_dw({use.x, ones, sums, one}));
  } else {
    Tensor vector = sums;
    vector.shape = Shape{in};
    LOOM_TRY(s.ops().reduce_cols({use.x, vector}));
  }
  LOOM_TRY(s.ops().unary({a, corner_of(all, in, in)}));
  LOOM_TRY(s.ops().unary({as_matrix(sums, in, 1), slice_cols(all.slice_rows(0, in), in, 1)}));
  const Tensor last = all.slice_rows(in, 1);
  LOOM_TRY(s.ops().unary({sums, slice_cols(last, 0, in)}));
  LOOM_TRY(s.ops().fill({cell(last, in), static_cast<float>(use.x.rows() * positions)}));
  return all;
}

Status Kfac::record_layer(TraceBuilder& s, const Layer& layer, const std::vector<Use>& uses,
                          double predictions, const Tensor& finite) const {
  double positions = 0;
  Tensor a, g;
  for (const Use& use : uses) {
    const int64_t in = layer.weight.cols();
    Tensor a_here = s.fresh(Shape{in, in});
    const Tensor g_here = s.fresh(layer.out.factor.shape);
    if (layer.is_conv) {
      LOOM_TRY(add_conv(s, layer, use, a_here, g_here));
      positions += static_cast<double>(use.x.rows() * layer.shape.out_positions()) / predictions;
    } else {
      LOOM_TRY(s.ops().gemm({use.x, use.x, a_here, true}));
      LOOM_TRY(s.ops().gemm({use.dz, use.dz, g_here, true}));
      positions += static_cast<double>(use.x.rows()) / predictions;
    }
    if (layer.bias >= 0) {
      LOOM_ASSIGN(a_here, joined(s, layer, use, a_here));
    }
    const bool first = a.empty();
    if (!first) {
      LOOM_ASSIGN(a, s.binary(a, a_here, BinaryKind::add));
      LOOM_ASSIGN(g, s.binary(g, g_here, BinaryKind::add));
      continue;
    }
    a = a_here;
    g = g_here;
  }
  const auto move = [&](const Tensor& average, const Tensor& sum, double share) -> Status {
    LOOM_ASSIGN(const Tensor value, s.binary(sum, static_cast<float>(share), BinaryKind::mul));
    OptimizeArgs o;
    o.p = average;
    LOOM_ASSIGN(o.g, s.binary(average, value, BinaryKind::sub));
    o.hyper = mix_;
    o.scale = finite;
    return s.ops().optimize(o);
  };
  LOOM_TRY(move(layer.in.factor, a, 1.0 / predictions));
  return move(layer.out.factor, g, predictions / std::max(positions, 1e-9));
}

Status Kfac::record_batch(Trace& trace, const TrainStepOptions& options,
                          const std::vector<Trained>& trained, const StepTensors& t,
                          const Tensor& dy) const {
  TraceBuilder s(trace);
  LOOM_ASSIGN(const Tensor drawn, drawn_gradient(trace, s, options, t, dy));
  Differentiator d(trace);
  for (const Layer& layer : layers_) d.follow(trained[layer.trained].weight);
  d.seed(t.network.y, drawn);
  std::vector<std::vector<Use>> uses(layers_.size());
  d.on_product([&](const Use& use) -> Status {
    for (size_t i = 0; i < layers_.size(); ++i) {
      if (trained[layers_[i].trained].weight.data == use.w.data) uses[i].push_back(use);
    }
    return {};
  });
  LOOM_TRY(d.run());
  const Tensor finite = s.fresh(Shape{1, 1});
  LOOM_TRY(s.guard(t.numbers, t.loss, finite));
  const auto predictions = static_cast<double>(t.network.y.rows());
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (!uses[i].empty()) LOOM_TRY(record_layer(s, layers_[i], uses[i], predictions, finite));
  }
  return {};
}

Result<std::vector<Tensor>> Kfac::record_directions(TraceBuilder& s,
                                                    const std::vector<Trained>& trained,
                                                    const StepTensors& t) const {
  std::vector<Tensor> directions(trained.size());
  std::vector<Tensor> dots;
  for (const Layer& layer : layers_) {
    const Tensor& gradient = trained[layer.trained].gradient;
    const int64_t out = gradient.rows(), in = gradient.cols();
    Tensor whole = gradient;
    if (layer.bias >= 0) {
      whole = s.fresh(Shape{out, in + 1});
      const Tensor& bias = trained[static_cast<size_t>(layer.bias)].gradient;
      LOOM_TRY(s.ops().unary({gradient, corner_of(whole, out, in)}));
      LOOM_TRY(s.ops().unary({as_matrix(bias, out, 1), slice_cols(whole, in, 1)}));
    }
    LOOM_ASSIGN(const Tensor left, matrix_product(s, layer.out.inverse, whole));
    LOOM_ASSIGN(const Tensor both, matrix_product(s, left, layer.in.inverse));
    LOOM_ASSIGN(const Tensor change, sum_of_products(s, both, whole));
    dots.push_back(change);
    directions[layer.trained] = both;
    if (layer.bias < 0) continue;
    const auto bias = static_cast<size_t>(layer.bias);
    directions[layer.trained] = s.fresh(gradient.shape);
    directions[bias] = s.fresh(trained[bias].gradient.shape);
    LOOM_TRY(s.ops().unary({corner_of(both, out, in), directions[layer.trained]}));
    LOOM_TRY(s.ops().unary({slice_cols(both, in, 1), as_matrix(directions[bias], out, 1)}));
  }
  if (trust_ <= 0) return directions;
  const auto n = static_cast<int64_t>(dots.size());
  const Tensor row = s.fresh(Shape{1, n}), sum = s.fresh(Shape{1, 1});
  for (int64_t i = 0; i < n; ++i)
    LOOM_TRY(s.ops().unary({dots[static_cast<size_t>(i)], cell(row, i)}));
  LOOM_TRY(s.ops().reduce({row, sum, ReduceKind::sum}));
  const Tensor rate = cell(t.hyper.slice_rows(0, 1), 0);
  LOOM_ASSIGN(const Tensor once, s.binary(sum, rate, BinaryKind::mul));
  LOOM_ASSIGN(const Tensor twice, s.binary(once, rate, BinaryKind::mul));
  LOOM_ASSIGN(const Tensor safe, s.binary(twice, 1e-30f, BinaryKind::max));
  LOOM_ASSIGN(const Tensor most, s.number(trust_));
  LOOM_ASSIGN(const Tensor ratio, s.binary(most, safe, BinaryKind::div));
  LOOM_ASSIGN(const Tensor root, s.unary(ratio, UnaryKind::sqrt));
  LOOM_ASSIGN(const Tensor nu, s.binary(root, 1.0f, BinaryKind::min));
  for (Tensor& direction : directions) {
    if (direction.empty()) continue;
    LOOM_ASSIGN(direction, s.binary(direction, nu, BinaryKind::mul));
  }
  return directions;
}

Status Kfac::begin_batch(int64_t batches, const Ops& ops) const {
  const double kept = 1.0 - 1.0 / static_cast<double>(batches + 1);
  mix_.f32()[0] = static_cast<float>(1.0 - std::min(kept, static_cast<double>(kStays)));
  return to_device(ops, mix_);
}

Status Kfac::begin_update(int64_t updates, const Ops& ops, ThreadPool& pool) const {
  // The first averages are those of few batches, and are soon better.
  if (updates >= every_ && updates % every_ != 0) return {};
  std::vector<Tensor> factors;
  for (const Layer& layer : layers_)
    factors.insert(factors.end(), {layer.in.factor, layer.out.factor});
  LOOM_TRY(to_host(ops, factors));
  pool.run([&](int lane, int lanes) {
    std::vector<double> work;
    for (size_t i = static_cast<size_t>(lane); i < 2 * layers_.size();
         i += static_cast<size_t>(lanes)) {
      const Layer& layer = layers_[i / 2];
      const double of_in = mean_of_diagonal(layer.in.factor);
      const double of_out = mean_of_diagonal(layer.out.factor);
      const bool usable = of_in > 0 && of_out > 0;
      const double pi = usable ? std::sqrt(of_in / of_out) : 1.0;
      const double root = std::sqrt(static_cast<double>(damping_));
      const Side& side = i % 2 == 0 ? layer.in : layer.out;
      invert_shifted(side.factor, i % 2 == 0 ? root * pi : root / pi, work, side.inverse);
    }
  });
  for (const Layer& layer : layers_) {
    LOOM_TRY(to_device(ops, layer.in.inverse));
    LOOM_TRY(to_device(ops, layer.out.inverse));
  }
  return {};
}

namespace {

Status check_kfac(const TrainStepOptions& o) {
  if (o.native) return invalid("kfac does not go with native training; leave one of them out");
  if (loss_def(o.loss.kind).record != nullptr)
    return invalid(
        cat("kfac has no curvature of ", loss_name(o.loss.kind), "; choose another optimizer"));
  return {};
}

constexpr SavedConstant kSavedOfKfac[] = {
    {.key = "damping", .real = &Optimizer::damping},
    {.key = "trust", .real = &Optimizer::trust},
    {.key = "inverse_every", .count = &Optimizer::inverse_every}};

}  // namespace

// The op is for what no factors are kept of.
extern const OptimizerDef kKfacOptimizer;
const OptimizerDef kKfacOptimizer = {.update = UpdateKind::adam,
                                     .scalars = bias_corrections,
                                     .driver = Kfac::create,
                                     .driver_bytes = Kfac::planned_bytes,
                                     .gathers = true,
                                     .check = check_kfac,
                                     .saved = kSavedOfKfac};

}  // namespace loom::core
