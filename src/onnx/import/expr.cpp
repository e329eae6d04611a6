// Functions of elements and rows, and which of ours they are: every candidate is computed beside
// them on probes, in double. An operator's meaning is that of its row (onnx/operators). Probes are
// on both sides of every kink, of every number in the function, and far out; candidates
// differ by 4e-4 at least somewhere among them (the two forms of GELU), the tolerance is 2e-5 of
// the function's size.
#include <algorithm>
#include <array>
#include <limits>

#include "backend/reference/reference.hpp"
#include "onnx/import/values.hpp"
#include "onnx/operators/alone.hpp"

namespace loom::core {
namespace {

using evaluate::Operator;
using evaluate::Slot;
using evaluate::Value;
using Row = std::array<double, 4>;
using Rows = std::vector<Row>;
constexpr double kTolerance = 2e-5;
constexpr int64_t kProbeMemory = int64_t{1} << 24;

// The row of an operator of an expression, and what its node says. The two forms of Gelu have names
// of their own here.
OnnxNode node_of(const Expr& e) {
  OnnxNode node;
  node.op = e.op.starts_with("Gelu") ? "Gelu" : e.op;
  node.outputs = {"y"};
  if (e.op == "GeluTanh") node.attributes = {onnx_attribute("approximate", std::string("tanh"))};
  const std::string_view function = evaluate::layer_of(e.op).function;
  const bool sloped = function == "leaky_relu" || function == "elu";
  if (sloped) node.attributes = {onnx_attribute("alpha", static_cast<float>(e.number))};
  return node;
}

// An expression on rows of four, computed by the rows of its operators in double.
class Computing {
 public:
  explicit Computing(const Expr* inner) : inner_(inner), alone_(reference_ops(), kProbeMemory) {}
  // NaN where an operator refuses its inputs.
  Rows run(const Expr& f, const Rows& x);

 private:
  Result<Value> value(const Expr& e, const Value& x);
  Result<Value> number(double v);
  Result<Value> mean(const Value& x);
  const Expr* inner_;
  evaluate::Alone alone_;
};

Result<Value> Computing::number(double v) {
  LOOM_ASSIGN(Value made, Value::make(alone_.memory(), OnnxType::f64, {1, 1}));
  *made.data<double>() = v;
  return made;
}

Result<Value> Computing::mean(const Value& x) {
  LOOM_ASSIGN(Value made, Value::make(alone_.memory(), OnnxType::f64, {x.dims[0], 1}));
  for (int64_t r = 0; r < x.dims[0]; ++r) {
    const int64_t step = x.dims[1] == 1 ? 0 : 1;
    const double* v = x.data<double>() + r * x.dims[1];
    made.data<double>()[r] = (v[0] + v[step] + v[2 * step] + v[3 * step]) / 4;
  }
  return made;
}

Result<Value> Computing::value(const Expr& e, const Value& x) {
  if (&e == inner_ || e.op == "x") return x;
  if (e.op == "number") return number(e.number);
  std::vector<Slot> in;
  for (const ExprRef& arg : e.args) {
    LOOM_ASSIGN(Value made, value(*arg, x));
    in.push_back(Slot::of(std::move(made)));
  }
  if (e.op == "mean") return mean(in[0].tensor);
  const OnnxNode node = node_of(e);
  const Operator* row = evaluate::find_common_operator("", node.op);
  if (row == nullptr) return unsupported(node.op);
  if (e.args.size() == 3) {  // Where, whose test is true where it is not 0
    LOOM_ASSIGN(in[0].tensor, evaluate::cast(alone_.memory(), in[0].tensor, OnnxType::boolean));
  }
  constexpr int64_t kOpset = 20;
  LOOM_ASSIGN(const std::vector<Slot> made, alone_.run(*row, node, kOpset, in));
  return evaluate::cast(alone_.memory(), made[0].tensor, OnnxType::f64);
}

Rows Computing::run(const Expr& f, const Rows& x) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const auto count = static_cast<int64_t>(x.size());
  Rows out(x.size(), Row{kNan, kNan, kNan, kNan});
  Result<Value> given = Value::make(alone_.memory(), OnnxType::f64, {count, 4});
  if (!given.ok()) return out;
  for (size_t i = 0; i < x.size(); ++i) std::ranges::copy(x[i], given->data<double>() + 4 * i);
  const Result<Value> made = value(f, *given);
  if (!made.ok()) return out;
  const Result<Value> whole = evaluate::expanded(alone_.memory(), *made, {count, 4});
  if (!whole.ok()) return out;
  for (size_t i = 0; i < x.size(); ++i)
    std::copy_n(whole->data<double>() + 4 * i, 4, out[i].begin());
  return out;
}

// Whether x occurs in `e` outside of `inner`.
bool outside(const Expr& e, const Expr* inner) {
  if (&e == inner) return false;
  return e.op == "x" ||
         std::ranges::any_of(e.args, [&](const ExprRef& a) { return outside(*a, inner); });
}

constexpr Row kProbes[] = {{-9, -4.2, -3.1, -2.7},     {-2.2, -1.5, -1.1, -0.75},
                           {-0.5, -0.2, -0.03, 0.0},   {0.02, 0.3, 0.6, 0.9},
                           {1.2, 1.75, 2.3, 2.71},     {2.95, 3.2, 4.6, 8.5},
                           {19.5, 20.5, -19.5, -20.5}, {1.5, -0.4, 0.25, -3}};
// Where a bound that is far out shows. A function may be written so that it overflows there.
constexpr Row kFarProbes[] = {{-35, 35, -120, 120}, {-3e3, 3e3, -1e6, 1e6}, {-1e18, 1e18, 0, 1}};

// The numbers of a function: where its kinks are.
void numbers_of(const Expr& e, std::vector<double>& out) {
  if (e.op == "number") out.push_back(e.number);
  for (const ExprRef& a : e.args) numbers_of(*a, out);
}

// Probes on both sides of every number of `f`.
Rows kinks_of(const Expr& f) {
  constexpr double kAside = 1e-2;
  std::vector<double> numbers;
  numbers_of(f, numbers);
  Rows out;
  for (const double c : numbers) {
    const double aside = kAside * (1 + (c < 0 ? -c : c));
    out.push_back({c - aside, c + aside, -c - aside, -c + aside});
  }
  return out;
}

// Two results of one probe. `size`: of the function, below which nothing is told apart.
bool near(const Row& got, const Row& want, double size, bool far) {
  for (size_t i = 0; i < 4; ++i) {
    if (far && !(got[i] - got[i] == 0)) continue;
    const double apart = got[i] > want[i] ? got[i] - want[i] : want[i] - got[i];
    const double wide = want[i] < 0 ? -want[i] : want[i];
    if (!(apart <= kTolerance * (size + wide))) return false;
  }
  return true;
}

// A function on all probes: near ones first.
struct Sampled {
  Rows x, y;
  double size = 0;  // the largest result on the near probes, 1 at most
};

constexpr double kFaint = 1e-7;

// With the ends of a line, and a faint row of mean 0, as the last two.
Sampled sampled(const Expr& f, const Expr* inner) {
  Sampled s;
  s.x.assign(std::begin(kProbes), std::end(kProbes));
  const Rows kinks = kinks_of(f);
  s.x.insert(s.x.end(), kinks.begin(), kinks.end());
  s.x.insert(s.x.end(), std::begin(kFarProbes), std::end(kFarProbes));
  s.x.push_back({0, 1, 0, 1});
  s.x.push_back({kFaint, -kFaint, kFaint, -kFaint});
  s.y = Computing(inner).run(f, s.x);
  for (size_t i = 0; i < std::size(kProbes); ++i) {
    for (const double v : s.y[i]) s.size = std::max(s.size, v < 0 ? -v : v);
  }
  s.size = std::min(s.size, 1.0);
  return s;
}

template <class F>
bool same(const Sampled& s, F candidate) {
  for (size_t i = 0; i + 2 < s.x.size(); ++i) {
    const bool far = i >= std::size(kProbes);
    if (!near(s.y[i], candidate(s.x[i]), s.size, far)) return false;
  }
  return true;
}

Row normalized(const Row& x, double eps, bool layer) {
  const double mean = layer ? (x[0] + x[1] + x[2] + x[3]) / 4 : 0;
  double squares = 0;
  for (const double v : x) squares += (v - mean) * (v - mean);
  Row out;
  for (size_t i = 0; i < 4; ++i) out[i] = (x[i] - mean) / __builtin_sqrt(squares / 4 + eps);
  return out;
}

// y = x / sqrt(mean square + eps): a faint row of mean 0 tells eps, the others whether it is so.
Recognized recognize_norm(const Sampled& s) {
  Recognized out;
  const double y = s.y.back()[0];
  const double eps = kFaint * kFaint / (y * y) - kFaint * kFaint;
  if (!(eps >= 0 && eps <= 1)) return out;
  out.eps = static_cast<double>(static_cast<float>(eps));
  for (const bool layer : {false, true}) {
    if (same(s, [&](const Row& x) { return normalized(x, eps, layer); }))
      out.kind = layer ? Recognized::Kind::layer : Recognized::Kind::rms;
  }
  return out;
}

}  // namespace

ExprRef expr_x() {
  static const ExprRef x = std::make_shared<const Expr>(Expr{"x", 0, {}, 1, false});
  return x;
}

ExprRef expr_number(double value) {
  return std::make_shared<const Expr>(Expr{"number", value, {}, 1, false});
}

ExprRef expr_of(std::string op, std::vector<ExprRef> args, double number) {
  Expr e{std::move(op), number, std::move(args), 1, false};
  e.rows = e.op == "mean";
  for (const ExprRef& a : e.args) {
    e.size += a->size;
    e.rows = e.rows || a->rows;
  }
  if (e.size > kMaxExpr) return nullptr;
  return std::make_shared<const Expr>(std::move(e));
}

bool expr_knows(const std::string& op, size_t args) {
  const Operator* row = evaluate::find_common_operator("", op);
  if (row == nullptr || (row->flags & Operator::function) == 0) return false;
  const evaluate::InputCount takes = row->inputs();
  return static_cast<size_t>(takes.max < 0 ? 2 : takes.min) == args;
}

Recognized recognize(const Expr& f, const Expr* inner) {
  Recognized out;
  if (inner != nullptr && outside(f, inner)) return out;
  const Sampled s = sampled(f, inner);
  if (f.rows && (inner == nullptr || !inner->rows)) return recognize_norm(s);
  for (int i = 0; i < kActivations; ++i) {
    const auto kind = static_cast<Activation>(i);
    const auto candidate = [&](Row x) {
      for (double& v : x) v = activate<double>(kind, v);
      return x;
    };
    if (!same(s, candidate)) continue;
    out.kind = Recognized::Kind::activation;
    out.activation = kind;
    return out;
  }
  const Row& ends = s.y[s.y.size() - 2];
  out.shift = ends[0];
  out.scale = ends[1] - ends[0];
  const auto line = [&](Row x) {
    for (double& v : x) v = out.scale * v + out.shift;
    return x;
  };
  if (same(s, line)) out.kind = Recognized::Kind::affine;
  return out;
}

std::vector<ExprRef> expr_parts(const ExprRef& f) {
  std::vector<ExprRef> out;
  for (const ExprRef& arg : f->args) {
    for (const ExprRef& part : expr_parts(arg)) {
      if (std::find(out.begin(), out.end(), part) == out.end()) out.push_back(part);
    }
  }
  out.push_back(f);
  return out;
}

}  // namespace loom::core
