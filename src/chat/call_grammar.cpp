#include "chat/call_grammar.hpp"

#include <algorithm>
#include <vector>

#include "base/text.hpp"

namespace loom::core {
namespace {

using Syntax = ToolFormat::Syntax;

// A literal of GBNF.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : c == '\t' ? "\\t" : std::string(1, c);
  }
  return out + "\" ";
}
// Nothing if there is no mark.
std::string mark(std::string_view text) {
  return text.empty() ? std::string() : quoted(text);
}
std::string json_word(std::string_view text) {
  return dump_json(JsonValue::string(std::string(text)));
}

bool is_note(std::string_view key) {
  constexpr std::string_view kNotes[] = {"type",    "title",    "description", "default",
                                         "example", "examples", "$comment",    "deprecated"};
  return std::ranges::find(kNotes, key) != std::end(kNotes);
}

JsonValue any_object() {
  JsonValue out;
  out.add("type", JsonValue::string("object"));
  return out;
}

// The rules of one grammar.
class CallGrammar {
 public:
  CallGrammar(const ToolFormat& format, const std::vector<const Tool*>& tools,
              const CallRules& rules)
      : format_(format), tools_(tools), rules_(rules) {}

  // Writes three rules: `calls` (all of a reply), `call-rest` (one call, or the list, after its
  // opening mark), and `section-rest` (after the mark that opens a section).
  Result<std::string> write() {
    line("nl", "\"\\n\"?");
    line("sp", "\" \"?");
    std::vector<std::string> names;
    for (size_t i = 0; i < tools_.size(); ++i) {
      names.push_back(cat("tool-", i));
      LOOM_ASSIGN(const std::string body, tool(i));
      line(names.back(), body);
    }
    line("tool", join(names, " | "));
    line("call-rest", rest());
    const std::string one = mark(format_.open) + "call-rest";
    const bool list = format_.syntax == Syntax::list || format_.syntax == Syntax::bare;
    const std::string more = rules_.parallel && !list ? cat(" (nl ", one, ")*") : "";
    line("section-rest", cat("nl ", one, more, format_.section_close.empty() ? " " : " nl ",
                             mark(format_.section_close)));
    line("calls",
         format_.section_open.empty() ? one + more : mark(format_.section_open) + "section-rest");
    return std::move(text_);
  }

 private:
  void line(const std::string& name, const std::string& body) {
    text_ += cat(name, " ::= ", body, "\n");
  }

  std::string rest() const {
    const std::string close = mark(format_.close);
    switch (format_.syntax) {
      case Syntax::object: return cat("nl tool nl ", close);
      case Syntax::list: {
        const char* more = rules_.parallel ? "(\",\" sp tool)* " : "";
        return cat("nl \"[\" tool ", more, "\"]\" ", close.empty() ? "" : "nl ", close);
      }
      default: return cat("tool ", close);
    }
  }

  Result<std::string> tool(size_t i) {
    const Tool& tool = *tools_[i];
    if (format_.syntax == Syntax::parameters) return parameters(i);
    const std::string arguments = "%json " + dump_json(schema_of(tool)) + " ";
    if (format_.syntax == Syntax::named) {
      const std::string number = format_.numbered ? "\":\" [0-9]{1,3} " : "";
      return cat(quoted(cat(format_.name_open, tool.name)), number, mark(format_.separator),
                 arguments, mark(format_.json_close));
    }
    std::string id;
    if (!format_.id_key.empty())
      id = cat("(", quoted(json_word(format_.id_key) + ":"),
               "sp \"\\\"\" [0-9]{1,3} \"\\\",\" sp)? ");
    return cat("\"{\" sp ", id, quoted(json_word(format_.name_key) + ":"), "sp ",
               quoted(json_word(tool.name) + ","), "sp ",
               quoted(json_word(format_.arguments_key) + ":"), "sp ", arguments, "sp \"}\"");
  }

  bool held(const Tool& tool) const { return rules_.required || tool.strict; }
  JsonValue schema_of(const Tool& tool) const {
    return held(tool) ? held_schema(tool) : any_object();
  }

  // Keys and values between marks, in the order of `properties`.
  Result<std::string> parameters(size_t i) {
    const Tool& tool = *tools_[i];
    std::string body = quoted(tool.name) + mark(format_.separator) + "nl ";
    if (!held(tool)) {
      return cat(body, "(", mark(format_.key_open), "%until ", quoted(format_.key_close),
                 format_.value_open.empty() ? "" : "nl ", mark(format_.value_open), "%until ",
                 quoted(format_.value_close), "nl)* ");
    }
    const std::string where = cat("parameters of ", printable(tool.name), "#");
    const JsonValue schema = held_schema(tool);
    constexpr std::string_view kKnown[] = {"properties", "required", "additionalProperties",
                                           "$defs",      "$schema",  "definitions",
                                           "strict"};
    for (const JsonValue::Member& m : schema.members()) {
      if (!is_note(m.first) && std::ranges::find(kKnown, m.first) == std::end(kKnown)) {
        return unsupported(cat(where, "/", printable(m.first), ": calls of the family ",
                               format_.name, " cannot be held to this"));
      }
    }
    const JsonValue* properties = schema.find("properties");
    const JsonValue* required = schema.find("required");
    const auto is_required = [&](const std::string& key) {
      return required != nullptr &&
             std::ranges::any_of(required->elements(), [&](auto& v) { return v.text() == key; });
    };
    for (size_t k = 0; properties != nullptr && k < properties->members().size(); ++k) {
      const auto& [key, property] = properties->members()[k];
      LOOM_ASSIGN(const std::string value,
                  value_of(schema, property, cat(where, "/properties/", key)));
      const std::string name = cat("tool-", i, "-", k);
      line(name,
           cat(quoted(cat(format_.key_open, key, format_.key_close)),
               format_.value_open.empty() ? "" : "nl ", mark(format_.value_open), value, "nl"));
      body += cat(name, is_required(key) ? " " : "? ");
    }
    return body;
  }

  // A value and the mark that ends it. Strings are written without quotes.
  Result<std::string> value_of(const JsonValue& root, const JsonValue& schema,
                               const std::string& where) const {
    const std::string close = mark(format_.value_close);
    const JsonValue* type = schema.find("type");
    if (type != nullptr && type->text() == "string") {
      LOOM_ASSIGN(const std::string text, raw_string(schema, where));
      return text.empty() ? "%until " + close : cat("nl ", text, " nl ", close);
    }
    JsonValue own = schema;
    for (const char* key : {"$defs", "definitions"}) {
      const JsonValue* shared = root.find(key);
      if (shared != nullptr && own.is_object() && own.find(key) == nullptr) own.add(key, *shared);
    }
    return cat("nl %json ", dump_json(own), " nl ", close);
  }

  // "" means any string.
  Result<std::string> raw_string(const JsonValue& schema, const std::string& where) const {
    int64_t least = 0, most = -1;
    std::vector<std::string> words;
    const JsonValue *all = schema.find("enum"), *one = schema.find("const");
    for (const JsonValue::Member& m : schema.members()) {
      if (is_note(m.first) || m.first == "enum" || m.first == "const") continue;
      if (m.first != "minLength" && m.first != "maxLength") {
        return unsupported(cat(where, "/", printable(m.first), ": calls of the family ",
                               format_.name, " cannot hold strings to this"));
      }
      LOOM_ASSIGN((m.first == "minLength" ? least : most), m.second.as_int(where));
    }
    if (one != nullptr) words.push_back(quoted(one->text()));
    for (size_t i = 0; one == nullptr && all != nullptr && i < all->elements().size(); ++i)
      words.push_back(quoted(all->elements()[i].text()));
    if (!words.empty()) return cat("(", join(words, "| "), ")");
    if (least <= 0 && most < 0) return std::string();
    return cat("[^<\\n]{", std::max<int64_t>(least, 0), ",", most < 0 ? "" : cat(most), "}");
  }

  const ToolFormat& format_;
  const std::vector<const Tool*>& tools_;
  const CallRules& rules_;
  std::string text_;
};

// Calls are optional. In a family without marks, a reply that begins like a call is one; other
// replies must begin otherwise.
std::string open_root(const ToolFormat& format, const CallRules& rules, Thinking thinking) {
  if (format.syntax != Syntax::bare) {
    std::string triggers;
    if (!format.section_open.empty()) triggers = cat(mark(format.section_open), "section-rest | ");
    const std::string after =
        format.section_close.empty() ? "" : cat(" (nl ", mark(format.section_close), ")?");
    return cat("root ::= %text", rules.parallel ? "*" : "", " (", triggers, mark(format.open),
               "call-rest", after, ")\n");
  }
  const std::string close = quoted(format.think_close);
  return cat("root ::= ", thinking == Thinking::already ? "%until " + close : "",
             "lead* (calls | other)?\n", "lead ::= [ \\t\\r\\n] | \"<|python_tag|>\" | ",
             quoted(format.think_open), "%until ", close, "\n",
             "other ::= [^{< \\t\\r\\n] .* | \"<\" [^|t{] .*\n");
}

// `reply`: the rule of the text after the reasoning.
std::string required_root(const ToolFormat& format, Thinking thinking, std::string_view reply) {
  const std::string thought = cat("%until ", quoted(format.think_close), "[ \\n]{0,4} ");
  switch (thinking) {
    case Thinking::already: return cat("root ::= ", thought, reply, "\n");
    case Thinking::may:
      return cat("root ::= (", quoted(format.think_open), thought, ")? ", reply, "\n");
    case Thinking::never: break;
  }
  return cat("root ::= ", reply, "\n");
}

}  // namespace

JsonValue held_schema(const Tool& tool) {
  JsonValue schema = tool.parameters.is_null() ? any_object() : tool.parameters;
  constexpr std::string_view kOpen[] = {
      "additionalProperties", "$ref", "anyOf", "oneOf", "allOf", "minProperties", "propertyNames"};
  const bool says =
      std::ranges::any_of(kOpen, [&](std::string_view key) { return schema.find(key) != nullptr; });
  if (!says) schema.add("additionalProperties", JsonValue::boolean(false));
  if (!says && schema.find("type") == nullptr) schema.add("type", JsonValue::string("object"));
  return schema;
}

Result<std::string> call_grammar(const ToolFormat& format, const Tools& tools,
                                 const CallRules& rules, Thinking thinking) {
  const auto is_strict = [](const Tool& tool) { return tool.strict; };
  const bool holds = rules.required || !rules.allowed.empty() || !rules.otherwise.empty() ||
                     std::ranges::any_of(tools.all(), is_strict);
  if (!holds) return std::string();
  if (tools.all().empty()) return invalid("there are no tools that a reply could call");
  if (format.syntax == Syntax::none)
    return unsupported("the model's chat template shows no way to call tools");
  std::vector<const Tool*> may;
  for (const std::string& name : rules.allowed) {
    const Tool* tool = tools.find(name);
    if (tool == nullptr) return invalid(cat("there is no tool '", printable(name), "' to call"));
    may.push_back(tool);
  }
  for (const Tool& tool : tools.all()) {
    if (rules.allowed.empty()) may.push_back(&tool);
  }
  LOOM_ASSIGN(std::string text, CallGrammar(format, may, rules).write());
  if (rules.required) return required_root(format, thinking, "calls") + text;
  if (rules.otherwise.empty()) return open_root(format, rules, thinking) + text;
  return cat(required_root(format, thinking, "reply"), "reply ::= calls | %json ", rules.otherwise,
             " \n", text);
}

}  // namespace loom::core
