// Runs a template. A loop, a macro and most blocks have scopes of their own. Assignments inside end
// with the scope, as in Jinja; only attributes of a namespace outlive it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/ast.hpp"
#include "jinja/library.hpp"

namespace loom::core::jinja {

struct Scope {
  std::vector<std::pair<std::string, Value>> variables;
  std::shared_ptr<Scope> parent;
};

class TemplateEvaluator {
 public:
  using Variables = std::vector<std::pair<std::string, Value>>;
  TemplateEvaluator(Meter meter, uint64_t max_output, Variables globals, const CivilTime& now);
  Result<std::string> run(const std::vector<Statement>& body);

 private:
  enum class Flow : uint8_t { on, stop, skip };
  class Inside;  // a scope for its lifetime
  Status deeper(int64_t offset);
  Result<Flow> execute(const std::vector<Statement>& body);
  Result<Flow> execute(const Statement& statement);
  Result<Flow> branch(const Statement& statement);
  Result<Flow> block(const Statement& statement);
  Result<Flow> with(const Statement& statement);
  Result<Flow> rounds(const Statement& statement, const Value& iterable, int64_t depth);
  Result<Value::List> loop_items(const Statement& statement, const Value& iterable);
  Value loop_variable(const Statement& statement, const Value::List& items, size_t index,
                      int64_t depth, const std::shared_ptr<Value::List>& changed);
  Status bind(const Target& target, const Value& value, int64_t offset);
  Status print(std::string_view text, int64_t offset);

  Result<Value> evaluate(const Expr& expr);
  Result<Value> evaluate_inside(const Expr& expr);
  Result<Value> literal(const Expr& expr);
  Result<Value> collection(const Expr& expr);
  Result<Value> binary(const Expr& expr);
  Result<Value> comparison(const Expr& expr);
  Result<Value> attribute(const Expr& expr);
  Result<Value> attribute_of(const Value& object, const std::string& name, int64_t offset);
  Result<Value> item(const Expr& expr);
  Result<Value> slice(const Expr& expr);
  Result<Value> conditional(const Expr& expr);

  Result<Value> filter_or_test(const Expr& expr, const Value* input = nullptr);
  Result<Value> filtered(const Expr& chain, const Value& input);
  Result<Value> call(const Expr& expr, const Value* caller = nullptr);
  Result<Value> call_value(const Value& function, Call& call);
  Result<Value> call_macro(const Callable& macro, const Call& call);
  Status bind_arguments(const Statement& macro, const Call& call);
  Result<Value> call_loop(const Callable& loop, const Call& call);
  Status arguments(const Expr& expr, Call& call);
  Status spread(const std::string& stars, const Value& value, Call& call);
  Value macro_value(const Statement& statement) const;
  // Runs `body` and returns its output.
  template <class Body>
  Result<std::string> printed(const Body& body) {
    std::string outer = std::exchange(out_, {});
    const Status status = body();
    std::string text = std::exchange(out_, std::move(outer));
    if (!status.ok()) return status.error();
    return text;
  }

  const Value* lookup(std::string_view name) const;
  void assign(const std::string& name, Value value);

  Meter meter_;
  uint64_t max_output_;
  CivilTime now_;
  std::shared_ptr<Scope> scope_ = std::make_shared<Scope>();
  std::string out_;
  int depth_ = 0;  // nested calls of this class
};

}  // namespace loom::core::jinja
