// MultiHeadAttention as the operators that every runtime has: products, a rotation and a mask from
// constants, Softmax. Shapes: T positions, H heads, G kv heads, D values per head.
#include "grid/rope_table.hpp"
#include "onnx/export/builder.hpp"

namespace loom::core {
namespace {

class Attention {
 public:
  Attention(GraphBuilder& g, const Node& node, const ExportValue& x)
      : g_(g),
        node_(node),
        x_(x),
        f_(g.fields(node)),
        time_(x.shape[1]),
        heads_(f_.integer("heads")),
        kv_(f_.integer("kv_heads")),
        dim_(f_.integer("head_dim")) {}

  Result<std::string> emit();

 private:
  // The index of a parameter, optional ones counted; -1 if there is none.
  int index(std::string_view name) const;
  Result<std::string> part(size_t weight, std::string_view bias, int64_t heads);
  Result<std::string> rotated(const std::string& x, std::string_view norm);
  std::string rotated(const std::string& x);
  std::string spread(const std::string& x, const std::vector<int64_t>& order);
  Status tables();
  std::string mask();

  GraphBuilder& g_;
  const Node& node_;
  const ExportValue& x_;
  FieldReader& f_;
  const int64_t time_, heads_, kv_, dim_;
  int64_t turned_ = 0;  // values of a head that rotate, from its first on
  std::string cos_, sin_;
};

int Attention::index(std::string_view name) const {
  for (size_t i = 0; i < node_.params.size(); ++i) {
    if (g_.network().params()[static_cast<size_t>(node_.params[i])].spec.name == name)
      return static_cast<int>(i);
  }
  return -1;
}

// x W^T + b as [batch, T, heads, D].
Result<std::string> Attention::part(size_t weight, std::string_view bias, int64_t heads) {
  LOOM_ASSIGN(const std::string y, emit_product(g_, node_, x_.name, 3, weight, index(bias)));
  return g_.reshape(y, {time_, heads, dim_});
}

void skip_frequencies(FieldReader& f) {
  f.skip({"rope_theta", "rope_scaling", "rope_factor", "rope_low_freq", "rope_high_freq",
          "rope_original", "rope_attention", "rope_beta_fast", "rope_beta_slow", "rope_truncate",
          "rope_short", "rope_long"});
}

// The tables contain the frequencies.
Status Attention::tables() {
  skip_frequencies(f_);
  turned_ = f_.integer("rope_width") > 0 ? f_.integer("rope_width") : dim_;
  LOOM_ASSIGN(const RopeTable table,
              RopeTable::make(g_.network().ropes()[static_cast<size_t>(node_.rope)], time_));
  const auto add = [&](std::string_view name, const Tensor& t) {
    return g_.constant(name, {time_, 1, turned_ / 2}, {t.f32(), t.f32() + t.shape.count()});
  };
  cos_ = add("cos", table.table().cos);
  sin_ = add("sin", table.table().sin);
  return {};
}

// The halves (a, b) of what rotates of every head to (a cos - b sin, a sin + b cos); the rest of
// the head stays.
std::string Attention::rotated(const std::string& x) {
  const int64_t half = turned_ / 2;
  const auto slice = [&](int64_t from, int64_t to) {
    return g_.add("Slice", {x, g_.integers({from}), g_.integers({to}), g_.integers({3})});
  };
  const std::string a = slice(0, half), b = slice(half, turned_);
  const std::string first = g_.add("Sub", {g_.add("Mul", {a, cos_}), g_.add("Mul", {b, sin_})});
  const std::string second = g_.add("Add", {g_.add("Mul", {a, sin_}), g_.add("Mul", {b, cos_})});
  std::vector<std::string> parts = {first, second};
  if (turned_ < dim_) parts.push_back(slice(turned_, dim_));
  return g_.add("Concat", parts, {onnx_attribute("axis", int64_t{-1})});
}

Result<std::string> Attention::rotated(const std::string& x, std::string_view norm) {
  std::string y = x;
  if (f_.flag("qk_norm")) {
    LOOM_ASSIGN(const std::string gamma, g_.param(node_, static_cast<size_t>(index(norm))));
    y = emit_rms(g_, y, gamma, f_.real("qk_norm_eps"));
  } else {
    f_.skip({"qk_norm_eps"});
  }
  return f_.flag("rope") ? rotated(y) : y;
}

// Keys or values, axes reordered, every kv head repeated for the heads that read it.
std::string Attention::spread(const std::string& x, const std::vector<int64_t>& order) {
  const std::string y = g_.add("Transpose", {x}, {onnx_attribute("perm", order)});
  if (heads_ == kv_) return y;
  const bool keys = order[2] == 3;
  const int64_t rows = keys ? dim_ : time_, cols = keys ? time_ : dim_;
  const std::string apart = g_.add("Unsqueeze", {y, g_.integers({2})});
  const std::string large = g_.add("Expand", {apart, g_.integers({1, 1, heads_ / kv_, 1, 1})});
  return g_.reshape(large, {heads_, rows, cols});
}

// 0 where a position may look, -inf where not; "" when it may look everywhere.
std::string Attention::mask() {
  const bool causal = f_.flag("causal");
  const int64_t window = f_.integer("window");
  if (!causal && window == 0) return "";
  std::vector<float> out;
  for (int64_t q = 0; q < time_; ++q) {
    for (int64_t k = 0; k < time_; ++k) {
      const int64_t apart = q > k ? q - k : k - q;
      const bool seen = (!causal || k <= q) && (window == 0 || apart < window);
      out.push_back(seen ? 0.0f : -__builtin_inff());
    }
  }
  return g_.constant("mask", {time_, time_}, out);
}

Result<std::string> Attention::emit() {
  f_.skip({"width", "bias", "out_bias"});  // its parameters have them
  if (f_.flag("rope")) {
    LOOM_TRY(tables());
  } else {
    skip_frequencies(f_);
    f_.skip({"rope_width"});
  }
  LOOM_ASSIGN(std::string q, part(0, "q_bias", heads_));
  LOOM_ASSIGN(std::string k, part(1, "k_bias", kv_));
  LOOM_ASSIGN(const std::string v, part(2, "v_bias", kv_));
  LOOM_ASSIGN(q, rotated(q, "q_norm"));
  LOOM_ASSIGN(k, rotated(k, "k_norm"));
  q = g_.add("Transpose", {q}, {onnx_attribute("perm", std::vector<int64_t>{0, 2, 1, 3})});
  k = spread(k, {0, 2, 3, 1});
  const double named = f_.real("scale");
  const float scale =
      named > 0 ? static_cast<float>(named) : 1.0f / __builtin_sqrtf(static_cast<float>(dim_));
  std::string scores = g_.add("Mul", {g_.add("MatMul", {q, k}), g_.number(scale)});
  scores = emit_soft_cap(g_, scores, f_.real("soft_cap"));
  const std::string hidden = mask();
  if (!hidden.empty()) scores = g_.add("Add", {scores, hidden});
  const std::string p = g_.add("Softmax", {scores}, {onnx_attribute("axis", int64_t{-1})});
  std::string y = g_.add("MatMul", {p, spread(v, {0, 2, 1, 3})});
  y = g_.add("Transpose", {y}, {onnx_attribute("perm", std::vector<int64_t>{0, 2, 1, 3})});
  y = g_.reshape(y, {time_, heads_ * dim_});
  if (f_.flag("sub_norm")) {
    LOOM_ASSIGN(const std::string gamma, g_.param(node_, static_cast<size_t>(index("sub_norm"))));
    y = emit_rms(g_, y, gamma, f_.real("sub_norm_eps"));
  } else {
    f_.skip({"sub_norm_eps"});
  }
  return emit_product(g_, node_, y, 3, 3, index("o_bias"));
}

}  // namespace

Result<std::string> emit_attention(GraphBuilder& g, const Node& node, const ExportValue& x) {
  if (x.shape.rank() != 3)
    return g.refuse(node, cat("input ", x.shape.str(), " has no time axis of its own"));
  return Attention(g, node, x).emit();
}

}  // namespace loom::core
