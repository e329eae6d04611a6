// Runs grammars for outside/grammar_check.py, which lets other programs judge them. It reads and
// writes lines of JSON:
//   {"vocabulary": ["hex", ..]}      the tokens from here on.
//   {"schema": .. | "gbnf": "..", "closed": b, "spaces": b}  the grammar from here on.
//   {"walk": seed, "steps": n}       a random text: its tokens, the allowed tokens before each, and
//                                    whether it ended.
//   {"follow": [id, ..]}             the allowed tokens before each, as far as they are allowed.
//   {"fits": ["hex", ..]}            whether each text is in the language.
#include <cstdio>
#include <iostream>
#include <random>

#include "grammar/gbnf.hpp"
#include "grammar/matcher.hpp"
#include "grammar/schemas/json_schema.hpp"

namespace {

using namespace loom::core;
using namespace loom::core::grammar;

std::string bytes_of(const std::string& hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return out;
}

JsonValue failed(const loom::Error& error) {
  JsonValue out = JsonValue::object();
  out.add("error", JsonValue::string(error.str()));
  return out;
}

class GrammarRunner {
 public:
  JsonValue answer(const JsonValue& line) {
    if (const JsonValue* tokens = line.find("vocabulary")) {
      std::vector<std::string> all;
      for (const JsonValue& t : tokens->elements()) all.push_back(bytes_of(t.text()));
      vocabulary_ = std::make_shared<const Vocabulary>(std::move(all));
      return JsonValue::object();
    }
    if (line.find("schema") != nullptr || line.find("gbnf") != nullptr) return compile(line);
    if (program_ == nullptr) return failed(invalid("no grammar yet"));
    if (const JsonValue* texts = line.find("fits")) return fits(*texts);
    if (line.find("walk") != nullptr) return walk(line);
    if (const JsonValue* ids = line.find("follow")) return follow(*ids);
    return failed(invalid("unknown"));
  }

 private:
  static bool flag(const JsonValue& line, const char* name, bool otherwise) {
    const JsonValue* value = line.find(name);
    return value != nullptr ? value->as_bool(name).value_or(otherwise) : otherwise;
  }

  JsonValue compile(const JsonValue& line) {
    Builder builder;
    SchemaOptions options;
    options.spaces = flag(line, "spaces", true);
    options.closed = flag(line, "closed", false);
    const JsonValue* schema = line.find("schema");
    const auto root = schema != nullptr ? add_json_schema(builder, *schema, options)
                                        : add_gbnf(builder, line.find("gbnf")->text());
    program_ = nullptr;
    if (!root.ok()) return failed(root.error());
    auto program = Program::compile(builder, *root);
    if (!program.ok()) return failed(program.error());
    program_ = *program;
    return JsonValue::object();
  }

  JsonValue fits(const JsonValue& texts) const {
    JsonValue list = JsonValue::array();
    for (const JsonValue& text : texts.elements()) {
      Automaton automaton(program_, 16);
      ConfigSet at = automaton.start();
      for (const char c : bytes_of(text.text())) at = automaton.step(at, static_cast<uint8_t>(c));
      list.push(JsonValue::boolean(at.ends && !automaton.overflowed()));
    }
    JsonValue out = JsonValue::object();
    out.add("fits", std::move(list));
    return out;
  }

  std::vector<int32_t> allowed(Matcher& matcher) const {
    std::vector<int32_t> ids;
    const auto bits = matcher.allowed();
    if (!bits.ok()) return ids;
    for (size_t id = 0; id < vocabulary_->size(); ++id) {
      if (((*bits)[id / 64] >> (id % 64) & 1) != 0) ids.push_back(static_cast<int32_t>(id));
    }
    return ids;
  }
  static JsonValue json_of(const std::vector<int32_t>& ids) {
    JsonValue out = JsonValue::array();
    for (const int32_t id : ids) out.push(JsonValue::integer(id));
    return out;
  }

  JsonValue walk(const JsonValue& line) const {
    std::mt19937_64 engine(static_cast<uint64_t>(line.find("walk")->as_int("walk").value_or(0)));
    const int64_t steps = line.find("steps")->as_int("steps").value_or(100);
    Matcher matcher(program_, vocabulary_);
    JsonValue ids = JsonValue::array(), masks = JsonValue::array();
    bool ended = false;
    for (int64_t i = 0; i < steps && !ended; ++i) {
      const std::vector<int32_t> may = allowed(matcher);
      ended = matcher.may_end() && (may.empty() || engine() % 3 == 0);
      if (ended || may.empty()) break;
      const int32_t id = may[engine() % may.size()];
      ids.push(JsonValue::integer(id));
      masks.push(json_of(may));
      if (!matcher.accept(id)) return failed(invalid("an allowed token did not follow"));
    }
    JsonValue out = JsonValue::object();
    out.add("ids", std::move(ids));
    out.add("masks", std::move(masks));
    out.add("ended", JsonValue::boolean(ended));
    return out;
  }

  JsonValue follow(const JsonValue& ids) const {
    Matcher matcher(program_, vocabulary_);
    JsonValue masks = JsonValue::array(), ends = JsonValue::array();
    const auto note = [&] {
      masks.push(json_of(allowed(matcher)));
      ends.push(JsonValue::boolean(matcher.may_end()));
    };
    note();
    for (const JsonValue& id : ids.elements()) {
      if (!matcher.accept(static_cast<int32_t>(id.as_int("id").value_or(0)))) break;
      note();
    }
    JsonValue out = JsonValue::object();
    out.add("masks", std::move(masks));
    out.add("ends", std::move(ends));
    return out;
  }

  std::shared_ptr<const Vocabulary> vocabulary_;
  std::shared_ptr<const Program> program_;
};

}  // namespace

int main() {
  GrammarRunner runner;
  for (std::string line; std::getline(std::cin, line);) {
    const loom::Result<JsonValue> request = parse_json(line, "line");
    const JsonValue reply = request.ok() ? runner.answer(*request) : failed(request.error());
    std::cout << dump_json(reply) << std::endl;
  }
  return 0;
}
