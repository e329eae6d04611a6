// Einsum: sums of products by letters. Two operands whose letters make a batched product of
// matrices are one; everything else is summed place by place.
#include <algorithm>
#include <map>

#include "onnx/interpreter/products.hpp"

namespace loom::core::evaluate {
namespace {

// Letters of each operand and of the result. An ellipsis becomes the letters '0', '1' ...:
// axes counted from the last one, as broadcasting has them.
struct Equation {
  std::vector<std::string> in;
  std::string out;
  std::map<char, int64_t> extents;
};

constexpr char kFirstHidden = '0';  // letters of an ellipsis: '0' is its last axis

Result<std::string> letters(const Call& c, std::string_view term, int rank, int& hidden) {
  std::string out;
  const size_t dots = term.find("...");
  const auto named =
      static_cast<int>(std::ranges::count_if(term, [](char ch) { return ch != '.'; }));
  if (dots == std::string_view::npos && rank >= 0 && named != rank)
    return c.bad("an operand with another number of axes");
  const int more = rank >= 0 ? rank - named : hidden;
  if (more < 0 || more > static_cast<int>(kMaxOnnxRank)) return c.bad("too few axes");
  for (size_t i = 0; i < term.size(); ++i) {
    if (i == dots) {
      for (int k = more; k-- > 0;) out.push_back(static_cast<char>(kFirstHidden + k));
      hidden = std::max(hidden, more);
      i += 2;
      continue;
    }
    const bool letter = (term[i] >= 'a' && term[i] <= 'z') || (term[i] >= 'A' && term[i] <= 'Z');
    if (!letter) return c.bad("an equation of other signs than letters");
    out.push_back(term[i]);
  }
  return out;
}

Status extents_of(const Call& c, Equation& e) {
  for (size_t k = 0; k < e.in.size(); ++k) {
    for (size_t a = 0; a < e.in[k].size(); ++a) {
      const int64_t extent = c.value(k).dims[a];
      const auto [have, fresh] = e.extents.emplace(e.in[k][a], extent);
      if (!fresh && have->second == 1) have->second = extent;
      if (!fresh && have->second != extent && extent != 1) return c.bad("extents that differ");
    }
  }
  for (const char l : e.out) {
    if (e.extents.find(l) == e.extents.end()) return c.bad("a letter of the result in no operand");
    if (std::ranges::count(e.out, l) > 1) return c.bad("a letter of the result twice");
  }
  return {};
}

Result<Equation> parse_equation(const Call& c) {
  std::string text = c.text("equation", "");
  std::erase(text, ' ');
  const size_t arrow = text.find("->");
  Equation e;
  int hidden = 0;
  std::string_view left = std::string_view(text).substr(0, arrow);
  for (size_t k = 0; k < c.in.size(); ++k) {
    const size_t comma = left.find(',');
    if ((comma == std::string_view::npos) != (k + 1 == c.in.size()))
      return c.bad("an equation with another number of operands");
    LOOM_ASSIGN(std::string term, letters(c, left.substr(0, comma), c.value(k).rank(), hidden));
    e.in.push_back(std::move(term));
    left.remove_prefix(comma == std::string_view::npos ? left.size() : comma + 1);
  }
  if (arrow != std::string::npos) {
    LOOM_ASSIGN(e.out, letters(c, std::string_view(text).substr(arrow + 2), -1, hidden));
  } else {  // letters that occur once, in order, after the ellipsis
    std::map<char, int> counts;
    for (const std::string& term : e.in) {
      for (const char l : term) ++counts[l];
    }
    for (int k = hidden; k-- > 0;) e.out.push_back(static_cast<char>(kFirstHidden + k));
    for (const auto& [l, n] : counts) {
      if (n == 1 && l >= 'A') e.out.push_back(l);
    }
  }
  LOOM_TRY(extents_of(c, e));
  return e;
}

// Steps of operand `term` along each of `labels`; letters that occur twice add up: a diagonal.
Dims steps_along(const std::string& labels, const std::string& term, const Dims& dims) {
  Dims out(labels.size(), 0);
  const Dims own = steps_of(dims);
  for (size_t a = 0; a < term.size(); ++a) {
    const size_t at = labels.find(term[a]);
    if (at != std::string::npos && dims[a] != 1) out[at] += own[a];
  }
  return out;
}

Dims extents(const Equation& e, const std::string& labels) {
  Dims out;
  for (const char l : labels) out.push_back(e.extents.at(l));
  return out;
}

// Operands are taken together one by one over all letters, then what is not in the result is
// summed.
Result<Value> by_indices(const Call& c, const Equation& e, const std::vector<Value>& in) {
  std::string all = e.out;
  for (const auto& [l, n] : e.extents) {
    if (all.find(l) == std::string::npos) all.push_back(l);
  }
  const Dims dims = extents(e, all);
  LOOM_ASSIGN(Value y, c.make(in[0].type, extents(e, e.out)));
  fill_zero(y);
  const Dims to = steps_along(all, e.out, y.dims);
  with_type(y.type, [&]<class T>(T) {
    Dims at(dims.size(), 0);
    std::vector<Dims> steps;
    for (size_t k = 0; k < in.size(); ++k) steps.push_back(steps_along(all, e.in[k], in[k].dims));
    for (int64_t i = 0, n = product(dims); i < n; ++i) {
      int64_t rest = i, offset = 0;
      for (size_t a = dims.size(); a-- > 0;) {
        at[a] = rest % dims[a];
        rest /= dims[a];
        offset += at[a] * to[a];
      }
      T term{1};
      for (size_t k = 0; k < in.size(); ++k) {
        int64_t from = 0;
        for (size_t a = 0; a < dims.size(); ++a) from += at[a] * steps[k][a];
        term = term * in[k].template data<T>()[from];
      }
      y.data<T>()[offset] = y.data<T>()[offset] + term;
    }
  });
  return y;
}

// The letters of two operands by their positions.
struct Roles {
  std::string batch, left, right, inner;
  bool product = true;
};
Roles roles_of(const Equation& e) {
  Roles r;
  if (e.in.size() != 2) return {"", "", "", "", false};
  for (const auto& [l, n] : e.extents) {
    const bool a = e.in[0].find(l) != std::string::npos, b = e.in[1].find(l) != std::string::npos;
    const bool y = e.out.find(l) != std::string::npos;
    for (const std::string& term : e.in) r.product = r.product && std::ranges::count(term, l) <= 1;
    if (a && b)
      (y ? r.batch : r.inner).push_back(l);
    else if (y)
      (a ? r.left : r.right).push_back(l);
    else
      r.product = false;
  }
  return r;
}

Result<Value> arranged(const Call& c, const Equation& e, const Value& x, const std::string& term,
                       const std::string& labels) {
  Move m{extents(e, labels), steps_along(labels, term, x.dims), {}};
  m.y_steps = steps_of(m.dims);
  LOOM_ASSIGN(Value y, c.make(x.type, m.dims));
  move(c, x, y, m);
  return y;
}

Result<Value> by_product(const Call& c, const Equation& e, const std::vector<Value>& in,
                         const Roles& r) {
  LOOM_ASSIGN(const Value a, arranged(c, e, in[0], e.in[0], r.batch + r.left + r.inner));
  LOOM_ASSIGN(const Value b, arranged(c, e, in[1], e.in[1], r.batch + r.inner + r.right));
  const int64_t batch = product(extents(e, r.batch)), inner = product(extents(e, r.inner));
  LOOM_ASSIGN(const Value y, matmul(c, a.view_as(Dims{batch, product(extents(e, r.left)), inner}),
                                    b.view_as(Dims{batch, inner, product(extents(e, r.right))})));
  const std::string labels = r.batch + r.left + r.right;
  return arranged(c, e, y.view_as(extents(e, labels)), labels, e.out);
}

Status einsum(const Call& c) {
  std::vector<Value> in;
  for (size_t k = 0; k < c.in.size(); ++k) {
    LOOM_TRY(c.same_type(0, k));
    LOOM_ASSIGN(Value wide, c.widened(k));
    in.push_back(std::move(wide));
  }
  LOOM_ASSIGN(const Equation e, parse_equation(c));
  const Roles r = roles_of(e);
  LOOM_ASSIGN(const Value y, r.product ? by_product(c, e, in, r) : by_indices(c, e, in));
  return c.give_as(y, c.value(0).type);
}

constexpr Operator kEinsum[] = {{"", "Einsum", einsum, {}}};

}  // namespace

std::span<const Operator> einsum_operators() {
  return kEinsum;
}

}  // namespace loom::core::evaluate
