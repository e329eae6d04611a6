// SelectiveScan: the mixer of Mamba (Gu and Dao, 2023) and Mamba-2 (Dao and Gu, 2024).
// docs/decisions/0120 has the design.
//   [x, z] = Win u without heads, [z, x, B, C, d] = Win u with heads
//   x = act(conv(x)); with heads also B and C
//   [d, B, C] = Wselect x and d = Wstep d without heads
//   y = scan(x, softplus(d + step_bias), -exp(A_log), B, C, D) * silu(z), with norms if they are
//   set out = Wout y
// The state of a sequence is the window of the convolution, the oldest step first, then that of the
// scan. Rows are computed in the order of time, so chunks of any size give the same bits.
#include "base/text.hpp"
#include "layers/core/field_tables.hpp"
#include "layers/core/forward_call.hpp"
#include "layers/core/layer.hpp"
#include "ops/activation.hpp"

namespace loom::core {
namespace {

using namespace fields::selective_scan;

struct Sizes {
  int64_t width, inner, numbers, heads, groups, rank, kernel;
  bool single;  // one rate for each head
  explicit Sizes(const LayerConfig& c)
      : width(c.integer(kWidth)),
        inner(c.integer(kInner)),
        numbers(c.integer(kState)),
        heads(c.integer(kHeads) > 0 ? c.integer(kHeads) : inner),
        groups(c.integer(kGroups)),
        rank(c.integer(kRank) > 0 ? c.integer(kRank) : (width + 15) / 16),
        kernel(c.integer(kKernel)),
        single(c.integer(kHeads) > 0) {}
  int64_t mixed() const { return groups * numbers; }  // of B, and of C
  int64_t convolved() const { return single ? inner + 2 * mixed() : inner; }
  int64_t projected() const { return inner + convolved() + (single ? heads : 0); }
  int64_t window() const { return (kernel - 1) * convolved(); }
};

// Parameters that a layer has, in the order of params(); -1 means absent.
struct Indices {
  int in = 0, in_bias = -1, conv = -1, conv_bias = -1, select = -1, step = -1, step_bias = -1;
  int rates = -1, through = -1, step_norm = -1, b_norm = -1, c_norm = -1, norm = -1;
  int out = -1, out_bias = -1;
};

struct Params {
  Indices at;
  std::vector<ParamSpec> specs;
  explicit Params(const LayerConfig& c) {
    const Sizes s(c);
    const bool heads = s.single, bias = c.flag(kBias);
    add(at.in, {"in", Shape{s.projected(), s.width}, Init::glorot});
    if (bias) add(at.in_bias, {"in_bias", Shape{s.projected()}});
    add(at.conv,
        {"conv", Shape{s.convolved() * s.kernel}, Init::ones, true, 1.0 / double(s.kernel)});
    if (c.flag(kConvBias)) add(at.conv_bias, {"conv_bias", Shape{s.convolved()}});
    if (!heads) {
      add(at.select, {"select", Shape{s.rank + 2 * s.numbers, s.inner}, Init::glorot});
      add(at.step, {"step", Shape{s.inner, s.rank}, Init::glorot});
    }
    // softplus(-4.6) = 0.01, the middle of the steps that Mamba begins with.
    add(at.step_bias, {"step_bias", Shape{s.heads}, Init::ones, true, -4.6});
    ParamSpec rates{"A_log", Shape{heads ? s.heads : s.inner * s.numbers}, Init::log_range};
    rates.table = heads ? Shape{s.heads} : Shape{s.inner, s.numbers};
    add(at.rates, rates);
    add(at.through, {"D", Shape{s.heads}, Init::ones});
    if (!heads && c.text(kStepNorm) == "weighted") {
      add(at.step_norm, {"step_norm", Shape{s.rank}, Init::ones});
      add(at.b_norm, {"b_norm", Shape{s.numbers}, Init::ones});
      add(at.c_norm, {"c_norm", Shape{s.numbers}, Init::ones});
    }
    if (c.text(kNorm) != "none") add(at.norm, {"norm", Shape{s.inner}, Init::ones});
    add(at.out, {"out", Shape{s.width, s.inner}, Init::glorot});
    if (bias) add(at.out_bias, {"out_bias", Shape{s.width}});
  }

 private:
  void add(int& index, ParamSpec spec) {
    index = static_cast<int>(specs.size());
    specs.push_back(std::move(spec));
  }
};

void params(const LayerConfig& c, std::vector<ParamSpec>& out) {
  for (ParamSpec& spec : Params(c).specs) out.push_back(std::move(spec));
}

Status check_text(const LayerConfig& c, int field, std::string_view name,
                  std::initializer_list<std::string_view> known) {
  for (const std::string_view word : known) {
    if (c.text(field) == word) return {};
  }
  return invalid(cat("SelectiveScan: unknown ", name, " '", printable(c.text(field)), "'"));
}

Result<Shape> infer(const LayerConfig& c, const Shape& in) {
  const Sizes s(c);
  if (in.rank() < 2 || in.last() != s.width) {
    return invalid(cat("SelectiveScan: input ", in.str(), " must be [batch, time, ", s.width, "]"));
  }
  if (s.inner % s.heads != 0)
    return invalid(cat("SelectiveScan: heads ", s.heads, " must divide inner ", s.inner));
  if (s.heads % s.groups != 0 || (!s.single && s.groups != 1)) {
    return invalid(
        cat("SelectiveScan: groups ", s.groups, " must divide heads ", c.integer(kHeads)));
  }
  if (c.text(kNorm) != "none" && s.inner % s.groups != 0)
    return invalid(cat("SelectiveScan: groups ", s.groups, " must divide inner ", s.inner));
  LOOM_TRY(check_text(c, kNorm, "norm", {"none", "gated", "before_gate"}));
  LOOM_TRY(check_text(c, kStepNorm, "step_norm", {"none", "plain", "weighted"}));
  LOOM_TRY(parse_activation(c.text(kActivation)));
  return in;
}

StateSpec state(const LayerConfig& c) {
  const Sizes s(c);
  return {0, 0, s.window() + s.inner * s.numbers};
}

// The recording of one pass over rows [R, ..].
struct Scan {
  ForwardCall& call;
  const LayerConfig& c;
  Sizes s;
  Indices at;
  int64_t rows;

  Tensor param(int i) const { return i < 0 ? Tensor{} : call.param(static_cast<size_t>(i)); }
  Result<Tensor> fresh(int64_t cols) const { return call.tensor(Shape{rows, cols}); }
  float real(int field) const { return static_cast<float>(c.real(field)); }

  Result<Tensor> product(const Tensor& x, int weight, int bias = -1) const {
    const Tensor w = param(weight);
    LOOM_ASSIGN(const Tensor y, fresh(w.rows()));
    LOOM_TRY(call.ops().matmul({x, w, param(bias), y}));
    return y;
  }
  Result<Tensor> unary(const Tensor& x, UnaryKind kind) const {
    LOOM_ASSIGN(const Tensor y, call.tensor(Shape{x.rows(), x.cols()}));
    LOOM_TRY(call.ops().unary({x, y, kind}));
    return y;
  }
  Result<Tensor> binary(const Tensor& a, const Tensor& b, BinaryKind kind) const {
    LOOM_ASSIGN(const Tensor y, call.tensor(Shape{a.rows(), a.cols()}));
    LOOM_TRY(call.ops().binary({a, b, y, kind}));
    return y;
  }
  // factor * x, for a part of a wider tensor too.
  Result<Tensor> scaled(const Tensor& x, int field) const {
    if (real(field) == 1.0f) return x;
    LOOM_ASSIGN(const Tensor factor, call.constant(real(field)));
    return binary(x, factor, BinaryKind::mul);
  }
  Result<Tensor> normed(const Tensor& x, int gamma, int eps, int64_t segments = 1) const {
    NormArgs n;
    n.x = x;
    n.gamma = param(gamma);
    n.eps = real(eps);
    n.segments = segments;
    LOOM_ASSIGN(n.y, fresh(x.cols()));
    LOOM_TRY(call.ops().norm(n));
    return n.y;
  }
  Tensor memory(int64_t first, int64_t count) const {
    if (!call.stateful() || count == 0) return {};
    return slice_cols(call.state(), first, count);
  }

  Result<Tensor> convolved(const Tensor& x) const;
  Result<Tensor> scan(const Tensor& x, const Tensor& step, const Tensor& b,
                      const Tensor& read) const;
  Result<Tensor> without_heads(const Tensor& both) const;
  Result<Tensor> with_heads(const Tensor& all) const;
  Result<Tensor> gated(const Tensor& y, const Tensor& z) const;
};

Result<Tensor> Scan::convolved(const Tensor& x) const {
  LOOM_ASSIGN(const Activation activation, parse_activation(c.text(kActivation)));
  LOOM_ASSIGN(const Tensor y, fresh(x.cols()));
  LOOM_TRY(call.ops().causal_conv({x, param(at.conv), param(at.conv_bias), memory(0, s.window()),
                                   call.step_order(), y, call.sequences()}));
  return unary(y, static_cast<UnaryKind>(activation));
}

// step: before softplus.
Result<Tensor> Scan::scan(const Tensor& x, const Tensor& step, const Tensor& b,
                          const Tensor& read) const {
  LOOM_ASSIGN(const Tensor steps, unary(step, UnaryKind::softplus));
  const Tensor logs = param(at.rates);
  const Tensor matrix = as_matrix(logs, 1, logs.shape.count());
  LOOM_ASSIGN(const Tensor rates, unary(matrix, UnaryKind::exp));
  LOOM_ASSIGN(Tensor decays, unary(rates, UnaryKind::neg));
  decays.shape = Shape{logs.shape.count()};
  SelectiveScanArgs args{x, steps, decays, b, read, param(at.through)};
  args.state = memory(s.window(), s.inner * s.numbers);
  args.order = call.step_order();
  args.groups = s.groups;
  args.sequences = call.sequences();
  LOOM_ASSIGN(args.y, fresh(s.inner));
  LOOM_TRY(call.ops().selective_scan(args));
  return args.y;
}

Result<Tensor> Scan::without_heads(const Tensor& both) const {
  LOOM_ASSIGN(Tensor x, scaled(slice_cols(both, 0, s.inner), kScaleX));
  LOOM_ASSIGN(const Tensor z, scaled(slice_cols(both, s.inner, s.inner), kScaleGate));
  LOOM_ASSIGN(x, convolved(x));
  LOOM_ASSIGN(const Tensor chosen, product(x, at.select));
  Tensor step = slice_cols(chosen, 0, s.rank);
  Tensor b = slice_cols(chosen, s.rank, s.numbers);
  Tensor read = slice_cols(chosen, s.rank + s.numbers, s.numbers);
  if (c.text(kStepNorm) != "none") {
    LOOM_ASSIGN(step, normed(step, at.step_norm, kStepNormEps));
    LOOM_ASSIGN(b, normed(b, at.b_norm, kStepNormEps));
    LOOM_ASSIGN(read, normed(read, at.c_norm, kStepNormEps));
  }
  LOOM_ASSIGN(const Tensor steps, product(step, at.step, at.step_bias));
  LOOM_ASSIGN(const Tensor y, scan(x, steps, b, read));
  return gated(y, z);
}

Result<Tensor> Scan::with_heads(const Tensor& all) const {
  const int64_t after_x = 2 * s.inner, mixed = s.mixed();
  LOOM_ASSIGN(const Tensor z, scaled(slice_cols(all, 0, s.inner), kScaleGate));
  Tensor xbc = slice_cols(all, s.inner, s.convolved());
  if (real(kScaleX) != 1.0f || real(kScaleB) != 1.0f || real(kScaleC) != 1.0f) {
    LOOM_ASSIGN(const Tensor factors, fresh(s.convolved()));
    const auto part = [&](int64_t first, int64_t count, int field) -> Status {
      LOOM_ASSIGN(const Tensor factor, call.constant(real(field)));
      return call.ops().binary({slice_cols(all, s.inner + first, count), factor,
                                slice_cols(factors, first, count), BinaryKind::mul});
    };
    LOOM_TRY(part(0, s.inner, kScaleX));
    LOOM_TRY(part(s.inner, mixed, kScaleB));
    LOOM_TRY(part(s.inner + mixed, mixed, kScaleC));
    xbc = factors;
  }
  LOOM_ASSIGN(Tensor step, scaled(slice_cols(all, after_x + 2 * mixed, s.heads), kScaleStep));
  LOOM_ASSIGN(step, binary(step, as_matrix(param(at.step_bias), 1, s.heads), BinaryKind::add));
  LOOM_ASSIGN(xbc, convolved(xbc));
  LOOM_ASSIGN(const Tensor y,
              scan(slice_cols(xbc, 0, s.inner), step, slice_cols(xbc, s.inner, mixed),
                   slice_cols(xbc, s.inner + mixed, mixed)));
  return gated(y, z);
}

Result<Tensor> Scan::gated(const Tensor& y, const Tensor& z) const {
  Tensor value = y;
  const bool before = c.text(kNorm) == "before_gate";
  if (before) {
    LOOM_ASSIGN(value, normed(value, at.norm, kNormEps, s.groups));
  }
  LOOM_ASSIGN(const Tensor out, fresh(s.inner));
  LOOM_TRY(call.ops().gated({z, value, out, Activation::silu}));
  if (before || c.text(kNorm) == "none") return out;
  return normed(out, at.norm, kNormEps, s.groups);
}

Result<Tensor> forward(ForwardCall& call) {
  const LayerConfig& c = call.config();
  const Sizes s(c);
  const int64_t rows = call.x().shape.count() / s.width;
  const Scan scan{call, c, s, Params(c).at, rows};
  LOOM_ASSIGN(const Tensor x, scan.scaled(as_matrix(call.x(), rows, s.width), kScaleIn));
  LOOM_ASSIGN(const Tensor all, scan.product(x, scan.at.in, scan.at.in_bias));
  LOOM_ASSIGN(const Tensor mixed, s.single ? scan.with_heads(all) : scan.without_heads(all));
  LOOM_ASSIGN(const Tensor y, call.like(call.x()));
  LOOM_TRY(call.ops().matmul(
      {mixed, scan.param(scan.at.out), scan.param(scan.at.out_bias), as_matrix(y, rows, s.width)}));
  return call.scaled(y, static_cast<float>(c.real(kScaleOut)));
}

LayerExample example() {
  return {Shape{7, 5},
          {{LayerKind::selective_scan,
            {{"width", 5},
             {"inner", 6},
             {"state", 3},
             {"rank", 2},
             {"kernel", 3},
             {"bias", true},
             {"step_norm", "weighted"}}},
           {LayerKind::selective_scan,
            {{"width", 5},
             {"inner", 12},
             {"state", 3},
             {"heads", 4},
             {"groups", 2},
             {"kernel", 4},
             {"norm", "gated"}}}},
          3};
}

}  // namespace

extern const LayerDef kSelectiveScan;
const LayerDef kSelectiveScan = {.kind = LayerKind::selective_scan,
                                 .name = "SelectiveScan",
                                 .fields = kFields,
                                 .ragged = true,
                                 .params = params,
                                 .infer = infer,
                                 .forward = forward,
                                 .state = state,
                                 .example = example};

}  // namespace loom::core
