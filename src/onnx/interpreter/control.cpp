// Graphs inside of nodes: If, Loop, Scan, SequenceMap. See body.hpp.
#include <algorithm>

#include "onnx/interpreter/families.hpp"

namespace loom::core::evaluate {
namespace {

constexpr int64_t kMaxSteps = int64_t{1} << 24;  // of a Loop

Status give_all(const Call& c, std::vector<Slot> made) {
  if (made.size() < c.out.size()) return c.bad("its graph gives fewer values than the node");
  for (size_t i = 0; i < c.out.size(); ++i) c.out[i] = std::move(made[i]);
  return {};
}

Result<bool> truth(const Call& c, const Slot& s) {
  if (s.kind != Slot::Kind::tensor || s.tensor.count() != 1 || s.tensor.type != OnnxType::boolean)
    return c.bad("a condition must be one bool");
  return *s.tensor.data<uint8_t>() != 0;
}

// Which of the node's graphs an attribute is.
int graph_of(const Call& c, std::string_view name) {
  int at = 0;
  for (const OnnxAttribute& a : c.node.attributes) {
    if (a.name == name && a.graphs.size() == 1) return at;
    at += static_cast<int>(a.graphs.size());
  }
  return -1;
}

Status if_operator(const Call& c) {
  LOOM_ASSIGN(const bool yes, truth(c, c.slot(0)));
  const int which = graph_of(c, yes ? "then_branch" : "else_branch");
  if (which < 0) return c.bad("a branch is missing");
  LOOM_ASSIGN(std::vector<Slot> made, run_body(c, *c.bodies[static_cast<size_t>(which)], {}));
  return give_all(c, std::move(made));
}

// Values of equal shape one after the other along a new axis.
Result<Value> stacked(const Call& c, const std::vector<Slot>& list, int64_t axis) {
  const Value& first = list[0].tensor;
  LOOM_ASSIGN(const int at, c.axis(axis, first.rank() + 1));
  Dims dims = first.dims;
  dims.insert(dims.begin() + at, static_cast<int64_t>(list.size()));
  LOOM_ASSIGN(Value y, c.make(first.type, dims));
  const Dims steps = steps_of(dims);
  Dims to = steps;
  to.erase(to.begin() + at);
  for (size_t i = 0; i < list.size(); ++i) {
    const Value& x = list[i].tensor;
    if (list[i].kind != Slot::Kind::tensor || x.dims != first.dims || x.type != first.type)
      return c.bad("values of several steps that differ in shape or type");
    move(c, x, y,
         {x.dims, steps_of(x.dims), to, 0,
          static_cast<int64_t>(i) * steps[static_cast<size_t>(at)]});
  }
  return y;
}

// The value of a scan output without steps: the shape that the graph declares, or none.
Result<Value> of_no_steps(const Call& c, std::string_view attribute, size_t output, int64_t axis) {
  const OnnxValue& v = c.node.find(attribute)->graphs[0].outputs[output];
  Dims dims;
  for (const OnnxDim& d : v.shape) dims.push_back(std::max<int64_t>(0, d.extent));
  LOOM_ASSIGN(const int at, c.axis(axis, static_cast<int>(dims.size()) + 1));
  dims.insert(dims.begin() + at, 0);
  return c.make(v.type == OnnxType::undefined ? OnnxType::f32 : v.type, dims);
}

Result<Value> number_value(const Call& c, OnnxType type, int64_t v) {
  LOOM_ASSIGN(Value out, c.make(type, {}));
  if (type == OnnxType::i64)
    *out.data<int64_t>() = v;
  else
    *out.data<uint8_t>() = v != 0 ? 1 : 0;
  return out;
}

Status loop_operator(const Call& c) {
  const int which = graph_of(c, "body");
  if (which < 0) return c.bad("has no body");
  const Body& body = *c.bodies[static_cast<size_t>(which)];
  int64_t most = INT64_MAX;
  if (c.has(0)) {
    LOOM_ASSIGN(most, c.whole_number(0, INT64_MAX));
  }
  bool goes_on = true;
  if (c.has(1)) {
    LOOM_ASSIGN(goes_on, truth(c, c.slot(1)));
  }
  if (c.in.size() < 2 && body.inputs.size() > 2) return c.bad("has too few inputs");
  std::vector<Slot> state;
  for (size_t i = 2; i < c.in.size(); ++i) state.push_back(c.slot(i));
  if (body.outputs.size() < state.size() + 1) return c.bad("its body gives too few values");
  std::vector<std::vector<Slot>> scans(body.outputs.size() - 1 - state.size());
  for (int64_t i = 0; i < most && goes_on; ++i) {
    if (i >= kMaxSteps) return c.bad(cat("has not ended after ", kMaxSteps, " steps"));
    LOOM_ASSIGN(Value number, number_value(c, OnnxType::i64, i));
    LOOM_ASSIGN(Value condition, number_value(c, OnnxType::boolean, 1));
    std::vector<Slot> inputs{Slot::of(std::move(number)), Slot::of(std::move(condition))};
    for (Slot& s : state) inputs.push_back(std::move(s));
    LOOM_ASSIGN(std::vector<Slot> made, run_body(c, body, std::move(inputs)));
    LOOM_ASSIGN(goes_on, truth(c, made[0]));
    for (size_t k = 0; k < state.size(); ++k) state[k] = std::move(made[k + 1]);
    for (size_t k = 0; k < scans.size(); ++k)
      scans[k].push_back(std::move(made[k + 1 + state.size()]));
  }
  const size_t states = state.size();
  for (size_t k = 0; k < states && k < c.out.size(); ++k) c.out[k] = std::move(state[k]);
  for (size_t k = 0; k < scans.size() && k + states < c.out.size(); ++k) {
    LOOM_ASSIGN(Value y, scans[k].empty() ? of_no_steps(c, "body", k + 1 + states, 0)
                                          : stacked(c, scans[k], 0));
    LOOM_TRY(c.give(std::move(y), k + states));
  }
  return {};
}

// One place of an axis.
Result<Value> taken(const Call& c, const Value& x, int axis, int64_t i) {
  Dims dims = x.dims, steps = steps_of(x.dims);
  const int64_t first = i * steps[static_cast<size_t>(axis)];
  dims.erase(dims.begin() + axis);
  steps.erase(steps.begin() + axis);
  LOOM_ASSIGN(Value y, c.make(x.type, dims));
  move(c, x, y, {dims, steps, steps_of(dims), first, 0});
  return y;
}

int64_t entry(const Dims& list, size_t i) {
  return i < list.size() ? list[i] : 0;
}

// The states and scanned inputs of one Scan, and its attributes by number.
struct Scanned {
  std::vector<Slot> state, inputs;
};
Result<std::vector<Slot>> scan(const Call& c, const Body& body, Scanned s) {
  const Dims in_axes = c.list("scan_input_axes"), in_back = c.list("scan_input_directions");
  const Dims out_axes = c.list("scan_output_axes"), out_back = c.list("scan_output_directions");
  int64_t steps = -1;
  std::vector<int> axes;
  for (size_t k = 0; k < s.inputs.size(); ++k) {
    if (s.inputs[k].kind != Slot::Kind::tensor) return c.bad("what is scanned must be a tensor");
    const Value& x = s.inputs[k].tensor;
    LOOM_ASSIGN(const int axis, c.axis(entry(in_axes, k), x.rank()));
    axes.push_back(axis);
    const int64_t n = x.dims[static_cast<size_t>(axis)];
    if (steps >= 0 && n != steps) return c.bad("inputs of different lengths");
    steps = n;
  }
  const size_t states = s.state.size();
  if (body.outputs.size() < states) return c.bad("its body gives too few values");
  std::vector<std::vector<Slot>> scans(body.outputs.size() - states);
  for (int64_t i = 0; i < steps; ++i) {
    std::vector<Slot> inputs = std::move(s.state);
    for (size_t k = 0; k < s.inputs.size(); ++k) {
      const int64_t at = entry(in_back, k) != 0 ? steps - 1 - i : i;
      LOOM_ASSIGN(Value part, taken(c, s.inputs[k].tensor, axes[k], at));
      inputs.push_back(Slot::of(std::move(part)));
    }
    LOOM_ASSIGN(std::vector<Slot> made, run_body(c, body, std::move(inputs)));
    s.state.assign(std::make_move_iterator(made.begin()),
                   std::make_move_iterator(made.begin() + static_cast<int64_t>(states)));
    for (size_t k = 0; k < scans.size(); ++k) scans[k].push_back(std::move(made[k + states]));
  }
  std::vector<Slot> out = std::move(s.state);
  for (size_t k = 0; k < scans.size(); ++k) {
    if (entry(out_back, k) != 0) std::ranges::reverse(scans[k]);
    LOOM_ASSIGN(Value y, scans[k].empty() ? of_no_steps(c, "body", k + states, entry(out_axes, k))
                                          : stacked(c, scans[k], entry(out_axes, k)));
    out.push_back(Slot::of(std::move(y)));
  }
  return out;
}

// Before opset 9 every input has a batch in front, whose samples are scanned apart.
Status scan_batches(const Call& c, const Body& body, size_t scanned) {
  if (c.has(0)) return c.not_done("sequence lengths of Scan in opset 8");
  if (c.in.size() < 2 || !c.has(1)) return c.bad("has no inputs");
  const int64_t batch = c.value(1).rank() > 0 ? c.value(1).dims[0] : 0;
  std::vector<std::vector<Slot>> outputs(c.out.size());
  for (int64_t b = 0; b < batch; ++b) {
    Scanned s;
    for (size_t k = 1; k < c.in.size(); ++k) {
      if (!c.has(k) || c.value(k).rank() < 1 || c.value(k).dims[0] != batch)
        return c.bad("batches that differ");
      LOOM_ASSIGN(Value part, taken(c, c.value(k), 0, b));
      (k + scanned < c.in.size() ? s.state : s.inputs).push_back(Slot::of(std::move(part)));
    }
    LOOM_ASSIGN(std::vector<Slot> made, scan(c, body, std::move(s)));
    if (made.size() < outputs.size()) return c.bad("its body gives too few values");
    for (size_t k = 0; k < outputs.size(); ++k) outputs[k].push_back(std::move(made[k]));
  }
  if (batch == 0) return c.bad("an empty batch");
  for (size_t k = 0; k < outputs.size(); ++k) {
    LOOM_ASSIGN(Value y, stacked(c, outputs[k], 0));
    LOOM_TRY(c.give(std::move(y), k));
  }
  return {};
}

Status scan_operator(const Call& c) {
  const int which = graph_of(c, "body");
  const int64_t scanned = c.integer("num_scan_inputs", 0);
  if (which < 0 || scanned < 1 || scanned > static_cast<int64_t>(c.in.size()))
    return c.bad("has no body, or nothing to scan");
  const Body& body = *c.bodies[static_cast<size_t>(which)];
  if (c.opset < 9) {
    if (c.given("directions")) return c.not_done("directions of Scan in opset 8");
    return scan_batches(c, body, static_cast<size_t>(scanned));
  }
  Scanned s;
  for (size_t k = 0; k < c.in.size(); ++k)
    (static_cast<int64_t>(k) + scanned < static_cast<int64_t>(c.in.size()) ? s.state : s.inputs)
        .push_back(c.slot(k));
  LOOM_ASSIGN(std::vector<Slot> made, scan(c, body, std::move(s)));
  return give_all(c, std::move(made));
}

// The body for each element of a list; other lists go along, single values stay.
Status sequence_map(const Call& c) {
  const int which = graph_of(c, "body");
  if (which < 0 || c.slot(0).kind != Slot::Kind::sequence) return c.bad("takes a list and a body");
  const size_t n = c.slot(0).items->size();
  std::vector<std::vector<Slot>> lists(c.out.size());
  for (size_t i = 0; i < n; ++i) {
    std::vector<Slot> inputs;
    for (size_t k = 0; k < c.in.size(); ++k) {
      const Slot& s = c.slot(k);
      if (s.kind == Slot::Kind::sequence && s.items->size() != n)
        return c.bad("lists of different lengths");
      inputs.push_back(s.kind == Slot::Kind::sequence ? (*s.items)[i] : s);
    }
    LOOM_ASSIGN(std::vector<Slot> made,
                run_body(c, *c.bodies[static_cast<size_t>(which)], std::move(inputs)));
    if (made.size() < lists.size()) return c.bad("its body gives too few values");
    for (size_t k = 0; k < lists.size(); ++k) lists[k].push_back(std::move(made[k]));
  }
  for (size_t k = 0; k < lists.size(); ++k) c.out[k] = Slot::of(std::move(lists[k]));
  return {};
}

constexpr uint8_t kInner = Operator::graphs | Operator::lists;
constexpr Operator kControl[] = {
    {"", "If", if_operator, "a then_branch else_branch", "", kInner},
    {"", "Loop", loop_operator, "?a+ body", "", kInner},
    {"", "Scan", scan_operator,
     "a+ body num_scan_inputs scan_input_axes scan_input_directions scan_output_axes "
     "scan_output_directions directions",
     "", kInner},
    {"", "SequenceMap", sequence_map, "a+ body", "", kInner},
};

}  // namespace

std::span<const Operator> control_operators() {
  return kControl;
}

}  // namespace loom::core::evaluate
