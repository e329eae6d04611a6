// PyTorch's results for a layer (golden/, made by tools/goldens/make_layer_goldens.py), and the
// same layer recorded in f32 on a backend. Inputs, parameters and loss are those of the golden.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "base/threads/thread_pool.hpp"
#include "grid/session.hpp"
#include "grid/traced.hpp"
#include "io/files/file.hpp"
#include "io/json/json.hpp"
#include "io/weights/safetensors.hpp"
#include "ops/gradients/gradient.hpp"
#include "ops/recording/program.hpp"
#include "support/paths.hpp"

namespace loom::core::test {

struct GoldenCase {
  std::string name, file;
  LayerConfig layer;
  Shape input;
  bool masked = false;
};

inline std::string golden_path(const std::string& file) {
  return cat(loom_test::source_path("tests/gradients/golden/"), file);
}

inline Field golden_field(const std::string& name, const JsonValue& value) {
  if (value.is_bool()) return {name, *value.as_bool(name)};
  if (value.is_string()) return {name, value.text()};
  if (value.is_number()) return {name, *value.as_double(name)};
  std::vector<int64_t> list;
  for (const JsonValue& item : value.elements()) list.push_back(*item.as_int(name));
  return {name, std::move(list)};
}

inline Shape golden_shape(const JsonValue& extents) {
  std::vector<int64_t> e;
  for (const JsonValue& extent : extents.elements()) e.push_back(*extent.as_int("input"));
  switch (e.size()) {
    case 1: return {e[0]};
    case 2: return {e[0], e[1]};
    case 3: return {e[0], e[1], e[2]};
    case 4: return {e[0], e[1], e[2], e[3]};
    default: return {e[0], e[1], e[2], e[3], e[4]};
  }
}

inline Result<LayerConfig> golden_layer(const JsonValue& entry) {
  const std::string& kind = entry.find("kind")->text();
  std::vector<Field> fields;
  for (const auto& [name, value] : entry.find("fields")->members()) {
    fields.push_back(golden_field(name, value));
  }
  std::vector<LayerConfig> children;
  if (const JsonValue* list = entry.find("children")) {
    for (const JsonValue& child : list->elements()) {
      LOOM_ASSIGN(LayerConfig made, golden_layer(child));
      children.push_back(std::move(made));
    }
  }
  for (const LayerDef* def : layer_table()) {
    if (def->name == kind) return make_layer(def->kind, fields, std::move(children));
  }
  return invalid(cat("no layer is called ", kind));
}

inline Result<std::vector<GoldenCase>> read_golden_index(const std::string& name = "index.json") {
  LOOM_ASSIGN(const std::string text, read_file(golden_path(name), 1 << 20));
  LOOM_ASSIGN(const JsonValue index, parse_json(text, name));
  std::vector<GoldenCase> cases;
  for (const JsonValue& entry : index.find("cases")->elements()) {
    GoldenCase c;
    c.name = entry.find("name")->text();
    c.file = entry.find("file")->text();
    LOOM_ASSIGN(c.layer, golden_layer(*entry.find("layer")));
    c.input = golden_shape(*entry.find("input"));
    c.masked = *entry.find("masked")->as_bool("masked");
    cases.push_back(std::move(c));
  }
  return cases;
}

// The tensors of one case.
class Golden {
 public:
  static Result<Golden> open(const GoldenCase& c) {
    LOOM_ASSIGN(SafeTensors file, SafeTensors::open(golden_path(c.file)));
    return Golden(c.name, std::move(file));
  }

  // "y", "dx", "p/weight", ...
  Result<std::vector<float>> values(const std::string& name) const {
    return read(cat(case_, "/", name));
  }
  Result<std::vector<float>> loss_weights() const { return read("r"); }

 private:
  Golden(std::string name, SafeTensors file) : case_(std::move(name)), file_(std::move(file)) {}

  Result<std::vector<float>> read(const std::string& name) const {
    const SafeTensor* tensor = file_.find(name);
    if (tensor == nullptr) return make_error(Code::not_found, cat("no golden ", name));
    std::vector<float> out(static_cast<size_t>(tensor->count()));
    LOOM_TRY(SafeTensors::to_f32(*tensor, 0, tensor->count(), out.data()));
    return out;
  }

  std::string case_;
  SafeTensors file_;
};

// The name of a parameter without its cell: "0/weight".
inline std::string golden_param(const Param& p) {
  return p.path.substr(p.path.find('/') + 1);
}

inline std::vector<float> values_of(const Tensor& t) {
  return {t.f32(), t.f32() + t.shape.count()};
}

// A case ready to run. With gradients: recorded for training and differentiated.
class GoldenRun {
 public:
  static Result<std::unique_ptr<GoldenRun>> make(const GoldenCase& c, const Ops& ops,
                                                 bool gradients) {
    std::unique_ptr<GoldenRun> run(new GoldenRun);
    LOOM_ASSIGN(const Golden golden, Golden::open(c));
    LOOM_TRY(run->load(c, golden));
    LOOM_TRY(run->build(c, ops, gradients));
    LOOM_TRY(run->fill(golden));
    return run;
  }

  Status run() { return program_->run(); }
  // The outputs of a session for x: attention uses its caches, and states carry over.
  Result<std::vector<float>> session_output(const Ops& ops) {
    SessionOptions options;
    options.sequences = net_.x.shape.rank() > 1 ? net_.x.shape[0] : 1;
    options.activations = ActivationMode::f32;
    LOOM_ASSIGN(Session session, Session::create(*network_, ops, pool_, net_.x.shape, options));
    LOOM_ASSIGN(const Tensor y, session.forward(net_.x, 0, 1));
    return values_of(y);
  }
  const Network& network() const { return *network_; }
  // Pinned: x, mask and r may be changed between runs.
  const Tensor& x() const { return net_.x; }
  const Tensor& mask() const { return net_.mask; }
  const Tensor& r() const { return r_; }
  const Tensor& y() const { return y_; }
  const Tensor& dx() const { return dx_; }  // empty for ids
  const Tensor& gradient(size_t param) const { return gradients_[param]; }

 private:
  GoldenRun() : pool_(2, true) {}

  Status load(const GoldenCase& c, const Golden& golden) {
    GridSpec grid(1, 1, 1, 1);
    LOOM_TRY(grid.put({0, 0, 0, 0}, {c.layer}));
    LOOM_ASSIGN(Network network, Network::finalize(grid, c.input));
    network_ = std::make_unique<Network>(std::move(network));
    for (size_t i = 0; i < network_->params().size(); ++i) {
      const Param& p = network_->params()[i];
      LOOM_ASSIGN(const std::vector<float> values, golden.values("p/" + golden_param(p)));
      if (static_cast<int64_t>(values.size()) != p.spec.shape.count()) {
        return invalid(
            cat(p.path, " is ", p.spec.shape.str(), ", the golden has ", values.size(), " values"));
      }
      const int64_t cols = p.spec.matrix() ? p.spec.shape[1] : 1;
      const auto rows = [&](int64_t first, int64_t count, float* out) -> Status {
        std::copy_n(values.begin() + first * cols, count * cols, out);
        return {};
      };
      LOOM_TRY(network_->load_param(static_cast<int>(i), DType::f32, rows, pool_));
    }
    return {};
  }

  Status build(const GoldenCase& c, const Ops& ops, bool gradients) {
    Trace trace(DType::f32, gradients);
    TraceOptions options;
    options.training = gradients;
    options.masked = c.masked;
    LOOM_ASSIGN(net_, trace_network(*network_, trace, options));
    y_ = net_.y;
    std::vector<Tensor*> pins = {&net_.x, &net_.step, &y_};
    if (!net_.mask.empty()) pins.push_back(&net_.mask);
    if (gradients) {
      LOOM_TRY(differentiate(trace));
      pins.push_back(&r_);
      if (!dx_.empty()) pins.push_back(&dx_);
      for (Tensor& g : gradients_) {
        if (!g.empty()) pins.push_back(&g);
      }
    }
    LOOM_ASSIGN(Program program, Program::compile(std::move(trace), pins, ops, pool_));
    program_ = std::make_unique<Program>(std::move(program));
    return {};
  }

  // L = sum of r * y and the losses of layers: dL/dy is r.
  Status differentiate(Trace& trace) {
    Recorder recorder(trace);
    r_ = trace.fresh(net_.y.shape);
    const Tensor dy = trace.fresh(net_.y.shape);  // a seed may be added to where y is read again
    LOOM_TRY(recorder.unary({r_, dy}));
    std::vector<Tensor> weights;
    for (const AddedLoss& loss : net_.losses) {
      weights.push_back(trace.fresh(loss.value.shape));
      LOOM_TRY(recorder.fill({weights.back(), loss.weight}));
    }
    Differentiator d(trace);
    const bool ids = net_.x.dtype == DType::i32;
    if (!ids) d.want(net_.x);
    for (const Param& p : network_->params()) {
      if (p.spec.trained) d.want(p.tensor);
    }
    d.seed(net_.y, dy);
    for (size_t i = 0; i < weights.size(); ++i) d.seed(net_.losses[i].value, weights[i]);
    LOOM_TRY(d.run());
    if (!ids) dx_ = d.gradient(net_.x);
    for (const Param& p : network_->params()) gradients_.push_back(d.gradient(p.tensor));
    return {};
  }

  Status fill(const Golden& golden) {
    LOOM_ASSIGN(const std::vector<float> x, golden.values("x"));
    for (size_t i = 0; i < x.size(); ++i) {
      if (net_.x.dtype == DType::i32) {
        net_.x.i32()[i] = static_cast<int32_t>(x[i]);
      } else {
        net_.x.f32()[i] = x[i];
      }
    }
    if (!net_.mask.empty()) {
      LOOM_ASSIGN(const std::vector<float> mask, golden.values("mask"));
      std::copy(mask.begin(), mask.end(), net_.mask.f32());
    }
    if (!r_.empty()) {
      LOOM_ASSIGN(const std::vector<float> r, golden.loss_weights());
      std::copy_n(r.begin(), r_.shape.count(), r_.f32());
    }
    return {};
  }

  ThreadPool pool_;
  std::unique_ptr<Network> network_;
  TracedNetwork net_;
  Tensor r_, y_, dx_;
  std::vector<Tensor> gradients_;
  std::unique_ptr<Program> program_;
};

}  // namespace loom::core::test
