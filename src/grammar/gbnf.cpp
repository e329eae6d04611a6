#include "grammar/gbnf.hpp"

#include <map>
#include <optional>

#include "base/text.hpp"
#include "grammar/schemas/json_schema.hpp"
#include "text/normalizers/unicode.hpp"

namespace loom::core::grammar {
namespace {

constexpr size_t kMaxGbnfBytes = size_t{1} << 20;
constexpr int kMaxGbnfNesting = 200;
constexpr uint32_t kMaxGbnfTimes = 1u << 20;

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

class GbnfReader {
 public:
  GbnfReader(Builder& builder, std::string_view text) : b_(builder), text_(text) {}

  Result<ExprId> read() {
    skip(true);
    while (at_ < text_.size()) {
      LOOM_TRY(read_rule());
      skip(true);
    }
    const auto root = rules_.find("root");
    if (root == rules_.end()) return invalid("the grammar has no rule named root");
    for (const auto& [name, rule] : rules_) {
      if (b_.rules()[static_cast<size_t>(rule)].body < 0)
        return invalid(cat("the grammar names the rule ", printable(name), " and does not say it"));
    }
    return b_.ref(root->second);
  }

 private:
  Error wrong(std::string_view what) const {
    size_t line = 1, column = 1;
    for (size_t i = 0; i < at_ && i < text_.size(); ++i) {
      column = text_[i] == '\n' ? 1 : column + 1;
      line += text_[i] == '\n' ? 1 : 0;
    }
    return invalid(cat("grammar, line ", line, ", column ", column, ": ", what));
  }

  bool is_at(char c) const { return at_ < text_.size() && text_[at_] == c; }
  bool take(char c) {
    if (!is_at(c)) return false;
    ++at_;
    return true;
  }
  // White space and comments; with `lines`, ends of lines too.
  void skip(bool lines) {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r'))) {
        ++at_;
      } else {
        return;
      }
    }
  }

  std::string read_name() {
    const size_t from = at_;
    while (at_ < text_.size() && is_name(text_[at_])) ++at_;
    return std::string(text_.substr(from, at_ - from));
  }
  RuleId rule_of(const std::string& name) {
    const auto [found, is_new] = rules_.try_emplace(name, 0);
    if (is_new) found->second = b_.new_rule(name);
    return found->second;
  }

  Status read_rule() {
    const std::string name = read_name();
    if (name.empty()) return wrong("a rule begins with its name, of letters, digits and -");
    skip(false);
    if (text_.substr(at_, 3) != "::=") return wrong("::= was expected after the name of a rule");
    at_ += 3;
    skip(true);
    const RuleId rule = rule_of(name);
    if (b_.rules()[static_cast<size_t>(rule)].body >= 0)
      return wrong(cat("the rule ", printable(name), " is there already"));
    LOOM_ASSIGN(const ExprId body, read_choice(0));
    b_.define(rule, body);
    if (at_ < text_.size() && text_[at_] != '\n' && text_[at_] != '\r')
      return wrong("the end of the line was expected");
    return {};
  }

  Result<ExprId> read_choice(int depth) {
    if (depth > kMaxGbnfNesting) return wrong("groups are nested too deep");
    std::vector<ExprId> choices;
    for (;;) {
      LOOM_ASSIGN(const ExprId one, read_sequence(depth));
      choices.push_back(one);
      if (!take('|')) break;
      skip(true);
    }
    return b_.choice(std::move(choices));
  }

  Result<ExprId> read_sequence(int depth) {
    std::vector<ExprId> parts;
    for (;;) {
      LOOM_ASSIGN(const std::optional<ExprId> item, read_item(depth));
      if (!item.has_value()) break;
      LOOM_ASSIGN(const ExprId whole, read_times(*item));
      parts.push_back(whole);
      skip(depth > 0);
    }
    return b_.sequence(std::move(parts));
  }

  Result<std::optional<ExprId>> read_item(int depth) {
    if (at_ >= text_.size()) return std::optional<ExprId>();
    const char c = text_[at_];
    if (c == '"') {
      LOOM_ASSIGN(std::string bytes, read_literal());
      return std::optional(b_.literal(std::move(bytes)));
    }
    if (c == '[') {
      LOOM_ASSIGN(const ExprId set, read_class());
      return std::optional(set);
    }
    if (c == '.') {
      ++at_;
      return std::optional(b_.chars(0, 0x10FFFF));
    }
    if (c == '(') {
      ++at_;
      skip(true);
      LOOM_ASSIGN(const ExprId group, read_choice(depth + 1));
      if (!take(')')) return wrong("a ) was expected");
      return std::optional(group);
    }
    if (c == '%') {
      LOOM_ASSIGN(const ExprId other, read_extension(depth));
      return std::optional(other);
    }
    if (is_name(c)) return std::optional(b_.ref(rule_of(read_name())));
    if (c == '|' || c == ')' || c == '\n' || c == '\r') return std::optional<ExprId>();
    return wrong(cat("'", printable(text_.substr(at_, 1)), "' begins nothing that is known"));
  }

  Result<ExprId> read_extension(int depth) {
    ++at_;
    const std::string name = read_name();
    const bool again = name == "text" && take('*');
    skip(false);
    if (name == "json") return read_schema();
    if (name == "until") {
      LOOM_ASSIGN(std::string text, read_bytes());
      return b_.until(std::move(text));
    }
    if (name != "text") return wrong("after % there may be json, until or text");
    if (!take('(')) return wrong("a ( was expected");
    std::vector<Trigger> triggers;
    do {
      skip(true);
      LOOM_ASSIGN(std::string text, read_bytes());
      skip(true);
      LOOM_ASSIGN(const ExprId then, read_sequence(depth + 1));
      triggers.push_back({std::move(text), then});
    } while (take('|'));
    if (!take(')')) return wrong("a ) was expected");
    return b_.free_text(std::move(triggers), again);
  }

  // The bytes of a literal that may not be empty.
  Result<std::string> read_bytes() {
    if (!is_at('"')) return wrong("a literal was expected");
    LOOM_ASSIGN(std::string bytes, read_literal());
    if (bytes.empty()) return wrong("an empty literal begins everywhere");
    return bytes;
  }

  // JSON up to its closing bracket, or a word.
  Result<ExprId> read_schema() {
    const size_t from = at_;
    size_t open = 0;
    for (bool string = false; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (string && c == '\\') {
        ++at_;
      } else if (c == '"') {
        string = !string;
      } else if (!string && (c == '{' || c == '[')) {
        ++open;
      } else if (!string && (c == '}' || c == ']')) {
        if (open == 0 || --open == 0) break;
      } else if (!string && open == 0 && !is_name(c)) {
        break;
      }
    }
    if (is_at('}')) ++at_;
    at_ = std::min(at_, text_.size());
    const Result<JsonValue> schema = parse_json(text_.substr(from, at_ - from), "the schema");
    if (!schema.ok()) return wrong(schema.error().str());
    return add_json_schema(b_, *schema);
  }

  Result<ExprId> read_times(ExprId item) {
    skip(false);
    if (take('?')) return again(b_.repeat(item, 0, 1));
    if (take('*')) return again(b_.repeat(item, 0, Builder::kEndless));
    if (take('+')) return again(b_.repeat(item, 1, Builder::kEndless));
    if (!take('{')) return item;
    skip(false);
    LOOM_ASSIGN(const std::optional<uint32_t> least, read_number());
    skip(false);
    uint32_t most = least.value_or(0);
    if (take(',')) {
      skip(false);
      LOOM_ASSIGN(const std::optional<uint32_t> number, read_number());
      most = number.value_or(Builder::kEndless);
      skip(false);
    } else if (!least.has_value()) {
      return wrong("a number was expected");
    }
    if (!take('}')) return wrong("a } was expected");
    if (most < least.value_or(0)) return wrong("the second number of {m,n} is below the first");
    return again(b_.repeat(item, least.value_or(0), most));
  }
  // A repetition may be repeated: (a*)?, also without the group.
  Result<ExprId> again(ExprId item) {
    skip(false);
    const bool more = is_at('?') || is_at('*') || is_at('+') || is_at('{');
    if (more && ++repeats_ > 1000) return wrong("too many repetitions of repetitions");
    return more ? read_times(item) : Result<ExprId>(item);
  }

  Result<std::optional<uint32_t>> read_number() {
    if (at_ >= text_.size() || text_[at_] < '0' || text_[at_] > '9')
      return std::optional<uint32_t>();
    uint32_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      value = value * 10 + static_cast<uint32_t>(text_[at_] - '0');
      if (value > kMaxGbnfTimes)
        return wrong(cat("a repetition may be of up to ", kMaxGbnfTimes, " times"));
    }
    return std::optional(value);
  }

  Result<std::string> read_literal() {
    ++at_;
    std::string bytes;
    while (!is_at('"')) {
      LOOM_ASSIGN(const char32_t c, read_char());
      text::append_utf8(bytes, c);
    }
    ++at_;
    return bytes;
  }

  Result<ExprId> read_class() {
    ++at_;
    const bool others = take('^');
    std::vector<text::CodeRange> ranges;
    while (!is_at(']')) {
      LOOM_ASSIGN(const char32_t first, read_char());
      char32_t last = first;
      if (is_at('-') && text_.substr(at_, 2) != "-]") {
        ++at_;
        LOOM_ASSIGN(last, read_char());
        if (last < first) return wrong("a range of a class ends before it begins");
      }
      ranges.push_back({first, last});
    }
    ++at_;
    const text::CharSet set(std::move(ranges));
    return b_.chars(others ? set.complement() : set);
  }

  // A character of a literal or a class, escaped or not.
  Result<char32_t> read_char() {
    if (at_ >= text_.size() || text_[at_] == '\n')
      return wrong("the line ends inside of a literal or a class");
    if (text_[at_] != '\\') {
      const text::CodePoint c = text::code_point_at(text_, at_);
      at_ += c.length;
      return c.value;
    }
    ++at_;
    const char c = at_ < text_.size() ? text_[at_++] : '\n';
    switch (c) {
      case 'x': return read_hex(2);
      case 'u': return read_hex(4);
      case 'U': return read_hex(8);
      case 't': return U'\t';
      case 'n': return U'\n';
      case 'r': return U'\r';
      case '\\':
      case '"':
      case '[':
      case ']':
      case '-':
      case '^': return static_cast<char32_t>(c);
      default:
        --at_;
        return wrong("unknown escape; there are \\x \\u \\U \\t \\n \\r \\\\ \\\" \\[ \\]");
    }
  }
  Result<char32_t> read_hex(int digits) {
    char32_t value = 0;
    for (int i = 0; i < digits; ++i) {
      const char c = at_ < text_.size() ? text_[at_] : ' ';
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) return wrong(cat(digits, " hexadecimal digits were expected"));
      value = value * 16 + static_cast<char32_t>(digit);
      ++at_;
    }
    if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF))
      return wrong("there is no such character in Unicode");
    return value;
  }

  Builder& b_;
  std::string_view text_;
  size_t at_ = 0;
  int repeats_ = 0;
  std::map<std::string, RuleId> rules_;
};

}  // namespace

Result<ExprId> add_gbnf(Builder& builder, std::string_view text) {
  if (text.size() > kMaxGbnfBytes)
    return invalid(cat("the grammar has ", text.size(), " bytes, more than ", kMaxGbnfBytes));
  if (!text::is_valid_utf8(text)) return invalid("the grammar is not UTF-8");
  return GbnfReader(builder, text).read();
}

}  // namespace loom::core::grammar
