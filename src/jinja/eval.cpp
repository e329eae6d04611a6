// Statements. Everything that a template does runs through here or through evaluate(): the meter
// counts every statement and every value.
#include "jinja/eval.hpp"

#include "base/text.hpp"

namespace loom::core::jinja {
namespace {
// The nesting limit of evaluate() and execute(), which recursive macros reach. A level takes about
// a kilobyte of the stack. Python's limit is 1000 frames.
constexpr int kMaxDepth = 600;
}  // namespace

class TemplateEvaluator::Inside {
 public:
  Inside(TemplateEvaluator& evaluator, std::shared_ptr<Scope> parent)
      : evaluator_(evaluator), outer_(evaluator.scope_) {
    evaluator_.scope_ = std::make_shared<Scope>();
    evaluator_.scope_->parent = std::move(parent);
  }
  explicit Inside(TemplateEvaluator& evaluator) : Inside(evaluator, evaluator.scope_) {}
  ~Inside() { evaluator_.scope_ = std::move(outer_); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  TemplateEvaluator& evaluator_;
  std::shared_ptr<Scope> outer_;
};

TemplateEvaluator::TemplateEvaluator(Meter meter, uint64_t max_output, Variables globals,
                                     const CivilTime& now)
    : meter_(std::move(meter)), max_output_(max_output), now_(now) {
  scope_->variables = std::move(globals);
}

Result<std::string> TemplateEvaluator::run(const std::vector<Statement>& body) {
  const Result<Flow> flow = execute(body);
  if (!flow.ok()) return flow.error();
  return std::move(out_);
}

const Value* TemplateEvaluator::lookup(std::string_view name) const {
  for (const Scope* scope = scope_.get(); scope != nullptr; scope = scope->parent.get()) {
    for (const auto& [key, value] : scope->variables) {
      if (key == name) return &value;
    }
  }
  return nullptr;
}

void TemplateEvaluator::assign(const std::string& name, Value value) {
  for (auto& [key, old] : scope_->variables) {
    if (key != name) continue;
    old = std::move(value);
    return;
  }
  scope_->variables.emplace_back(name, std::move(value));
}

Status TemplateEvaluator::deeper(int64_t offset) {
  if (depth_ >= kMaxDepth) return meter_.fail("calls are nested too deeply", offset);
  return meter_.work(0, offset);
}

Status TemplateEvaluator::print(std::string_view text, int64_t offset) {
  LOOM_TRY(meter_.work(text.size(), offset));
  if (out_.size() + text.size() > max_output_) {
    return meter_.fail(cat("rendering gives more than ", max_output_, " bytes"), offset);
  }
  out_ += text;
  return {};
}

Result<TemplateEvaluator::Flow> TemplateEvaluator::execute(const std::vector<Statement>& body) {
  for (const Statement& statement : body) {
    LOOM_TRY(deeper(statement.offset));
    ++depth_;
    const Result<Flow> flow = execute(statement);
    --depth_;
    if (!flow.ok() || *flow != Flow::on) return flow;
  }
  return Flow::on;
}

Result<TemplateEvaluator::Flow> TemplateEvaluator::execute(const Statement& statement) {
  switch (statement.kind) {
    case Statement::Kind::data: LOOM_TRY(print(statement.text, statement.offset)); break;
    case Statement::Kind::branch: return branch(statement);
    case Statement::Kind::stop: return Flow::stop;
    case Statement::Kind::skip: return Flow::skip;
    case Statement::Kind::with: return with(statement);
    case Statement::Kind::set_block:
    case Statement::Kind::filter_block: return block(statement);
    case Statement::Kind::loop: {
      LOOM_ASSIGN(const Value iterable, evaluate(*statement.values[0]));
      return rounds(statement, iterable, 1);
    }
    case Statement::Kind::output: {
      LOOM_ASSIGN(const Value value, evaluate(*statement.values[0]));
      LOOM_ASSIGN(const std::string text, meter_.to_text(value, statement.offset));
      LOOM_TRY(print(text, statement.offset));
      break;
    }
    case Statement::Kind::set: {
      LOOM_ASSIGN(const Value value, evaluate(*statement.values[0]));
      LOOM_TRY(bind(statement.target, value, statement.offset));
      break;
    }
    case Statement::Kind::macro: assign(statement.text, macro_value(statement)); break;
    case Statement::Kind::call_block: {
      const Value caller = macro_value(statement);
      LOOM_ASSIGN(const Value value, call(*statement.values[0], &caller));
      LOOM_ASSIGN(const std::string text, meter_.to_text(value, statement.offset));
      LOOM_TRY(print(text, statement.offset));
      break;
    }
  }
  return Flow::on;
}

// A block whose text is assigned to a variable or passed through filters.
Result<TemplateEvaluator::Flow> TemplateEvaluator::block(const Statement& statement) {
  Flow flow = Flow::on;
  const auto body = [&]() -> Status {
    const Inside inside(*this);
    LOOM_ASSIGN(flow, execute(statement.bodies[0]));
    return {};
  };
  LOOM_ASSIGN(std::string text, printed(body));
  LOOM_ASSIGN(Value value, meter_.make(std::move(text), statement.offset));
  if (statement.values[0]) {
    LOOM_ASSIGN(value, filtered(*statement.values[0], value));
  }
  if (statement.kind == Statement::Kind::set_block) {
    LOOM_TRY(bind(statement.target, value, statement.offset));
  } else {
    LOOM_ASSIGN(const std::string out, meter_.to_text(value, statement.offset));
    LOOM_TRY(print(out, statement.offset));
  }
  return flow;
}

Result<TemplateEvaluator::Flow> TemplateEvaluator::with(const Statement& statement) {
  Value::List values;
  for (const ExprPtr& expr : statement.values) {
    LOOM_ASSIGN(Value value, evaluate(*expr));
    values.push_back(std::move(value));
  }
  const Inside inside(*this);
  for (size_t i = 0; i < values.size(); ++i) {
    LOOM_TRY(bind(statement.target.parts[i], values[i], statement.offset));
  }
  return execute(statement.bodies[0]);
}

Result<TemplateEvaluator::Flow> TemplateEvaluator::branch(const Statement& statement) {
  for (size_t i = 0; i < statement.values.size(); ++i) {
    if (statement.values[i]) {
      LOOM_ASSIGN(const Value condition, evaluate(*statement.values[i]));
      if (!condition.truthy()) continue;
    }
    return execute(statement.bodies[i]);
  }
  return Flow::on;
}

Status TemplateEvaluator::bind(const Target& target, const Value& value, int64_t offset) {
  if (!target.parts.empty()) {
    LOOM_ASSIGN(const Value::List items, iterate(value, meter_, offset));
    if (items.size() != target.parts.size()) {
      return meter_.fail(cat("cannot unpack ", items.size(), " values of ", kind_name(value),
                             " to ", target.parts.size(), " names"),
                         offset);
    }
    for (size_t i = 0; i < items.size(); ++i) LOOM_TRY(bind(target.parts[i], items[i], offset));
    return {};
  }
  if (target.space.empty()) {
    assign(target.name, value);
    return {};
  }
  const Value* space = lookup(target.space);
  if (space == nullptr || !space->is(Value::Kind::space)) {
    return meter_.fail(cat("'", printable(target.space), "' is not a namespace"), offset);
  }
  // A namespace inside itself would never be freed.
  if (value.holds_space()) {
    return meter_.refuse("a namespace or a function in a namespace", offset);
  }
  space->set_attribute(target.name, value);
  return {};
}

// The items of the loop: the filter "for x in list if condition" is applied before the first
// iteration.
Result<Value::List> TemplateEvaluator::loop_items(const Statement& statement,
                                                  const Value& iterable) {
  LOOM_ASSIGN(Value::List items, iterate(iterable, meter_, statement.offset));
  if (!statement.values[1]) return items;
  Value::List kept;
  for (const Value& item : items) {
    const Inside inside(*this);
    LOOM_TRY(bind(statement.target, item, statement.offset));
    LOOM_ASSIGN(const Value condition, evaluate(*statement.values[1]));
    if (condition.truthy()) kept.push_back(item);
  }
  return kept;
}

Value TemplateEvaluator::loop_variable(const Statement& statement, const Value::List& items,
                                       size_t index, int64_t depth,
                                       const std::shared_ptr<Value::List>& changed) {
  const auto at = static_cast<int64_t>(index), count = static_cast<int64_t>(items.size());
  auto loop = std::make_shared<Callable>();
  loop->kind = Callable::Kind::loop;
  loop->name = "loop";
  loop->statement = &statement;
  loop->scope = scope_->parent;
  loop->depth = depth;
  loop->changed = changed;
  loop->members = {{"index", Value::integer(at + 1)},
                   {"index0", Value::integer(at)},
                   {"first", Value::boolean(at == 0)},
                   {"last", Value::boolean(at + 1 == count)},
                   {"length", Value::integer(count)},
                   {"revindex", Value::integer(count - at)},
                   {"revindex0", Value::integer(count - at - 1)},
                   {"depth", Value::integer(depth)},
                   {"depth0", Value::integer(depth - 1)}};
  if (index > 0) loop->members.emplace_back("previtem", items[index - 1]);
  if (index + 1 < items.size()) loop->members.emplace_back("nextitem", items[index + 1]);
  return Value::function(std::move(loop));
}

Result<TemplateEvaluator::Flow> TemplateEvaluator::rounds(const Statement& statement,
                                                          const Value& iterable, int64_t depth) {
  LOOM_ASSIGN(const Value::List items, loop_items(statement, iterable));
  if (items.empty()) {
    const Inside inside(*this);
    return execute(statement.bodies[1]);
  }
  const auto changed = std::make_shared<Value::List>();
  for (size_t i = 0; i < items.size(); ++i) {
    const Inside inside(*this);
    LOOM_TRY(meter_.work(256, statement.offset));
    LOOM_TRY(bind(statement.target, items[i], statement.offset));
    assign("loop", loop_variable(statement, items, i, depth, changed));
    LOOM_ASSIGN(const Flow flow, execute(statement.bodies[0]));
    if (flow == Flow::stop) break;
  }
  return Flow::on;
}

Value TemplateEvaluator::macro_value(const Statement& statement) const {
  auto macro = std::make_shared<Callable>();
  macro->kind = Callable::Kind::macro;
  macro->name = statement.text;
  macro->statement = &statement;
  macro->scope = scope_;
  macro->members = {{"name", Value::string(statement.text)}};
  return Value::function(std::move(macro));
}

// Binds arguments, defaults and excess arguments in the scope of the call.
Status TemplateEvaluator::bind_arguments(const Statement& macro, const Call& call) {
  const size_t first_default = macro.kind == Statement::Kind::call_block ? 1 : 0;
  std::vector<bool> used(call.named.size());
  for (size_t i = 0; i < macro.parameters.size(); ++i) {
    const std::string& name = macro.parameters[i];
    Value value = Value::undefined(name);
    bool given = i < call.arguments.size();
    if (given) value = call.arguments[i];
    for (size_t k = 0; k < call.named.size(); ++k) {
      if (call.named[k].first != name) continue;
      if (given) return meter_.fail(cat("'", printable(name), "' is given twice"), call.offset);
      given = used[k] = true;
      value = call.named[k].second;
    }
    const ExprPtr& otherwise = macro.values[i + first_default];
    if (!given && otherwise) {
      LOOM_ASSIGN(value, evaluate(*otherwise));
    }
    assign(name, std::move(value));
  }
  Value::List more;
  for (size_t i = macro.parameters.size(); i < call.arguments.size(); ++i) {
    more.push_back(call.arguments[i]);
  }
  Value::Dict named;
  for (size_t k = 0; k < call.named.size(); ++k) {
    if (used[k]) continue;
    if (macro.takes_caller && call.named[k].first == "caller") {
      assign("caller", call.named[k].second);
    } else {
      named.push_back(call.named[k]);
    }
  }
  if ((!more.empty() && !macro.takes_more) || (!named.empty() && !macro.takes_named)) {
    return meter_.fail(
        cat("'", printable(macro.text), "' takes ", macro.parameters.size(),
            " arguments, and not '", named.empty() ? "" : printable(named[0].first), "'"),
        call.offset);
  }
  if (macro.takes_more) {
    LOOM_ASSIGN(Value rest, meter_.make(std::move(more), call.offset, Value::Sequence::tuple));
    assign("varargs", std::move(rest));
  }
  if (macro.takes_named) {
    LOOM_ASSIGN(Value rest, meter_.make(std::move(named), call.offset));
    assign("kwargs", std::move(rest));
  }
  return {};
}

Result<Value> TemplateEvaluator::call_macro(const Callable& macro, const Call& call) {
  const std::shared_ptr<Scope> home = macro.scope.lock();
  if (!home) return meter_.refuse("a macro outside of the block that defines it", call.offset);
  const Statement& statement = *macro.statement;
  const auto body = [&]() -> Status {
    const Inside inside(*this, home);
    LOOM_TRY(bind_arguments(statement, call));
    LOOM_ASSIGN(const Flow flow, execute(statement.bodies[0]));
    static_cast<void>(flow);
    return {};
  };
  LOOM_ASSIGN(std::string text, printed(body));
  return meter_.make(std::move(text), call.offset);
}

Result<Value> TemplateEvaluator::call_loop(const Callable& loop, const Call& call) {
  const std::shared_ptr<Scope> home = loop.scope.lock();
  if (!loop.statement->recursive || !home || call.arguments.size() != 1) {
    return meter_.fail("loop() needs 'recursive' and one argument", call.offset);
  }
  const auto body = [&]() -> Status {
    const Inside inside(*this, home);
    LOOM_ASSIGN(const Flow flow, rounds(*loop.statement, call.arguments[0], loop.depth + 1));
    static_cast<void>(flow);
    return {};
  };
  LOOM_ASSIGN(std::string text, printed(body));
  return meter_.make(std::move(text), call.offset);
}

}  // namespace loom::core::jinja
