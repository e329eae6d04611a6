// Runs a template. Assignments inside a loop end with the iteration, as in Jinja; only attributes
// of a namespace outlive it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/ast.hpp"
#include "jinja/library.hpp"

namespace loom::core::jinja {

class Evaluator {
 public:
  using Scope = std::vector<std::pair<std::string, Value>>;
  Evaluator(Meter meter, uint64_t max_output, Scope globals, const CivilTime& now);
  Result<std::string> run(const std::vector<Statement>& body);

 private:
  enum class Flow : uint8_t { on, stop, skip };
  Result<Flow> execute(const std::vector<Statement>& body);
  Result<Flow> execute(const Statement& statement);
  Result<Flow> branch(const Statement& statement);
  Result<Flow> loop(const Statement& statement);
  Result<Value::List> loop_items(const Statement& statement);
  Status bind(const Statement& statement, const Value& item);
  Result<Value> loop_variable(const Value::List& items, size_t index, int64_t offset);
  Status set(const Statement& statement, Value value);
  Status print(std::string_view text, int64_t offset);

  Result<Value> evaluate(const Expr& expr);
  Result<Value> literal(const Expr& expr);
  Result<Value> collection(const Expr& expr);
  Result<Value> binary(const Expr& expr);
  Result<Value> arithmetic(const Expr& expr, const Value& left, const Value& right);
  Result<Value> addition(const Expr& expr, const Value& left, const Value& right);
  Result<Value> repetition(const Expr& expr, const std::string& text, int64_t count);
  Result<Value> compare(const Expr& expr, const Value& left, const Value& right);
  Result<Value> attribute(const Expr& expr);
  Result<Value> item(const Expr& expr);
  Result<Value> slice(const Expr& expr);
  Result<Value> conditional(const Expr& expr);
  Result<Value> call(const Expr& expr);
  Status arguments(const Expr& expr, Call& call);
  const Value* lookup(std::string_view name) const;
  void assign(const std::string& name, Value value);

  Meter meter_;
  uint64_t max_output_;
  CivilTime now_;
  std::vector<Scope> scopes_;
  std::string out_;
};

}  // namespace loom::core::jinja
