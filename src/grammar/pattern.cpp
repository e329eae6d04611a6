#include "grammar/pattern.hpp"

#include "base/text.hpp"
#include "text/normalizers/unicode.hpp"

namespace loom::core::grammar {
namespace {

using text::CharSet;
using text::CodeRange;

constexpr int kMaxPatternNesting = 100;
constexpr uint32_t kMaxPatternTimes = 1u << 20;

constexpr std::string_view kHexDigits = "0123456789abcdef";

std::string escape_of(char32_t c) {
  switch (c) {
    case '"': return "\\\"";
    case '\\': return "\\\\";
    case '\b': return "\\b";
    case '\f': return "\\f";
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    default: return std::string("\\u00") + kHexDigits[c >> 4] + kHexDigits[c & 15];
  }
}

CharSet digits() {
  return CharSet(std::vector<CodeRange>{{'0', '9'}});
}
CharSet word() {
  return CharSet(std::vector<CodeRange>{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}});
}
// WhiteSpace and LineTerminator of ECMA-262.
CharSet space() {
  return CharSet(std::vector<CodeRange>{{9, 13},
                                        {32, 32},
                                        {0xA0, 0xA0},
                                        {0x1680, 0x1680},
                                        {0x2000, 0x200A},
                                        {0x2028, 0x2029},
                                        {0x202F, 0x202F},
                                        {0x205F, 0x205F},
                                        {0x3000, 0x3000},
                                        {0xFEFF, 0xFEFF}});
}
CharSet not_line_end() {
  return CharSet(std::vector<CodeRange>{{10, 10}, {13, 13}, {0x2028, 0x2029}}).complement();
}

class PatternReader {
 public:
  PatternReader(Builder& builder, std::string_view text) : b_(builder), text_(text) {}

  Result<ExprId> read() {
    LOOM_ASSIGN(const ExprId whole, read_choice(0));
    if (at_ < text_.size()) return wrong("a ) without a (");
    return whole;
  }

 private:
  Error wrong(std::string_view what) const {
    return invalid(cat("pattern ", printable(text_), ": ", what, " at byte ", at_));
  }
  Error beyond(std::string_view what) const {
    return unsupported(cat("pattern ", printable(text_), ": ", what, " cannot be held to"));
  }
  bool take(std::string_view what) {
    if (text_.substr(at_, what.size()) != what) return false;
    at_ += what.size();
    return true;
  }
  bool is_at(char c) const { return at_ < text_.size() && text_[at_] == c; }
  ExprId anything() {
    return b_.repeat(json_chars(b_, CharSet().complement()), 0, Builder::kEndless);
  }

  // For the whole pattern: each alternative has anchors of its own.
  Result<ExprId> read_choice(int depth) {
    if (depth > kMaxPatternNesting) return wrong("groups are nested too deep");
    std::vector<ExprId> choices;
    do {
      std::vector<ExprId> parts;
      const bool begins = depth == 0 && take("^");
      if (depth == 0 && !begins) parts.push_back(anything());
      LOOM_TRY(read_sequence(depth, parts));
      const bool ends = depth == 0 && take("$");
      if (depth == 0 && !ends) parts.push_back(anything());
      choices.push_back(b_.sequence(std::move(parts)));
    } while (take("|"));
    return b_.choice(std::move(choices));
  }

  Status read_sequence(int depth, std::vector<ExprId>& parts) {
    while (at_ < text_.size() && !is_at('|') && !is_at(')')) {
      if (is_at('$') && depth == 0 && (at_ + 1 == text_.size() || text_[at_ + 1] == '|')) break;
      if (is_at('^') || is_at('$')) return beyond("an anchor inside of it");
      LOOM_ASSIGN(const ExprId item, read_item(depth));
      LOOM_ASSIGN(const ExprId whole, read_times(item));
      parts.push_back(whole);
    }
    return {};
  }

  Result<ExprId> read_item(int depth) {
    if (take("(")) {
      if (take("?=") || take("?!") || take("?<=") || take("?<!")) return beyond("look-around");
      if (take("?<")) {
        while (at_ < text_.size() && text_[at_] != '>') ++at_;
        ++at_;
      } else if (!take("?:") && is_at('?')) {
        return wrong("an unknown kind of group");
      }
      LOOM_ASSIGN(const ExprId group, read_choice(depth + 1));
      if (!take(")")) return wrong("a ( without a )");
      return group;
    }
    if (take("[")) {
      LOOM_ASSIGN(const CharSet set, read_class());
      return json_chars(b_, set);
    }
    if (take(".")) return json_chars(b_, not_line_end());
    if (is_at('*') || is_at('+') || is_at('?')) return wrong("nothing to repeat");
    if (take("\\")) {
      LOOM_ASSIGN(const CharSet set, read_escape(false));
      return json_chars(b_, set);
    }
    const text::CodePoint c = text::code_point_at(text_, at_);
    at_ += c.length;
    return json_chars(b_, CharSet(c.value));
  }

  Result<ExprId> read_times(ExprId item) {
    uint32_t least = 1, most = 1;
    if (take("?")) {
      least = 0;
    } else if (take("*")) {
      least = 0, most = Builder::kEndless;
    } else if (take("+")) {
      most = Builder::kEndless;
    } else if (is_at('{')) {
      ++at_;
      LOOM_ASSIGN(least, read_number());
      most = least;
      if (take(",")) {
        most = Builder::kEndless;
        if (!is_at('}')) {
          LOOM_ASSIGN(most, read_number());
        }
      }
      if (!take("}")) return wrong("a { without a }");
      if (most < least) return wrong("{m,n} with n below m");
    } else {
      return item;
    }
    take("?");  // lazy: the same texts
    if (is_at('*') || is_at('+') || is_at('?') || is_at('{')) return wrong("nothing to repeat");
    return b_.repeat(item, least, most);
  }

  Result<uint32_t> read_number() {
    const size_t from = at_;
    uint32_t value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      value = value * 10 + static_cast<uint32_t>(text_[at_] - '0');
      if (value > kMaxPatternTimes) return wrong("too large a number");
    }
    if (at_ == from) return wrong("a number was expected");
    return value;
  }

  Result<CharSet> read_class() {
    const bool others = take("^");
    std::vector<CodeRange> ranges;
    while (!is_at(']')) {
      if (at_ >= text_.size()) return wrong("a [ without a ]");
      LOOM_ASSIGN(const CharSet first, read_member());
      const bool single =
          first.ranges().size() == 1 && first.ranges()[0].first == first.ranges()[0].last;
      if (single && is_at('-') && text_.substr(at_, 2) != "-]") {
        ++at_;
        LOOM_ASSIGN(const CharSet last, read_member());
        if (last.ranges().size() != 1) return wrong("a range to more than one character");
        const char32_t low = first.ranges()[0].first, high = last.ranges()[0].first;
        if (high < low) return wrong("a range that ends before it begins");
        ranges.push_back({low, high});
        continue;
      }
      ranges.insert(ranges.end(), first.ranges().begin(), first.ranges().end());
    }
    ++at_;
    const CharSet set(std::move(ranges));
    return others ? set.complement() : set;
  }
  Result<CharSet> read_member() {
    if (at_ >= text_.size()) return wrong("a [ without a ]");
    if (take("\\")) return read_escape(true);
    const text::CodePoint c = text::code_point_at(text_, at_);
    at_ += c.length;
    return CharSet(c.value);
  }

  Result<CharSet> read_escape(bool in_class) {
    if (at_ >= text_.size()) return wrong("a \\ at the end");
    const char c = text_[at_++];
    switch (c) {
      case 'd': return digits();
      case 'D': return digits().complement();
      case 'w': return word();
      case 'W': return word().complement();
      case 's': return space();
      case 'S': return space().complement();
      case 't': return CharSet(U'\t');
      case 'n': return CharSet(U'\n');
      case 'r': return CharSet(U'\r');
      case 'f': return CharSet(U'\f');
      case 'v': return CharSet(U'\v');
      case '0': return CharSet(U'\0');
      case 'x': return read_hex(2);
      case 'u': return read_hex(4);
      case 'b':
        if (in_class) return CharSet(U'\b');
        return beyond("\\b");
      default: break;
    }
    if (c >= '1' && c <= '9') return beyond("a reference to a group");
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (letter) return beyond(cat("\\", c));
    if (static_cast<unsigned char>(c) >= 0x80) return wrong("a \\ before no sign of ASCII");
    return CharSet(static_cast<char32_t>(c));
  }
  Result<CharSet> read_hex(size_t count) {
    char32_t value = 0;
    for (size_t i = 0; i < count; ++i) {
      const char c = at_ < text_.size() ? text_[at_] : ' ';
      const char low = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
      const size_t digit = kHexDigits.find(low);
      if (digit == std::string_view::npos) return wrong("hexadecimal digits were expected");
      value = value * 16 + static_cast<char32_t>(digit);
      ++at_;
    }
    if (value >= 0xD800 && value <= 0xDFFF) return beyond("half of a surrogate pair");
    return CharSet(value);
  }

  Builder& b_;
  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::string json_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto b = static_cast<unsigned char>(c);
    if (b < 0x20 || c == '"' || c == '\\') {
      out += escape_of(b);
    } else {
      out += c;
    }
  }
  return out;
}

ExprId json_chars(Builder& builder, const CharSet& set) {
  std::vector<CodeRange> plain;
  std::vector<ExprId> choices;
  for (const CodeRange& range : set.ranges()) {
    char32_t from = range.first;
    for (const char32_t c : {U'"', U'\\'}) {
      if (c < from || c > range.last) continue;
      if (c > from && from < c && c > 0x20) plain.push_back({from < 0x20 ? 0x20 : from, c - 1});
      from = c + 1;
    }
    if (from < 0x20) from = 0x20;
    if (from <= range.last) plain.push_back({from, range.last});
  }
  std::erase_if(plain, [](const CodeRange& r) { return r.first > r.last; });
  if (!plain.empty()) choices.push_back(builder.chars(CharSet(std::move(plain))));
  for (char32_t c = 0; c < 0x80; ++c) {
    const bool escaped = c < 0x20 || c == '"' || c == '\\';
    if (escaped && set.contains(c)) choices.push_back(builder.literal(escape_of(c)));
  }
  return builder.choice(std::move(choices));
}

Result<ExprId> add_pattern(Builder& builder, std::string_view pattern) {
  if (pattern.size() > 16384) return invalid("the pattern is too long");
  if (!text::is_valid_utf8(pattern)) return invalid("the pattern is not UTF-8");
  return PatternReader(builder, pattern).read();
}

}  // namespace loom::core::grammar
