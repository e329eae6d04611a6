// Names become slots. Constants are folded by the same operators that run later. Unused steps are
// dropped. See body.hpp.
#include <algorithm>
#include <set>
#include <unordered_map>

#include "onnx/interpreter/body.hpp"

namespace loom::core::evaluate {
namespace {

constexpr int64_t kMaxFolded = int64_t{1} << 26;  // bytes of a folded value
constexpr int kMaxCalls = 64;                     // functions inside of functions

using Opsets = std::vector<std::pair<std::string, int64_t>>;

struct Scope {
  Body* body;
  Scope* outer;
  const Opsets* opsets;
  std::unordered_map<std::string, int> names;
};

std::string_view plain_domain(std::string_view domain) {
  return domain == "ai.onnx" ? std::string_view{} : domain;
}

class Planner {
 public:
  Planner(const OnnxModel& model, Runtime& rt, std::deque<OnnxNode>& kept)
      : model_(model), rt_(rt), kept_(kept) {}

  Result<std::unique_ptr<Body>> graph(const OnnxGraph& g, Scope* outer, const Opsets& opsets);

 private:
  int slot_of(Scope& s, const std::string& name, Slot fixed = {});
  int find(Scope& s, const std::string& name);
  Status node(const OnnxNode& n, Scope& s);
  Status inputs(const OnnxNode& n, Scope& s, Step& step);
  Result<std::unique_ptr<Body>> function(const OnnxFunction& f, const OnnxNode& call);
  OnnxNode filled(const OnnxNode& n, const OnnxFunction& f, const OnnxNode& call) const;
  Result<bool> folded(Step& step, Scope& s);
  Result<int64_t> opset_of(const OnnxNode& n, const Scope& s) const;
  const OnnxFunction* function_of(const OnnxNode& n) const;
  Error at(const OnnxNode& n, std::string_view why) const {
    return unsupported(cat(
        "node '", printable(n.name.empty() && !n.outputs.empty() ? n.outputs[0] : n.name), "' (",
        n.domain.empty() ? "" : cat(printable(n.domain), ":"), printable(n.op), "): ", why));
  }

  Error unknown(const OnnxNode& n) const {
    if (n.domain.starts_with("com.microsoft.nchwc") || n.domain.starts_with("com.ms.internal"))
      return at(n,
                "ONNX Runtime wrote this file for one kind of processor; save it again with "
                "ORT_ENABLE_EXTENDED in place of ORT_ENABLE_ALL");
    return at(n, "an operator that Loom does not know");
  }

  const OnnxModel& model_;
  Runtime& rt_;
  std::deque<OnnxNode>& kept_;
  int calls_ = 0;
};

int Planner::slot_of(Scope& s, const std::string& name, Slot fixed) {
  const auto at = static_cast<int>(s.body->fixed.size());
  s.body->fixed.push_back(std::move(fixed));
  if (!name.empty()) s.names[name] = at;
  return at;
}

int Planner::find(Scope& s, const std::string& name) {
  const auto have = s.names.find(name);
  if (have != s.names.end()) return have->second;
  if (s.outer == nullptr) return -1;
  const int outside = find(*s.outer, name);
  if (outside < 0) return -1;
  const Slot& fixed = s.outer->body->fixed[static_cast<size_t>(outside)];
  const int here = slot_of(s, name, fixed);
  if (fixed.kind == Slot::Kind::absent) s.body->captures.emplace_back(outside, here);
  return here;
}

Result<int64_t> Planner::opset_of(const OnnxNode& n, const Scope& s) const {
  for (const auto& [domain, version] : *s.opsets) {
    if (plain_domain(domain) == plain_domain(n.domain)) return version;
  }
  return at(n, "the model imports no operator set of this domain");
}

const OnnxFunction* Planner::function_of(const OnnxNode& n) const {
  for (const OnnxFunction& f : model_.functions) {
    if (f.name == n.op && plain_domain(f.domain) == plain_domain(n.domain)) return &f;
  }
  return nullptr;
}

// A node of a function with the attributes of the call in the place of references.
OnnxNode Planner::filled(const OnnxNode& n, const OnnxFunction& f, const OnnxNode& call) const {
  OnnxNode out = n;
  out.attributes.clear();
  for (OnnxAttribute a : n.attributes) {
    if (!a.reference.empty()) {
      const OnnxAttribute* have = call.find(a.reference);
      for (const OnnxAttribute& d : f.defaults) {
        if (have == nullptr && d.name == a.reference) have = &d;
      }
      if (have == nullptr) continue;  // the operator's own default
      const std::string name = a.name;
      a = *have;
      a.name = name;
    }
    for (OnnxGraph& g : a.graphs) {
      for (OnnxNode& inner : g.nodes) inner = filled(inner, f, call);
    }
    out.attributes.push_back(std::move(a));
  }
  return out;
}

Result<std::unique_ptr<Body>> Planner::function(const OnnxFunction& f, const OnnxNode& call) {
  if (++calls_ > kMaxCalls) return at(call, "functions inside of functions too deep");
  auto body = std::make_unique<Body>();
  Scope s{body.get(), nullptr, &f.opsets, {}};
  for (const std::string& name : f.inputs) body->inputs.push_back(slot_of(s, name));
  for (const OnnxNode& n : f.nodes) LOOM_TRY(node(kept_.emplace_back(filled(n, f, call)), s));
  for (const std::string& name : f.outputs) {
    const int out = find(s, name);
    if (out < 0) return at(call, cat("no node of the function gives '", printable(name), "'"));
    body->outputs.push_back(out);
  }
  --calls_;
  return body;
}

Status Planner::inputs(const OnnxNode& n, Scope& s, Step& step) {
  for (const std::string& name : n.inputs) {
    const int from = name.empty() ? -1 : find(s, name);
    if (!name.empty() && from < 0)
      return invalid(cat("node '", printable(n.name), "' (", printable(n.op), ") reads '",
                         printable(name), "', which nothing before it gives"));
    step.in.push_back(from);
  }
  while (!step.in.empty() && step.in.back() < 0) step.in.pop_back();
  return {};
}

Status Planner::node(const OnnxNode& n, Scope& s) {
  Step step;
  step.node = &n;
  LOOM_TRY(inputs(n, s, step));
  if (const OnnxFunction* f = function_of(n)) {
    step.op = &kFunctionCall;
    LOOM_ASSIGN(auto body, function(*f, n));
    step.bodies.push_back(std::move(body));
  } else {
    LOOM_ASSIGN(step.opset, opset_of(n, s));
    step.op = find_operator(plain_domain(n.domain), n.op);
    if (step.op == nullptr) return unknown(n);
    for (const OnnxAttribute& a : n.attributes) {
      if (!step.op->knows_attribute(a.name))
        return at(n, cat("its attribute '", printable(a.name), "' is not known"));
      for (const OnnxGraph& g : a.graphs) {
        LOOM_ASSIGN(auto body, graph(g, &s, *s.opsets));
        for (const auto& capture : body->captures) step.around.push_back(capture.first);
        step.bodies.push_back(std::move(body));
      }
    }
  }
  const auto given = static_cast<int>(step.in.size());
  const InputCount takes = step.op->inputs();
  if (given < takes.min || (takes.max >= 0 && given > takes.max))
    return at(n, cat("has ", given, " inputs"));
  LOOM_ASSIGN(const bool constant, folded(step, s));
  if (constant) return {};
  LOOM_TRY(prepare_step(step, *s.body, rt_));
  for (const std::string& name : n.outputs)
    step.out.push_back(name.empty() ? -1 : slot_of(s, name));
  s.body->steps.push_back(std::move(step));
  return {};
}

// Runs a step whose inputs are all known; false where they are not, or where it makes too much.
Result<bool> Planner::folded(Step& step, Scope& s) {
  if ((step.op->flags & (Operator::random | Operator::graphs)) != 0) return false;
  for (const int i : step.in) {
    if (i >= 0 && s.body->fixed[static_cast<size_t>(i)].kind == Slot::Kind::absent) return false;
  }
  std::vector<Slot> frame;
  for (int& i : step.in) {
    if (i >= 0) frame.push_back(s.body->fixed[static_cast<size_t>(i)]);
  }
  Step alone;
  alone.node = step.node, alone.op = step.op, alone.opset = step.opset;
  int next = 0;
  for (const int i : step.in) alone.in.push_back(i < 0 ? -1 : next++);
  for (const std::string& name : step.node->outputs) {
    alone.out.push_back(name.empty() ? -1 : next++);
    if (!name.empty()) frame.emplace_back();
  }
  LOOM_TRY(run_step(alone, frame, rt_));
  for (const int i : alone.out) {
    if (i < 0) continue;
    const Slot& made = frame[static_cast<size_t>(i)];
    if (made.kind == Slot::Kind::tensor && made.tensor.bytes() > kMaxFolded) return false;
  }
  for (size_t k = 0; k < alone.out.size(); ++k) {
    if (alone.out[k] >= 0)
      slot_of(s, step.node->outputs[k], frame[static_cast<size_t>(alone.out[k])]);
  }
  return true;
}

// Steps whose results are not read are dropped; a value is released after its last read.
void tidy(Body& body) {
  std::vector<bool> needed(body.fixed.size(), false);
  const std::set<int> kept(body.outputs.begin(), body.outputs.end());
  for (const int i : body.outputs) needed[static_cast<size_t>(i)] = true;
  std::vector<Step> steps;
  for (size_t k = body.steps.size(); k-- > 0;) {
    Step& step = body.steps[k];
    const auto is_needed = [&](int i) { return i >= 0 && needed[static_cast<size_t>(i)]; };
    if (std::ranges::none_of(step.out, is_needed)) continue;
    for (const auto* list : {&step.in, &step.around}) {
      for (const int i : *list) {
        if (i < 0) continue;
        const auto slot_index = static_cast<size_t>(i);
        const bool last = !needed[slot_index];
        needed[slot_index] = true;
        if (last && body.fixed[slot_index].kind == Slot::Kind::absent) step.release.push_back(i);
      }
    }
    for (const int i : step.out) {
      if (i >= 0 && !is_needed(i)) step.release.push_back(i);
    }
    steps.push_back(std::move(step));
  }
  std::ranges::reverse(steps);
  body.steps = std::move(steps);
}

Result<std::unique_ptr<Body>> Planner::graph(const OnnxGraph& g, Scope* outer,
                                             const Opsets& opsets) {
  auto body = std::make_unique<Body>();
  Scope s{body.get(), outer, &opsets, {}};
  std::unordered_map<std::string_view, const OnnxTensor*> known;
  for (const OnnxTensor& t : g.initializers) known[t.name] = &t;
  for (const OnnxValue& v : g.inputs) {
    if (known.find(v.name) == known.end()) body->inputs.push_back(slot_of(s, v.name));
  }
  for (const OnnxTensor& t : g.initializers) {
    LOOM_ASSIGN(Value v, value_of(rt_.memory, t));
    slot_of(s, t.name, Slot::of(std::move(v)));
  }
  for (const OnnxNode& n : g.nodes) LOOM_TRY(node(n, s));
  for (const OnnxValue& v : g.outputs) {
    const int out = find(s, v.name);
    if (out < 0) return invalid(cat("no node gives the output '", printable(v.name), "'"));
    body->outputs.push_back(out);
  }
  LOOM_TRY(fuse(*body, rt_));
  tidy(*body);
  return body;
}

}  // namespace

Status prepare_step(Step& step, const Body& body, Runtime& rt) {
  if (step.op->prepare == nullptr) return {};
  static const Slot kNothing;
  std::vector<const Slot*> in;
  for (const int i : step.in) in.push_back(i < 0 ? &kNothing : &body.fixed[static_cast<size_t>(i)]);
  Call call(*step.node, step.opset, rt, in, {});
  LOOM_ASSIGN(step.prepared, step.op->prepare(call));
  return {};
}

Result<std::unique_ptr<Body>> plan(const OnnxModel& model, Runtime& rt,
                                   std::deque<OnnxNode>& kept) {
  return Planner(model, rt, kept).graph(model.graph, nullptr, model.opsets);
}

}  // namespace loom::core::evaluate
