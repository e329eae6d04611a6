// Running what plan.cpp made. See evaluator.hpp.
#include "onnx/interpreter/evaluator.hpp"

#include <algorithm>
#include <chrono>

#include "io/files/foreign_file.hpp"
#include "onnx/file/external.hpp"
#include "onnx/interpreter/body.hpp"
#include "ops/recording/recorder.hpp"

namespace loom::core::evaluate {
namespace {

constexpr int kMaxDepth = 64;  // graphs that run inside of graphs

Status run_function(const Call& c) {
  std::vector<Slot> inputs;
  for (size_t i = 0; i < c.bodies[0]->inputs.size(); ++i)
    inputs.push_back(i < c.in.size() ? c.slot(i) : Slot{});
  LOOM_ASSIGN(std::vector<Slot> made, run_body(c, *c.bodies[0], std::move(inputs)));
  for (size_t i = 0; i < made.size() && i < c.out.size(); ++i) c.out[i] = std::move(made[i]);
  return {};
}

}  // namespace

const Operator kFunctionCall = {"",    "function", run_function,
                                "?a+", "",         Operator::lists | Operator::graphs};

Status run_step(const Step& step, std::span<Slot> frame, Runtime& rt) {
  static const Slot kNothing;
  constexpr size_t kInlineInputs = 16;
  const Slot* inline_slots[kInlineInputs];
  Slot made_few[4];
  std::vector<const Slot*> heap_slots;
  std::vector<Slot> made_many;
  std::span<const Slot*> in(inline_slots, std::min(kInlineInputs, step.in.size()));
  if (step.in.size() > kInlineInputs) {
    heap_slots.resize(step.in.size());
    in = heap_slots;
  }
  for (size_t i = 0; i < step.in.size(); ++i) {
    in[i] = step.in[i] < 0 ? &kNothing : &frame[static_cast<size_t>(step.in[i])];
    const Slot::Kind kind = in[i]->kind;
    if ((step.op->flags & Operator::lists) != 0) continue;
    if (kind == Slot::Kind::tensor || (kind == Slot::Kind::absent && step.in[i] < 0 &&
                                       static_cast<int>(i) >= step.op->inputs().min))
      continue;
    return invalid(cat("node '", printable(step.node->name), "' (", printable(step.node->op),
                       "): input ", i, " is not a tensor"));
  }
  std::span<Slot> out(made_few, std::min<size_t>(4, step.out.size()));
  if (step.out.size() > 4) {
    made_many.resize(step.out.size());
    out = made_many;
  }
  Call call(*step.node, step.opset, rt, in, out);
  call.bodies = step.bodies;
  call.outer = frame;
  call.prepared = step.prepared.get();
  LOOM_TRY(step.op->run(call));
  for (size_t i = 0; i < step.out.size(); ++i) {
    if (step.out[i] < 0) continue;
    if (out[i].kind == Slot::Kind::absent) return call.not_done(cat("its output ", i));
    frame[static_cast<size_t>(step.out[i])] = std::move(out[i]);
  }
  return {};
}

static Status timed_step(const Step& step, std::span<Slot> frame, Runtime& rt) {
  const auto start = std::chrono::steady_clock::now();
  LOOM_TRY(run_step(step, frame, rt));
  const auto taken = std::chrono::steady_clock::now() - start;
  OperatorTime& time = (*rt.profile)[step.node->op];
  ++time.calls;
  time.nanoseconds += std::chrono::duration_cast<std::chrono::nanoseconds>(taken).count();
  return {};
}

Result<std::vector<Slot>> run_frame(const Body& body, std::vector<Slot> frame, Runtime& rt) {
  for (const Step& step : body.steps) {
    if (rt.profile == nullptr) {
      LOOM_TRY(run_step(step, frame, rt));
    } else {
      LOOM_TRY(timed_step(step, frame, rt));
    }
    for (const int i : step.release) frame[static_cast<size_t>(i)] = {};
  }
  std::vector<Slot> out;
  out.reserve(body.outputs.size());
  for (const int i : body.outputs) out.push_back(frame[static_cast<size_t>(i)]);
  return out;
}

Result<std::vector<Slot>> run_body(const Call& c, const Body& body, std::vector<Slot> inputs) {
  if (inputs.size() != body.inputs.size())
    return c.bad(cat("its graph takes ", body.inputs.size(), " values, ", inputs.size(), " given"));
  if (c.rt.depth >= kMaxDepth) return c.bad("graphs inside of graphs too deep");
  std::vector<Slot> frame = body.fixed;
  for (size_t i = 0; i < inputs.size(); ++i)
    frame[static_cast<size_t>(body.inputs[i])] = std::move(inputs[i]);
  for (const auto& [outside, here] : body.captures)
    frame[static_cast<size_t>(here)] = c.outer[static_cast<size_t>(outside)];
  Runtime deeper{c.rt.memory, c.rt.pool, c.rt.recorder, c.rt.depth + 1, c.rt.profile};
  return run_frame(body, std::move(frame), deeper);
}

struct Evaluator::Impl {
  Impl(MappedFile f, const Ops& ops, ThreadPool& pool, int64_t limit)
      : file(std::move(f)),
        memory(std::make_shared<Memory>(limit)),
        recorder(ops, pool, ActivationMode::f32),
        rt{*memory, pool, recorder} {}
  MappedFile file;
  std::shared_ptr<Memory> memory;
  Recorder recorder;
  Runtime rt;
  OnnxModel model;
  std::deque<OnnxNode> kept;
  std::vector<OnnxValue> inputs;
  std::unique_ptr<Body> body;
};

Evaluator::Evaluator() = default;
Evaluator::~Evaluator() = default;
Evaluator::Evaluator(Evaluator&&) noexcept = default;
Evaluator& Evaluator::operator=(Evaluator&&) noexcept = default;

Result<Evaluator> Evaluator::load(const FileRef& path, const Ops& ops, ThreadPool& pool,
                                  const EvaluatorOptions& options) {
  LOOM_ASSIGN(MappedFile file, MappedFile::open(path));
  if (const auto foreign = foreign_file(file.bytes(), path)) return *foreign;
  Evaluator out;
  out.impl_ = std::make_unique<Impl>(std::move(file), ops, pool, options.memory_limit);
  Impl& m = *out.impl_;
  LOOM_ASSIGN(m.model, parse_onnx_file(m.file.bytes(), path, OnnxReading::everything));
  LOOM_TRY(out.open(path));
  return out;
}

Result<Evaluator> Evaluator::of(OnnxModel model, const Ops& ops, ThreadPool& pool,
                                const EvaluatorOptions& options) {
  Evaluator out;
  out.impl_ = std::make_unique<Impl>(MappedFile(), ops, pool, options.memory_limit);
  out.impl_->model = std::move(model);
  LOOM_TRY(out.open(""));
  return out;
}

// Plans the model at hand.
Status Evaluator::open(const std::string& where) {
  Impl& m = *impl_;
  Result<std::unique_ptr<Body>> made = plan(m.model, m.rt, m.kept);
  if (!made.ok()) {
    Error error = made.error();
    if (error.where.empty()) error.where = where;
    return error;
  }
  m.body = std::move(*made);
  for (const OnnxValue& v : m.model.graph.inputs) {
    const auto same = [&](const OnnxTensor& t) { return t.name == v.name; };
    if (std::ranges::none_of(m.model.graph.initializers, same)) m.inputs.push_back(v);
  }
  return {};
}

const std::vector<OnnxValue>& Evaluator::inputs() const {
  return impl_->inputs;
}
const std::vector<OnnxValue>& Evaluator::outputs() const {
  return impl_->model.graph.outputs;
}
Memory& Evaluator::memory() {
  return *impl_->memory;
}
void Evaluator::set_profile(Profile* profile) {
  impl_->rt.profile = profile;
}
int64_t Evaluator::steps() const {
  return static_cast<int64_t>(impl_->body->steps.size());
}

namespace {

Status check_input(const OnnxValue& want, const Slot& have) {
  const std::string who = cat("input '", printable(want.name), "'");
  if (want.kind != OnnxKind::tensor) return {};
  if (have.kind != Slot::Kind::tensor) return invalid(cat(who, " must be a tensor"));
  const Value& v = have.tensor;
  if (want.type != OnnxType::undefined && v.type != want.type)
    return invalid(cat(who, " is ", onnx_type_name(want.type), " in the file, ",
                       onnx_type_name(v.type), " given"));
  if (!want.has_shape) return {};
  if (want.shape.size() != v.dims.size())
    return invalid(
        cat(who, " has ", want.shape.size(), " axes in the file, ", v.dims.size(), " given"));
  for (size_t a = 0; a < v.dims.size(); ++a) {
    if (want.shape[a].extent > 0 && want.shape[a].extent != v.dims[a])
      return invalid(cat(who, ": axis ", a, " is ", want.shape[a].extent, " in the file, ",
                         v.dims[a], " given"));
  }
  return {};
}

}  // namespace

Result<std::vector<Slot>> Evaluator::run(std::vector<Slot> inputs) {
  Impl& m = *impl_;
  if (inputs.size() != m.inputs.size())
    return invalid(cat("the graph takes ", m.inputs.size(), " inputs, ", inputs.size(), " given"));
  std::vector<Slot> frame = m.body->fixed;
  for (size_t i = 0; i < inputs.size(); ++i) {
    LOOM_TRY(check_input(m.inputs[i], inputs[i]));
    frame[static_cast<size_t>(m.body->inputs[i])] = std::move(inputs[i]);
  }
  return run_frame(*m.body, std::move(frame), m.rt);
}

}  // namespace loom::core::evaluate
