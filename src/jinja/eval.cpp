// Statements. Recursion follows the tree, whose depth the parser bounds; every statement and every
// value costs the meter.
#include "jinja/eval.hpp"

#include "base/text.hpp"

namespace loom::core::jinja {

Evaluator::Evaluator(Meter meter, uint64_t max_output, Scope globals, const CivilTime& now)
    : meter_(std::move(meter)), max_output_(max_output), now_(now) {
  scopes_.push_back(std::move(globals));
}

Result<std::string> Evaluator::run(const std::vector<Statement>& body) {
  const Result<Flow> flow = execute(body);
  if (!flow.ok()) return flow.error();
  return std::move(out_);
}

const Value* Evaluator::lookup(std::string_view name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    for (const auto& [key, value] : *scope) {
      if (key == name) return &value;
    }
  }
  return nullptr;
}

void Evaluator::assign(const std::string& name, Value value) {
  for (auto& [key, old] : scopes_.back()) {
    if (key != name) continue;
    old = std::move(value);
    return;
  }
  scopes_.back().emplace_back(name, std::move(value));
}

Status Evaluator::print(std::string_view text, int64_t offset) {
  LOOM_TRY(meter_.work(text.size(), offset));
  if (out_.size() + text.size() > max_output_) {
    return meter_.fail(cat("rendering gives more than ", max_output_, " bytes"), offset);
  }
  out_ += text;
  return {};
}

Result<Evaluator::Flow> Evaluator::execute(const std::vector<Statement>& body) {
  for (const Statement& statement : body) {
    LOOM_ASSIGN(const Flow flow, execute(statement));
    if (flow != Flow::on) return flow;
  }
  return Flow::on;
}

Result<Evaluator::Flow> Evaluator::execute(const Statement& statement) {
  LOOM_TRY(meter_.work(0, statement.offset));
  switch (statement.kind) {
    case Statement::Kind::data: LOOM_TRY(print(statement.text, statement.offset)); break;
    case Statement::Kind::branch: return branch(statement);
    case Statement::Kind::loop: return loop(statement);
    case Statement::Kind::stop: return Flow::stop;
    case Statement::Kind::skip: return Flow::skip;
    case Statement::Kind::output: {
      LOOM_ASSIGN(const Value value, evaluate(*statement.values[0]));
      LOOM_ASSIGN(const std::string text, meter_.to_text(value, statement.offset));
      LOOM_TRY(print(text, statement.offset));
      break;
    }
    case Statement::Kind::set: {
      LOOM_ASSIGN(Value value, evaluate(*statement.values[0]));
      LOOM_TRY(set(statement, std::move(value)));
      break;
    }
    case Statement::Kind::set_block: {
      std::string outer = std::exchange(out_, {});
      const Result<Flow> flow = execute(statement.bodies[0]);
      std::string text = std::exchange(out_, std::move(outer));
      if (!flow.ok()) return flow.error();
      LOOM_ASSIGN(Value value, meter_.make(std::move(text), statement.offset));
      LOOM_TRY(set(statement, std::move(value)));
      break;
    }
  }
  return Flow::on;
}

Status Evaluator::set(const Statement& statement, Value value) {
  if (statement.space.empty()) {
    assign(statement.text, std::move(value));
    return {};
  }
  const Value* space = lookup(statement.space);
  if (space == nullptr || !space->is(Value::Kind::space)) {
    return meter_.fail(cat("'", printable(statement.space), "' is no namespace"), statement.offset);
  }
  // A namespace inside itself would never be freed.
  if (value.holds_space()) return meter_.refuse("a namespace in a namespace", statement.offset);
  space->set_attribute(statement.text, std::move(value));
  return {};
}

Result<Evaluator::Flow> Evaluator::branch(const Statement& statement) {
  for (size_t i = 0; i < statement.values.size(); ++i) {
    if (statement.values[i]) {
      LOOM_ASSIGN(const Value condition, evaluate(*statement.values[i]));
      if (!condition.truthy()) continue;
    }
    return execute(statement.bodies[i]);
  }
  return Flow::on;
}

Status Evaluator::bind(const Statement& statement, const Value& item) {
  const auto& targets = statement.targets;
  if (targets.size() == 1) {
    assign(targets[0], item);
    return {};
  }
  if (!item.is(Value::Kind::list) || item.items().size() != targets.size()) {
    return meter_.fail(
        cat("cannot unpack ", kind_name(item.kind()), " to ", targets.size(), " names"),
        statement.offset);
  }
  for (size_t i = 0; i < targets.size(); ++i) assign(targets[i], item.items()[i]);
  return {};
}

// What the loop runs over: the filter "for x in list if condition" is applied before the first
// round.
Result<Value::List> Evaluator::loop_items(const Statement& statement) {
  LOOM_ASSIGN(const Value iterable, evaluate(*statement.values[0]));
  LOOM_ASSIGN(Value::List items, iterate(iterable, meter_, statement.offset));
  if (!statement.values[1]) return items;
  Value::List kept;
  for (const Value& item : items) {
    scopes_.emplace_back();
    const Status bound = bind(statement, item);
    if (!bound.ok()) return bound.error();
    const Result<Value> condition = evaluate(*statement.values[1]);
    scopes_.pop_back();
    if (!condition.ok()) return condition.error();
    if (condition->truthy()) kept.push_back(item);
  }
  return kept;
}

Result<Value> Evaluator::loop_variable(const Value::List& items, size_t index, int64_t offset) {
  const auto at = static_cast<int64_t>(index), count = static_cast<int64_t>(items.size());
  Value::Dict members = {{"index", Value::integer(at + 1)},
                         {"index0", Value::integer(at)},
                         {"first", Value::boolean(at == 0)},
                         {"last", Value::boolean(at + 1 == count)},
                         {"length", Value::integer(count)},
                         {"revindex", Value::integer(count - at)},
                         {"revindex0", Value::integer(count - at - 1)}};
  if (index > 0) members.emplace_back("previtem", items[index - 1]);
  if (index + 1 < items.size()) members.emplace_back("nextitem", items[index + 1]);
  LOOM_TRY(meter_.work(0, offset));
  return Value::dict(std::move(members));
}

Result<Evaluator::Flow> Evaluator::loop(const Statement& statement) {
  LOOM_ASSIGN(const Value::List items, loop_items(statement));
  if (items.empty()) return execute(statement.bodies[1]);
  for (size_t i = 0; i < items.size(); ++i) {
    scopes_.emplace_back();
    LOOM_ASSIGN(Value variable, loop_variable(items, i, statement.offset));
    assign("loop", std::move(variable));
    LOOM_TRY(bind(statement, items[i]));
    LOOM_ASSIGN(const Flow flow, execute(statement.bodies[0]));
    scopes_.pop_back();
    if (flow == Flow::stop) break;
  }
  return Flow::on;
}

}  // namespace loom::core::jinja
