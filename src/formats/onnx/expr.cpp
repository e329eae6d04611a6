// Functions of elements and rows, and which of ours they are: every candidate is computed beside
// them on probes, in double. Probes lie on both sides of every kink, of every number that stands in
// the function, and far out; candidates differ by 4e-4 at least somewhere among them (the two forms
// of GELU), the tolerance is 2e-5 of the function's size.
#include <algorithm>
#include <array>
#include <limits>

#include "base/dmath.hpp"
#include "formats/onnx/values.hpp"

namespace loom::core {
namespace {

using Row = std::array<double, 4>;
constexpr double kTolerance = 2e-5;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

double power(double x, double e) {
  if (e == 2) return x * x;
  if (e == 3) return x * x * x;
  if (e == 1) return x;
  if (e == -1) return 1 / x;
  if (e == 0.5) return __builtin_sqrt(x);
  if (e == -0.5) return 1 / __builtin_sqrt(x);
  return kNan;
}

using Unary = double (*)(double x, double parameter);
struct UnaryRow {
  std::string_view op;
  Unary f;
};
double logistic(double x) {
  return activate<double>(Activation::sigmoid, x);
}
constexpr UnaryRow kUnary[] = {
    {"Relu", [](double x, double) { return x > 0 ? x : 0.0; }},
    {"LeakyRelu", [](double x, double a) { return x < 0 ? a * x : x; }},
    {"Elu", [](double x, double a) { return x > 0 ? x : a * (dmath::exp(x) - 1); }},
    {"Sigmoid", [](double x, double) { return logistic(x); }},
    {"Tanh", [](double x, double) { return dmath::tanh(x); }},
    {"Erf", [](double x, double) { return dmath::erf(x); }},
    {"Exp", [](double x, double) { return dmath::exp(x); }},
    {"Log", [](double x, double) { return dmath::log(x); }},
    {"Sqrt", [](double x, double) { return __builtin_sqrt(x); }},
    {"Reciprocal", [](double x, double) { return 1 / x; }},
    {"Neg", [](double x, double) { return -x; }},
    {"Abs", [](double x, double) { return x < 0 ? -x : x; }},
    {"Softplus", [](double x, double) { return activate<double>(Activation::softplus, x); }},
    {"Mish", [](double x, double) { return activate<double>(Activation::mish, x); }},
    {"HardSwish", [](double x, double) { return activate<double>(Activation::hard_swish, x); }},
    {"GeluErf", [](double x, double) { return activate<double>(Activation::gelu_erf, x); }},
    {"GeluTanh", [](double x, double) { return activate<double>(Activation::gelu_tanh, x); }},
};

using Binary = double (*)(double a, double b);
struct BinaryRow {
  std::string_view op;
  Binary f;
};
constexpr BinaryRow kBinary[] = {
    {"Add", [](double a, double b) { return a + b; }},
    {"Sub", [](double a, double b) { return a - b; }},
    {"Mul", [](double a, double b) { return a * b; }},
    {"Div", [](double a, double b) { return a / b; }},
    {"Pow", power},
    {"Max", [](double a, double b) { return a > b ? a : b; }},
    {"Min", [](double a, double b) { return a < b ? a : b; }},
    {"Greater", [](double a, double b) { return a > b ? 1.0 : 0.0; }},
    {"GreaterOrEqual", [](double a, double b) { return a >= b ? 1.0 : 0.0; }},
    {"Less", [](double a, double b) { return a < b ? 1.0 : 0.0; }},
    {"LessOrEqual", [](double a, double b) { return a <= b ? 1.0 : 0.0; }},
};

Row evaluate(const Expr& e, const Row& x, const Expr* inner) {
  Row out{};
  if (&e == inner || e.op == "x") return x;
  if (e.op == "number") {
    out.fill(e.number);
    return out;
  }
  const Row a = evaluate(*e.args[0], x, inner);
  if (e.op == "mean") {
    out.fill((a[0] + a[1] + a[2] + a[3]) / 4);
    return out;
  }
  if (e.args.size() == 1) {
    for (const UnaryRow& row : kUnary) {
      if (row.op != e.op) continue;
      for (size_t i = 0; i < 4; ++i) out[i] = row.f(a[i], e.number);
    }
    return out;
  }
  const Row b = evaluate(*e.args[1], x, inner);
  if (e.args.size() == 3) {  // Where
    const Row c = evaluate(*e.args[2], x, inner);
    for (size_t i = 0; i < 4; ++i) out[i] = a[i] != 0 ? b[i] : c[i];
    return out;
  }
  for (const BinaryRow& row : kBinary) {
    if (row.op != e.op) continue;
    for (size_t i = 0; i < 4; ++i) out[i] = row.f(a[i], b[i]);
  }
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
std::vector<Row> kinks_of(const Expr& f) {
  constexpr double kAside = 1e-2;
  std::vector<double> numbers;
  numbers_of(f, numbers);
  std::vector<Row> out;
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

// The largest result on the near probes, 1 at most.
double size_of(const Expr& f, const Expr* inner) {
  double size = 0;
  for (const Row& probe : kProbes) {
    for (const double v : evaluate(f, probe, inner)) size = std::max(size, v < 0 ? -v : v);
  }
  return std::min(size, 1.0);
}

template <class F>
bool same(const Expr& f, const Expr* inner, F candidate) {
  const double size = size_of(f, inner);
  const auto agrees = [&](bool far) {
    return [&, far](const Row& probe) {
      return near(evaluate(f, probe, inner), candidate(probe), size, far);
    };
  };
  return std::ranges::all_of(kProbes, agrees(false)) &&
         std::ranges::all_of(kinks_of(f), agrees(true)) &&
         std::ranges::all_of(kFarProbes, agrees(true));
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
Recognized recognize_norm(const Expr& f, const Expr* inner) {
  constexpr double kFaint = 1e-7;
  Recognized out;
  const double y = evaluate(f, {kFaint, -kFaint, kFaint, -kFaint}, inner)[0];
  const double eps = kFaint * kFaint / (y * y) - kFaint * kFaint;
  if (!(eps >= 0 && eps <= 1)) return out;
  out.eps = static_cast<double>(static_cast<float>(eps));
  for (const bool layer : {false, true}) {
    if (same(f, inner, [&](const Row& x) { return normalized(x, eps, layer); }))
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
  const auto is = [&](const auto& row) { return row.op == op; };
  if (args == 1) return std::any_of(std::begin(kUnary), std::end(kUnary), is);
  if (args == 2) return std::any_of(std::begin(kBinary), std::end(kBinary), is);
  return args == 3 && op == "Where";
}

Recognized recognize(const Expr& f, const Expr* inner) {
  Recognized out;
  if (inner != nullptr && outside(f, inner)) return out;
  if (f.rows && (inner == nullptr || !inner->rows)) return recognize_norm(f, inner);
  for (int i = 0; i < kActivations; ++i) {
    const auto kind = static_cast<Activation>(i);
    const auto candidate = [&](Row x) {
      for (double& v : x) v = activate<double>(kind, v);
      return x;
    };
    if (!same(f, inner, candidate)) continue;
    out.kind = Recognized::Kind::activation;
    out.activation = kind;
    return out;
  }
  const Row ends = evaluate(f, {0, 1, 0, 1}, inner);
  out.shift = ends[0];
  out.scale = ends[1] - ends[0];
  const auto line = [&](Row x) {
    for (double& v : x) v = out.scale * v + out.shift;
    return x;
  };
  if (same(f, inner, line)) out.kind = Recognized::Kind::affine;
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
