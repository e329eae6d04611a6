// Checks the gradients of a network, all in f64: L = sum of r * y with random r (plus the losses
// that layers add); dL/dx and dL/dp for every value of every parameter against central differences.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "backend/reference/reference.hpp"
#include "base/numbers/rng.hpp"
#include "base/threads/thread_pool.hpp"
#include "grid/grid_testing.hpp"
#include "grid/traced.hpp"
#include "ops/gradients/gradient.hpp"
#include "ops/recording/program.hpp"

namespace loom::core::test {

struct GradientOptions {
  bool masked = false;
  std::vector<int64_t> lengths = {};                 // of the sequences; in place of `masked`
  std::vector<std::vector<int64_t>> documents = {};  // lengths, for each sample
  double step = 1e-5;
  double tolerance = 1e-6;
  int64_t vocab = 0;  // ids of an embedding are below it
};

class GradientRig {
 public:
  GradientRig(const GridSpec& grid, const Shape& input, GradientOptions options = {})
      : options_(options), pool_(1, true) {
    Result<Network> network = Network::finalize(grid, input);
    EXPECT_TRUE(network.ok()) << network.error().str();
    if (!network.ok()) return;
    network_ = std::make_unique<Network>(std::move(*network));
    for (size_t i = 0; i < network_->params().size(); ++i) {
      EXPECT_TRUE(network_->allocate_param(static_cast<int>(i), DType::f64, DType::f64).ok());
      fill_param(static_cast<int>(i));
    }
    const Status built = build();
    EXPECT_TRUE(built.ok()) << built.error().str();
  }

  // Compares everything; the failure names the tensor.
  void check() {
    if (network_ == nullptr || !ready_) {
      ADD_FAILURE() << "the network was not built";
      return;
    }
    EXPECT_TRUE(backward_->run().ok());
    double largest = 0;
    for (int64_t i = 0; i < y_.shape.count(); ++i)
      largest = std::max(largest, std::fabs(y_.values<double>()[i]));
    EXPECT_GT(largest, 0) << "a dead output";
    if (!dx_.empty()) {
      compare("x", dx_, [&](int64_t i) -> double* { return &x_.values<double>()[i]; });
    }
    for (size_t p = 0; p < network_->params().size(); ++p) {
      if (!network_->params()[p].spec.trained && network_->params()[p].spec.name == "value") {
        continue;  // a Constant that does not learn, though the loss depends on it
      }
      const std::string_view name = network_->params()[p].spec.name;
      if (!network_->params()[p].spec.trained && (name == "u" || name == "v")) {
        continue;  // where a power iteration begins
      }
      compare(network_->params()[p].path, grads_[p],
              [&](int64_t i) { return value_of(static_cast<int>(p), i); });
    }
  }

  Network& network() { return *network_; }

 private:
  double random(uint64_t stream, int64_t i) const {
    return 2.0 * Rng(11, stream).uniform(static_cast<uint64_t>(i)) - 1.0;
  }

  // Element i of a parameter in memory: plain, or wide R16.
  double* value_of(int p, int64_t i) {
    const Tensor& t = network_->params()[static_cast<size_t>(p)].tensor;
    if (t.layout == Layout::plain) return t.values<double>() + i;
    const R16 g = r16_geometry(t.dtype, t.shape[0], t.shape[1]);
    const int64_t row = i / g.cols, k = i % g.cols;
    std::byte* at = t.data + row / 16 * g.group_bytes + g.codes + (k * 16 + row % 16) * 8;
    return reinterpret_cast<double*>(at);
  }

  void fill_param(int p) {
    const ParamSpec& spec = network_->params()[static_cast<size_t>(p)].spec;
    for (int64_t i = 0; i < spec.shape.count(); ++i) {
      const double r = 0.6 * random(100 + static_cast<uint64_t>(p), i);
      *value_of(p, i) = spec.init == Init::ones ? 1.0 + r : r;
    }
  }

  Status trace_forward(Trace& trace, Recorder& recorder, TracedNetwork& t, Tensor& r,
                       Tensor& total) {
    TraceOptions o;
    o.training = true;
    o.seed = 5;
    o.masked = options_.masked || !options_.lengths.empty();
    o.documents = !options_.documents.empty();
    o.feedback = &feedback_.tensors();
    LOOM_ASSIGN(t, trace_network(*network_, trace, o));
    r = trace.fresh(Shape{t.y.rows(), t.y.cols()});
    const Tensor product = trace.fresh(r.shape), sums = trace.fresh(Shape{t.y.rows()});
    total = trace.fresh(Shape{1, 1});
    LOOM_TRY(recorder.binary({t.y, r, product, BinaryKind::mul}));
    LOOM_TRY(recorder.reduce({product, sums, ReduceKind::sum}));
    Tensor row = sums;
    row.shape = Shape{1, sums.shape.count()};
    row.row_stride = sums.shape.count();
    LOOM_TRY(recorder.reduce({row, total, ReduceKind::sum}));
    for (const AddedLoss& loss : t.losses) {
      const Tensor weight = trace.fresh(Shape{1, 1}), scaled = trace.fresh(Shape{1, 1});
      const Tensor sum = trace.fresh(Shape{1, 1});
      LOOM_TRY(recorder.fill({weight, loss.weight}));
      LOOM_TRY(recorder.binary({loss.value, weight, scaled, BinaryKind::mul}));
      LOOM_TRY(recorder.binary({total, scaled, sum, BinaryKind::add}));
      total = sum;
    }
    return {};
  }

  void fill_inputs(const TracedNetwork& t, const Tensor& r) {
    for (int64_t i = 0; i < t.x.shape.count(); ++i) {
      if (t.x.dtype == DType::i32) {
        t.x.i32()[i] = static_cast<int32_t>(Rng(3, 1).bits(static_cast<uint64_t>(i)) %
                                            static_cast<uint64_t>(options_.vocab));
      } else {
        t.x.values<double>()[i] = random(1, i);
      }
    }
    for (int64_t i = 0; i < r.shape.count(); ++i) r.values<double>()[i] = random(2, i);
    if (!options_.documents.empty()) {
      EXPECT_TRUE(mark_documents(t.row_positions, options_.documents).ok());
    }
    if (!options_.lengths.empty()) {
      mark_lengths(t.mask, t.ends, options_.lengths);
    }
    for (int64_t i = 0; i < t.mask.shape.count() && options_.masked; ++i) {
      t.mask.values<double>()[i] = i % 5 == 3 ? 0.0 : 1.0;
    }
    t.step.values<double>()[0] = 1;
  }

  Status build() {
    std::vector<Shape> outputs;
    for (const GridNode& cell : network_->cells()) outputs.push_back(cell.out);
    LOOM_ASSIGN(feedback_, FeedbackMemory::create(*network_, outputs, reference_ops_f64()));
    for (const Tensor& f : feedback_.tensors()) {
      for (int64_t i = 0; !f.empty() && i < f.shape.count(); ++i)
        f.values<double>()[i] = random(4, i);
    }
    LOOM_TRY(build_forward());
    LOOM_TRY(build_backward());
    ready_ = true;
    return {};
  }

  static void pin(TracedNetwork& t, std::vector<Tensor*>& pins) {
    pins.push_back(&t.x);
    pins.push_back(&t.step);
    if (!t.row_positions.empty()) pins.push_back(&t.row_positions);
    if (!t.mask.empty()) pins.insert(pins.end(), {&t.mask, &t.ends.last, &t.ends.reversed});
  }

  Status build_forward() {
    Trace trace(DType::f64);
    Recorder recorder(trace);
    Tensor r;
    LOOM_TRY(trace_forward(trace, recorder, forward_net_, r, loss_));
    std::vector<Tensor*> pins = {&r, &loss_};
    pin(forward_net_, pins);
    LOOM_ASSIGN(Program program,
                Program::compile(std::move(trace), pins, reference_ops_f64(), pool_));
    forward_ = std::make_unique<Program>(std::move(program));
    fill_inputs(forward_net_, r);
    forward_r_ = r;
    x_ = forward_net_.x;
    return {};
  }

  Status build_backward() {
    Trace trace(DType::f64, true);
    Recorder recorder(trace);
    Tensor r, total;
    LOOM_TRY(trace_forward(trace, recorder, backward_net_, r, total));
    const Tensor one = trace.fresh(total.shape);
    LOOM_TRY(recorder.fill({one, 1.0f}));
    Differentiator d(trace);
    const bool ids = backward_net_.x.dtype == DType::i32;
    if (!ids) d.want(backward_net_.x);
    for (const Param& p : network_->params()) {
      if (p.spec.trained) d.want(p.tensor);
    }
    d.seed(total, one);
    LOOM_TRY(d.run());
    if (!ids) dx_ = d.gradient(backward_net_.x);
    for (const Param& p : network_->params()) grads_.push_back(d.gradient(p.tensor));
    y_ = backward_net_.y;
    std::vector<Tensor*> pins = {&r, &y_};
    if (!dx_.empty()) pins.push_back(&dx_);
    for (Tensor& g : grads_) {
      if (!g.empty()) pins.push_back(&g);
    }
    pin(backward_net_, pins);
    LOOM_ASSIGN(Program program,
                Program::compile(std::move(trace), pins, reference_ops_f64(), pool_));
    backward_ = std::make_unique<Program>(std::move(program));
    fill_inputs(backward_net_, r);
    return {};
  }

  double loss() {
    EXPECT_TRUE(forward_->run().ok());
    return loss_.values<double>()[0];
  }

  void compare(const std::string& name, const Tensor& gradient,
               const std::function<double*(int64_t)>& at) {
    if (gradient.empty()) {
      // Nothing reads it; moving it must change nothing.
      const double before = loss();
      *at(0) += 0.5;
      EXPECT_EQ(loss(), before) << name << " has no gradient but changes the loss";
      return;
    }
    const int64_t n = gradient.shape.count();
    double scale = 0, worst = 0;
    int64_t worst_at = 0;
    for (int64_t i = 0; i < n; ++i) {
      double* value = at(i);
      const double old = *value;
      *value = old + options_.step;
      const double up = loss();
      *value = old - options_.step;
      const double down = loss();
      *value = old;
      const double numeric = (up - down) / (2 * options_.step);
      scale = std::max(scale, std::fabs(numeric));
      const double error = std::fabs(numeric - gradient.values<double>()[i]);
      if (!(error <= worst)) {
        worst = error;
        worst_at = i;
      }
    }
    EXPECT_GT(scale, 1e-6) << name << ": the loss does not depend on it";
    EXPECT_LE(worst, options_.tolerance * std::max(scale, 1e-3)) << name << " at " << worst_at;
  }

  GradientOptions options_;
  ThreadPool pool_;
  std::unique_ptr<Network> network_;
  FeedbackMemory feedback_;  // the same in every run
  TracedNetwork forward_net_, backward_net_;
  Tensor x_, y_, dx_, loss_, forward_r_;
  std::vector<Tensor> grads_;
  std::unique_ptr<Program> forward_, backward_;
  bool ready_ = false;
};

}  // namespace loom::core::test
