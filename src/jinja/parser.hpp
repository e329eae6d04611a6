// Parses tokens to expressions, with Jinja's precedences from a conditional down to a literal.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "jinja/ast.hpp"
#include "jinja/lexer.hpp"

namespace loom::core::jinja {

class ExpressionParser {
 public:
  ExpressionParser(const std::vector<TemplateToken>& tokens, const std::string& where)
      : tokens_(tokens), where_(where) {}

  Result<ExprPtr> expression();  // with "a if b else c"
  Result<ExprPtr> disjunction();
  // One expression, or several with commas between them, which form a tuple. `with_condition`: each
  // may be "a if b else c".
  Result<ExprPtr> tuple(bool with_condition = true);
  // An assignment target: a name, "space.name" if `with_space`, or several of them.
  Result<Target> target(bool with_space);
  Result<Target> one_target(bool with_space);
  Result<ExprPtr> filters(ExprPtr value);
  Result<ExprPtr> one_filter(ExprPtr value);
  Result<ExprPtr> call_expression();  // a primary with its suffixes

 protected:
  const TemplateToken& peek() const { return tokens_[at_]; }
  const TemplateToken& next() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool is_symbol(std::string_view text) const {
    return peek().kind == TemplateToken::Kind::symbol && peek().text == text;
  }
  bool is_name(std::string_view text) const {
    return peek().kind == TemplateToken::Kind::name && peek().text == text;
  }
  bool accept_symbol(std::string_view text);
  bool accept_name(std::string_view text);
  Status expect_symbol(std::string_view text);
  Result<std::string> expect_any_name();
  Error fail(std::string message) const;
  Error refuse(std::string_view what) const;

  const std::vector<TemplateToken>& tokens_;
  const std::string& where_;
  size_t at_ = 0;
  int depth_ = 0;  // the current nesting

 private:
  using Level = Result<ExprPtr> (ExpressionParser::*)();
  Result<ExprPtr> left_to_right(Level operand, std::initializer_list<std::string_view> symbols);
  Result<ExprPtr> conjunction();
  Result<ExprPtr> negation();
  Result<ExprPtr> comparison();
  Result<ExprPtr> sum();
  Result<ExprPtr> concatenation();
  Result<ExprPtr> product();
  Result<ExprPtr> power();
  Result<ExprPtr> unary(bool with_filters);
  Result<ExprPtr> unary_with_filters() { return unary(true); }
  Result<ExprPtr> primary();
  Result<ExprPtr> literal_name();
  Result<ExprPtr> string_literal();
  Result<ExprPtr> parenthesis();
  Result<ExprPtr> list_literal();
  Result<ExprPtr> dict_literal();
  Result<ExprPtr> postfix(ExprPtr value);
  Result<ExprPtr> subscript(ExprPtr value);
  bool at_tuple_end() const;
  Result<ExprPtr> test(ExprPtr value);
  Status arguments(Expr& call);
  ExprPtr make(Expr::Kind kind, std::string name = {}) const;
  Result<ExprPtr> node(Expr::Kind kind, std::string name, ExprPtr a, ExprPtr b = nullptr);

 protected:
  Status adopt(Expr& parent, ExprPtr child) const;
};

}  // namespace loom::core::jinja
