// Recursive descent, bounded twice: by a counter while parsing, and by the depth that each node
// records. A long chain of operators makes a deep tree without deep recursion here.
#include "jinja/parser.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace loom::core::jinja {
namespace {

// Counts the levels of recursion.
class Depth {
 public:
  explicit Depth(int& depth) : depth_(depth) { ++depth_; }
  ~Depth() { --depth_; }
  Depth(const Depth&) = delete;
  Depth& operator=(const Depth&) = delete;
  bool too_deep() const { return depth_ > kMaxTreeDepth; }

 private:
  int& depth_;
};

}  // namespace

bool ExpressionParser::accept_symbol(std::string_view text) {
  if (!is_symbol(text)) return false;
  next();
  return true;
}

bool ExpressionParser::accept_name(std::string_view text) {
  if (!is_name(text)) return false;
  next();
  return true;
}

Error ExpressionParser::fail(std::string message) const {
  return bad_file(std::move(message), where_, peek().offset);
}

Error ExpressionParser::refuse(std::string_view what) const {
  return make_error(Code::unsupported, cat(what, " is not supported"), where_, peek().offset);
}

Status ExpressionParser::expect_symbol(std::string_view text) {
  if (!accept_symbol(text)) return fail(cat("expected '", text, "'"));
  return {};
}

Result<std::string> ExpressionParser::expect_any_name() {
  if (peek().kind != TemplateToken::Kind::name) return fail("expected a name");
  return next().text;
}

ExprPtr ExpressionParser::make(Expr::Kind kind, std::string name) const {
  auto expr = std::make_unique<Expr>();
  expr->kind = kind;
  expr->name = std::move(name);
  expr->offset = peek().offset;
  return expr;
}

Status ExpressionParser::adopt(Expr& parent, ExprPtr child) const {
  if (child) parent.depth = std::max(parent.depth, child->depth + 1);
  if (parent.depth > kMaxTreeDepth) return refuse(cat("an expression deeper than ", kMaxTreeDepth));
  parent.children.push_back(std::move(child));
  return {};
}

Result<ExprPtr> ExpressionParser::node(Expr::Kind kind, std::string name, ExprPtr a, ExprPtr b) {
  ExprPtr expr = make(kind, std::move(name));
  expr->offset = a->offset;
  LOOM_TRY(adopt(*expr, std::move(a)));
  if (b) LOOM_TRY(adopt(*expr, std::move(b)));
  return expr;
}

Result<ExprPtr> ExpressionParser::expression() {
  const Depth depth(depth_);
  if (depth.too_deep()) return refuse(cat("an expression deeper than ", kMaxTreeDepth));
  LOOM_ASSIGN(ExprPtr value, disjunction());
  while (accept_name("if")) {
    LOOM_ASSIGN(ExprPtr condition, disjunction());
    ExprPtr otherwise;
    if (accept_name("else")) {
      LOOM_ASSIGN(otherwise, expression());
    }
    LOOM_ASSIGN(value, node(Expr::Kind::conditional, "if", std::move(value), std::move(condition)));
    LOOM_TRY(adopt(*value, std::move(otherwise)));
  }
  return value;
}

Result<ExprPtr> ExpressionParser::disjunction() {
  LOOM_ASSIGN(ExprPtr left, conjunction());
  while (accept_name("or")) {
    LOOM_ASSIGN(ExprPtr right, conjunction());
    LOOM_ASSIGN(left, node(Expr::Kind::binary, "or", std::move(left), std::move(right)));
  }
  return left;
}

Result<ExprPtr> ExpressionParser::conjunction() {
  LOOM_ASSIGN(ExprPtr left, negation());
  while (accept_name("and")) {
    LOOM_ASSIGN(ExprPtr right, negation());
    LOOM_ASSIGN(left, node(Expr::Kind::binary, "and", std::move(left), std::move(right)));
  }
  return left;
}

Result<ExprPtr> ExpressionParser::negation() {
  if (!accept_name("not")) return comparison();
  const Depth depth(depth_);
  if (depth.too_deep()) return refuse(cat("an expression deeper than ", kMaxTreeDepth));
  LOOM_ASSIGN(ExprPtr value, negation());
  return node(Expr::Kind::negation, "not", std::move(value));
}

Result<ExprPtr> ExpressionParser::comparison() {
  static constexpr std::string_view kSymbols[] = {"==", "!=", "<=", ">=", "<", ">"};
  LOOM_ASSIGN(ExprPtr left, sum());
  ExprPtr chain;
  for (;;) {
    std::string name;
    for (const std::string_view symbol : kSymbols) {
      if (is_symbol(symbol)) name = symbol;
    }
    if (is_name("in")) name = "in";
    const TemplateToken& after = tokens_[std::min(at_ + 1, tokens_.size() - 1)];
    if (is_name("not") && after.kind == TemplateToken::Kind::name && after.text == "in")
      name = "not in";
    if (name.empty()) return chain ? std::move(chain) : std::move(left);
    next();
    if (name == "not in") next();
    if (!chain) {
      LOOM_ASSIGN(chain, node(Expr::Kind::comparison, "", std::move(left)));
    }
    LOOM_ASSIGN(ExprPtr right, sum());
    chain->keywords.push_back(std::move(name));
    LOOM_TRY(adopt(*chain, std::move(right)));
  }
}

Result<ExprPtr> ExpressionParser::left_to_right(Level operand,
                                                std::initializer_list<std::string_view> symbols) {
  LOOM_ASSIGN(ExprPtr left, (this->*operand)());
  for (;;) {
    const auto found = std::find_if(symbols.begin(), symbols.end(),
                                    [&](std::string_view symbol) { return is_symbol(symbol); });
    if (found == symbols.end()) return left;
    next();
    LOOM_ASSIGN(ExprPtr right, (this->*operand)());
    LOOM_ASSIGN(left,
                node(Expr::Kind::binary, std::string(*found), std::move(left), std::move(right)));
  }
}

Result<ExprPtr> ExpressionParser::sum() {
  return left_to_right(&ExpressionParser::concatenation, {"+", "-"});
}

Result<ExprPtr> ExpressionParser::concatenation() {
  return left_to_right(&ExpressionParser::product, {"~"});
}

Result<ExprPtr> ExpressionParser::product() {
  return left_to_right(&ExpressionParser::power, {"*", "/", "//", "%"});
}

// Left to right, unlike Python.
Result<ExprPtr> ExpressionParser::power() {
  return left_to_right(&ExpressionParser::unary_with_filters, {"**"});
}

Result<ExprPtr> ExpressionParser::unary(bool with_filters) {
  const Depth depth(depth_);
  if (depth.too_deep()) return refuse(cat("an expression deeper than ", kMaxTreeDepth));
  ExprPtr value;
  if (accept_symbol("-")) {
    LOOM_ASSIGN(ExprPtr operand, unary(false));
    LOOM_ASSIGN(value, node(Expr::Kind::minus, "-", std::move(operand)));
  } else if (accept_symbol("+")) {
    LOOM_ASSIGN(ExprPtr operand, unary(false));
    LOOM_ASSIGN(value, node(Expr::Kind::plus, "+", std::move(operand)));
  } else {
    LOOM_ASSIGN(value, primary());
  }
  LOOM_ASSIGN(value, postfix(std::move(value)));
  if (!with_filters) return value;
  return filters(std::move(value));
}

Result<ExprPtr> ExpressionParser::primary() {
  const TemplateToken& token = peek();
  switch (token.kind) {
    case TemplateToken::Kind::name: return literal_name();
    case TemplateToken::Kind::string: return string_literal();
    case TemplateToken::Kind::integer: {
      ExprPtr expr = make(Expr::Kind::integer);
      expr->number = next().number;
      return expr;
    }
    case TemplateToken::Kind::real: {
      ExprPtr expr = make(Expr::Kind::real);
      expr->real = next().real;
      return expr;
    }
    case TemplateToken::Kind::symbol:
      if (token.text == "(") return parenthesis();
      if (token.text == "[") return list_literal();
      if (token.text == "{") return dict_literal();
      return fail(cat("unexpected '", token.text, "'"));
    default: return fail("expected an expression");
  }
}

Result<ExprPtr> ExpressionParser::literal_name() {
  const std::string& name = peek().text;
  ExprPtr expr;
  if (name == "true" || name == "True" || name == "false" || name == "False") {
    expr = make(Expr::Kind::boolean);
    expr->number = name == "true" || name == "True" ? 1 : 0;
  } else if (name == "none" || name == "None") {
    expr = make(Expr::Kind::none);
  } else {
    expr = make(Expr::Kind::variable, name);
  }
  next();
  return expr;
}

// Adjacent literals are joined, as in Python.
Result<ExprPtr> ExpressionParser::string_literal() {
  ExprPtr expr = make(Expr::Kind::string);
  while (peek().kind == TemplateToken::Kind::string) expr->name += next().text;
  return expr;
}

Result<ExprPtr> ExpressionParser::parenthesis() {
  next();
  if (is_symbol(")")) {
    ExprPtr empty = make(Expr::Kind::tuple);
    next();
    return empty;
  }
  LOOM_ASSIGN(ExprPtr value, tuple());
  LOOM_TRY(expect_symbol(")"));
  return value;
}

bool ExpressionParser::at_tuple_end() const {
  const TemplateToken::Kind kind = peek().kind;
  return kind == TemplateToken::Kind::variable_end || kind == TemplateToken::Kind::block_end ||
         is_symbol(")");
}

Result<ExprPtr> ExpressionParser::tuple(bool with_condition) {
  LOOM_ASSIGN(ExprPtr first, with_condition ? expression() : disjunction());
  if (!is_symbol(",")) return first;
  LOOM_ASSIGN(ExprPtr all, node(Expr::Kind::tuple, "", std::move(first)));
  while (accept_symbol(",")) {
    if (at_tuple_end()) break;
    LOOM_ASSIGN(ExprPtr item, with_condition ? expression() : disjunction());
    LOOM_TRY(adopt(*all, std::move(item)));
  }
  return all;
}

Result<Target> ExpressionParser::one_target(bool with_space) {
  const Depth depth(depth_);
  if (depth.too_deep()) return refuse(cat("a target deeper than ", kMaxTreeDepth));
  if (accept_symbol("(")) {
    LOOM_ASSIGN(Target inner, target(with_space));
    LOOM_TRY(expect_symbol(")"));
    return inner;
  }
  Target one;
  LOOM_ASSIGN(one.name, expect_any_name());
  if (with_space && accept_symbol(".")) {
    one.space = std::move(one.name);
    LOOM_ASSIGN(one.name, expect_any_name());
  }
  return one;
}

Result<Target> ExpressionParser::target(bool with_space) {
  LOOM_ASSIGN(Target first, one_target(with_space));
  if (!is_symbol(",")) return first;
  Target all;
  all.parts.push_back(std::move(first));
  while (accept_symbol(",")) {
    if (at_tuple_end() || is_symbol("=") || is_name("in")) break;
    LOOM_ASSIGN(Target part, one_target(with_space));
    all.parts.push_back(std::move(part));
  }
  return all;
}

Result<ExprPtr> ExpressionParser::call_expression() {
  LOOM_ASSIGN(ExprPtr value, primary());
  LOOM_ASSIGN(value, postfix(std::move(value)));
  return filters(std::move(value));
}

Result<ExprPtr> ExpressionParser::list_literal() {
  ExprPtr list = make(Expr::Kind::list);
  next();
  while (!accept_symbol("]")) {
    if (!list->children.empty()) LOOM_TRY(expect_symbol(","));
    if (accept_symbol("]")) break;
    LOOM_ASSIGN(ExprPtr item, expression());
    LOOM_TRY(adopt(*list, std::move(item)));
  }
  return list;
}

Result<ExprPtr> ExpressionParser::dict_literal() {
  ExprPtr dict = make(Expr::Kind::dict);
  next();
  while (!accept_symbol("}")) {
    if (!dict->children.empty()) LOOM_TRY(expect_symbol(","));
    if (accept_symbol("}")) break;
    LOOM_ASSIGN(ExprPtr key, expression());
    LOOM_TRY(adopt(*dict, std::move(key)));
    LOOM_TRY(expect_symbol(":"));
    LOOM_ASSIGN(ExprPtr value, expression());
    LOOM_TRY(adopt(*dict, std::move(value)));
  }
  return dict;
}

Result<ExprPtr> ExpressionParser::postfix(ExprPtr value) {
  for (;;) {
    if (accept_symbol(".")) {
      if (peek().kind == TemplateToken::Kind::integer) {
        LOOM_ASSIGN(ExprPtr index, primary());
        LOOM_ASSIGN(value, node(Expr::Kind::item, "", std::move(value), std::move(index)));
        continue;
      }
      LOOM_ASSIGN(std::string name, expect_any_name());
      LOOM_ASSIGN(value, node(Expr::Kind::attribute, std::move(name), std::move(value)));
    } else if (is_symbol("[")) {
      LOOM_ASSIGN(value, subscript(std::move(value)));
    } else if (is_symbol("(")) {
      LOOM_ASSIGN(value, node(Expr::Kind::call, "", std::move(value)));
      LOOM_TRY(arguments(*value));
    } else {
      return value;
    }
  }
}

Result<ExprPtr> ExpressionParser::subscript(ExprPtr value) {
  next();
  ExprPtr bounds[3];
  size_t count = 0;
  bool is_slice = false;
  while (!is_symbol("]")) {
    if (accept_symbol(":")) {
      is_slice = true;
      if (++count > 2) return fail("a slice has at most three parts");
      continue;
    }
    if (bounds[count])
      return is_symbol(",") ? refuse("an index of several parts") : fail("expected ']'");
    LOOM_ASSIGN(bounds[count], expression());
  }
  next();
  if (!is_slice) {
    if (!bounds[0]) return fail("expected an index");
    return node(Expr::Kind::item, "", std::move(value), std::move(bounds[0]));
  }
  LOOM_ASSIGN(ExprPtr slice, node(Expr::Kind::slice, "", std::move(value)));
  for (ExprPtr& bound : bounds) LOOM_TRY(adopt(*slice, std::move(bound)));
  return slice;
}

// Adds the contents of the parentheses to the children of `call`.
Status ExpressionParser::arguments(Expr& call) {
  const size_t before = call.children.size();
  LOOM_TRY(expect_symbol("("));
  while (!accept_symbol(")")) {
    if (call.children.size() > before) LOOM_TRY(expect_symbol(","));
    if (accept_symbol(")")) break;
    const TemplateToken& after = tokens_[std::min(at_ + 1, tokens_.size() - 1)];
    const bool keyword = peek().kind == TemplateToken::Kind::name &&
                         after.kind == TemplateToken::Kind::symbol && after.text == "=";
    if (is_symbol("*") || is_symbol("**")) {
      call.keywords.push_back(next().text);
    } else if (keyword) {
      call.keywords.push_back(next().text);
      next();
    } else if (!call.keywords.empty()) {
      return fail("a positional argument after a keyword");
    }
    LOOM_ASSIGN(ExprPtr value, expression());
    LOOM_TRY(adopt(call, std::move(value)));
  }
  return {};
}

// The name and the arguments of a filter of `value`, which is null for a block's filter.
Result<ExprPtr> ExpressionParser::one_filter(ExprPtr value) {
  LOOM_ASSIGN(std::string name, expect_any_name());
  while (accept_symbol(".")) {
    LOOM_ASSIGN(const std::string part, expect_any_name());
    name += "." + part;
  }
  ExprPtr filter = make(Expr::Kind::filter, std::move(name));
  if (value) filter->offset = value->offset;
  LOOM_TRY(adopt(*filter, std::move(value)));
  if (is_symbol("(")) LOOM_TRY(arguments(*filter));
  return filter;
}

Result<ExprPtr> ExpressionParser::filters(ExprPtr value) {
  for (;;) {
    if (accept_symbol("|")) {
      LOOM_ASSIGN(value, one_filter(std::move(value)));
    } else if (value && accept_name("is")) {
      LOOM_ASSIGN(value, test(std::move(value)));
    } else if (is_symbol("(")) {
      return refuse("a call of a filtered value");
    } else {
      return value;
    }
  }
}

Result<ExprPtr> ExpressionParser::test(ExprPtr value) {
  const bool negated = accept_name("not");
  LOOM_ASSIGN(std::string name, expect_any_name());
  LOOM_ASSIGN(ExprPtr expr, node(Expr::Kind::test, std::move(name), std::move(value)));
  const TemplateToken& token = peek();
  const bool starts_operand =
      token.kind == TemplateToken::Kind::string || token.kind == TemplateToken::Kind::integer ||
      token.kind == TemplateToken::Kind::real ||
      (token.kind == TemplateToken::Kind::symbol && (token.text == "[" || token.text == "{")) ||
      (token.kind == TemplateToken::Kind::name && token.text != "else" && token.text != "or" &&
       token.text != "and" && token.text != "if" && token.text != "in" && token.text != "not");
  if (is_symbol("(")) {
    LOOM_TRY(arguments(*expr));
  } else if (starts_operand) {
    if (is_name("is")) return fail("two tests in a row");
    LOOM_ASSIGN(ExprPtr argument, primary());
    LOOM_ASSIGN(argument, postfix(std::move(argument)));
    LOOM_TRY(adopt(*expr, std::move(argument)));
  }
  if (!negated) return expr;
  return node(Expr::Kind::negation, "not", std::move(expr));
}

}  // namespace loom::core::jinja
