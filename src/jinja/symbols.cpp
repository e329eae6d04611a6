// The variables of the conversation that a template hides from its own blocks. Jinja decides before
// it runs: a name that the outermost level assigns before reading is undefined until then. This
// includes loops and blocks above the assignment. A name assigned in a branch of an "if" keeps its
// value.
#include <set>

#include "jinja/ast.hpp"

namespace loom::core::jinja {
namespace {

class Symbols {
 public:
  void visit(const std::vector<Statement>& body, bool in_branch) {
    for (const Statement& statement : body) visit(statement, in_branch);
  }
  std::vector<std::string> hidden;

 private:
  void read(const Expr* expr) {
    if (expr == nullptr) return;
    if (expr->kind == Expr::Kind::variable) seen_.insert(expr->name);
    for (const ExprPtr& child : expr->children) read(child.get());
  }

  void store(const std::string& name, bool in_branch) {
    if (seen_.insert(name).second && !in_branch) hidden.push_back(name);
  }

  void store(const Target& target, bool in_branch) {
    for (const Target& part : target.parts) store(part, in_branch);
    if (!target.parts.empty()) return;
    if (target.space.empty()) {
      store(target.name, in_branch);
    } else {
      seen_.insert(target.space);
    }
  }

  void visit(const Statement& s, bool in_branch) {
    switch (s.kind) {
      case Statement::Kind::branch:
        for (size_t i = 0; i < s.bodies.size(); ++i) {
          read(s.values[i].get());
          visit(s.bodies[i], true);
        }
        break;
      case Statement::Kind::set:
        read(s.values[0].get());
        store(s.target, in_branch);
        break;
      case Statement::Kind::set_block: store(s.target, in_branch); break;
      case Statement::Kind::macro: store(s.text, in_branch); break;
      case Statement::Kind::output:
      case Statement::Kind::loop:  // the iterable; its filter belongs to the loop
      case Statement::Kind::call_block:
      case Statement::Kind::filter_block: read(s.values[0].get()); break;
      case Statement::Kind::with:
        for (const ExprPtr& value : s.values) read(value.get());
        break;
      default: break;
    }
  }

  std::set<std::string> seen_;
};

}  // namespace

std::vector<std::string> hidden_names(const std::vector<Statement>& body) {
  Symbols symbols;
  symbols.visit(body, false);
  return std::move(symbols.hidden);
}

}  // namespace loom::core::jinja
