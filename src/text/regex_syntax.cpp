// From Oniguruma's dialect (what HF `tokenizers` compiles) to PCRE2's. The two differ in small
// print: \s and \w cover other characters, \h is a hex digit, \p{Han} is the script without its
// extensions, X{1,3}+ repeats instead of being possessive, (?m:...) lets the dot match newlines.
// What is rewritten is an allow-list: a construct that is not known to mean the same on both sides
// is refused by name.
#include <algorithm>
#include <array>
#include <cstdint>

#include "base/text.hpp"
#include "text/regex.hpp"
#include "text/unicode.hpp"

namespace loom::text {
namespace {

constexpr std::string_view kWord = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";
// Outside a class, Oniguruma reads Latin-1 by a table of its own, where fractions and superscripts
// are words.
constexpr std::string_view kLatinNumbers = "\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}";
constexpr size_t kMaxDepth = 100;  // PCRE2 recurses while it compiles

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
// Letters, and pairs of them, that Oniguruma folds to several or from several; PCRE2 folds one to
// one.
bool folds_to_several(char32_t c) {
  return c == 0xDF || c == 0x149 || c == 0x1F0 || c == 0x390 || c == 0x3B0 || c == 0x587 ||
         (c >= 0x1E96 && c <= 0x1E9E) || (c >= 0x1F50 && c <= 0x1FFC) ||
         (c >= 0xFB00 && c <= 0xFB17);
}
constexpr std::array<std::string_view, 5> kFoldedPairs = {"ss", "ff", "fi", "fl", "st"};

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

class Translator {
 public:
  Translator(std::string_view pattern, const std::string& where)
      : pattern_(pattern), where_(where) {}

  Result<std::string> run() {
    if (pattern_.substr(0, 4) == "(?i)") {  // elsewhere its scope differs between the dialects
      out_ += "(?i)";
      at_ = 4;
      caseless_ = true;
    }
    while (at_ < pattern_.size()) LOOM_TRY(item());
    return std::move(out_);
  }

 private:
  char peek(size_t ahead = 0) const {
    return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : '\0';
  }
  Error refuse(std::string_view what) const {
    return unsupported(
        cat("pattern '", printable(pattern_), "': ", what, " at byte ", at_, " is not supported"),
        where_);
  }
  void start_atom() { atom_ = out_.size(); }

  Status item() {
    switch (peek()) {
      case '\\': start_atom(); return escape();
      case '[': start_atom(); return char_class();
      case '(': return open_group();
      case ')': close_group(); return {};
      case '*':
      case '+':
      case '?': out_ += pattern_[at_++]; return {};
      case '{': return interval();
      default: start_atom(); return copy_character(false);
    }
  }

  Status copy_character(bool in_class) {
    const CodePoint c = code_point_at(pattern_, at_);
    const std::string pair = to_lower_ascii(pattern_.substr(at_, 2));
    const auto& pairs = kFoldedPairs;
    const bool folded = folds_to_several(c.value) ||
                        (!in_class && std::find(pairs.begin(), pairs.end(), pair) != pairs.end());
    if (caseless_ && folded) return refuse("a letter that folds to several");
    out_ += pattern_.substr(at_, c.length);
    at_ += c.length;
    return {};
  }

  void close_group() {
    out_ += ')';
    ++at_;
    atom_ = groups_.empty() ? out_.size() : groups_.back();
    if (!groups_.empty()) groups_.pop_back();
  }

  Status open_group() {
    if (groups_.size() >= kMaxDepth) return refuse("deeper nesting");
    groups_.push_back(out_.size());
    if (peek(1) == '*') return refuse("'(*'");
    if (peek(1) != '?') {
      out_ += '(';
      ++at_;
      return {};
    }
    static constexpr std::array<std::string_view, 6> kKinds = {"(?:", "(?=",  "(?!",
                                                               "(?>", "(?<=", "(?<!"};
    for (const std::string_view kind : kKinds) {
      if (pattern_.substr(at_, kind.size()) == kind) {
        out_ += kind;
        at_ += kind.size();
        return {};
      }
    }
    return flag_group();
  }

  // (?i:...), (?m-i:...): m of Oniguruma is s of PCRE2.
  Status flag_group() {
    std::string flags = "(?";
    size_t i = at_ + 2;
    for (; i < pattern_.size() && pattern_[i] != ':'; ++i) {
      const char c = pattern_[i];
      if (c != 'i' && c != 'm' && c != '-') return refuse("this kind of group");
      caseless_ = caseless_ || c == 'i';
      flags += c == 'm' ? 's' : c;
    }
    if (i >= pattern_.size()) return refuse("this kind of group");
    out_ += flags + ':';
    at_ = i + 1;
    return {};
  }

  // {n}, {n,}, {,m}, {n,m}; any other brace is a plain character.
  Status interval() {
    size_t i = at_ + 1;
    const auto digits = [&] {
      std::string text;
      while (i < pattern_.size() && is_digit(pattern_[i]) && text.size() < 6) text += pattern_[i++];
      return text;
    };
    const std::string low = digits();
    const bool comma = i < pattern_.size() && pattern_[i] == ',';
    if (comma) ++i;
    const std::string high = comma ? digits() : std::string();
    if (i >= pattern_.size() || pattern_[i] != '}' || (low.empty() && high.empty())) {
      start_atom();
      out_ += "\\{";
      ++at_;
      return {};
    }
    at_ = i + 1;
    const std::string body = cat("{", low.empty() ? "0" : low, comma ? "," : "", high, "}");
    const bool again = peek() == '+' || (peek() == '?' && !comma);
    if (again) {  // Oniguruma repeats the repetition
      out_.insert(atom_, "(?:");
      out_ += body + ')' + pattern_[at_++];
    } else {
      out_ += body;
    }
    return {};
  }

  Status escape() {
    const char c = peek(1);
    if (at_ + 1 >= pattern_.size()) return refuse("a lone backslash");
    const auto put = [&](std::string_view text) {
      out_ += text;
      at_ += 2;
      return Status();
    };
    const std::string word = cat("[", kWord, kLatinNumbers, "]");
    const std::string other = cat("[^", kWord, kLatinNumbers, "]");
    switch (c) {
      case 's': return put("\\p{White_Space}");
      case 'S': return put("\\P{White_Space}");
      case 'w': return put(word);
      case 'W': return put(other);
      case 'h': return put("[0-9A-Fa-f]");
      case 'H': return put("[^0-9A-Fa-f]");
      case 'b': return put(cat("(?:(?<=", word, ")(?!", word, ")|(?<!", word, ")(?=", word, "))"));
      case 'B': return put(cat("(?:(?<=", word, ")(?=", word, ")|(?<!", word, ")(?!", word, "))"));
      case 'A': return put("\\A");
      case 'z': return put("\\z");
      case 'Z': return put("\\Z");
      case 'R': return put("\\R");
      default: return common_escape();
    }
  }

  Status class_escape() {
    const char c = peek(1);
    if (at_ + 1 >= pattern_.size()) return refuse("a lone backslash");
    const auto put = [&](std::string_view text) {
      out_ += text;
      at_ += 2;
      return Status();
    };
    switch (c) {
      case 's': return put("\\p{White_Space}");
      case 'S': return put("\\P{White_Space}");
      case 'w': return put(kWord);
      case 'h': return put("0-9A-Fa-f");
      default: return common_escape();
    }
  }

  // Escapes that mean the same inside and outside a class.
  Status common_escape() {
    const char c = peek(1);
    switch (c) {
      case 'd':
      case 'D':
      case 'n':
      case 'r':
      case 't':
      case 'f':
      case 'a':
      case 'e':
        out_ += '\\';
        out_ += c;
        at_ += 2;
        return {};
      case 'v':
        out_ += "\\x0b";
        at_ += 2;
        return {};
      case 'x':
      case 'u': return hex_escape();
      case 'p':
      case 'P': return property();
      default: break;
    }
    if (is_letter(c) || is_digit(c)) return refuse(cat("the escape '\\", c, "'"));
    if (static_cast<unsigned char>(c) >= 0x80) {
      ++at_;
      return copy_character(true);
    }
    out_ += '\\';
    out_ += c;
    at_ += 2;
    return {};
  }

  // \xHH, \x{H...}, \uHHHH
  Status hex_escape() {
    const bool braces = peek(1) == 'x' && peek(2) == '{';
    const size_t max = braces ? 6 : peek(1) == 'x' ? 2 : 4;
    size_t i = at_ + (braces ? 3 : 2);
    std::string digits;
    while (i < pattern_.size() && is_hex(pattern_[i]) && digits.size() < max)
      digits += pattern_[i++];
    const bool closed = !braces || (i < pattern_.size() && pattern_[i] == '}');
    if (digits.empty() || !closed || (peek(1) == 'u' && digits.size() != 4)) {
      return refuse("this hexadecimal escape");
    }
    // A lone \x80..\xFF is a raw byte in Oniguruma, which no text matches.
    if (!braces && peek(1) == 'x' && digits.size() == 2 && digits[0] >= '8') {
      return refuse("this hexadecimal escape");
    }
    out_ += cat("\\x{", digits, "}");
    at_ = i + (braces ? 1 : 0);
    return {};
  }

  // \p{Name}: a general category stays, a known binary property stays, the rest are scripts.
  Status property() {
    const size_t close = pattern_.find('}', at_);
    if (peek(2) != '{' || close == std::string_view::npos) return refuse("this property");
    std::string_view name = pattern_.substr(at_ + 3, close - at_ - 3);
    const bool negated = !name.empty() && name[0] == '^';
    if (negated) name.remove_prefix(1);
    const bool plain = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
      return is_letter(c) || c == '_';
    });
    if (!plain || name.size() > 40) return refuse("this property");
    out_ += cat("\\", peek(1), "{", negated ? "^" : "", native_property(name), "}");
    at_ = close + 1;
    return {};
  }

  static std::string native_property(std::string_view name) {
    static constexpr std::array<std::array<std::string_view, 2>, 16> kLong = {{
        {"letter", "L"},
        {"mark", "M"},
        {"number", "N"},
        {"punctuation", "P"},
        {"symbol", "S"},
        {"separator", "Z"},
        {"other", "C"},
        {"any", "Any"},
        {"alphabetic", "Alphabetic"},
        {"alpha", "Alphabetic"},
        {"white_space", "White_Space"},
        {"space", "White_Space"},
        {"lowercase", "Lowercase"},
        {"uppercase", "Uppercase"},
        {"ideographic", "Ideographic"},
        {"emoji", "Emoji"},
    }};
    if (name.size() <= 2) return std::string(name);
    const std::string lower = to_lower_ascii(name);
    for (const auto& [ours, native] : kLong) {
      if (lower == ours) return std::string(native);
    }
    return cat("sc:", name);
  }

  Status char_class() {
    out_ += '[';
    ++at_;
    if (peek() == '^') {
      out_ += '^';
      ++at_;
    }
    if (peek() == ']') return refuse("an empty class");
    while (at_ < pattern_.size() && peek() != ']') {
      if (peek() == '[') return refuse("a class inside a class");
      if (peek() == '&' && peek(1) == '&') return refuse("an intersection of classes");
      if (peek() == '\\') {
        LOOM_TRY(class_escape());
      } else {
        LOOM_TRY(copy_character(true));
      }
    }
    if (at_ >= pattern_.size()) return refuse("a class without an end");
    out_ += ']';
    ++at_;
    return {};
  }

  std::string_view pattern_;
  const std::string& where_;
  std::string out_;
  size_t at_ = 0;
  size_t atom_ = 0;        // where in out_ the last repeatable item starts
  bool caseless_ = false;  // in some part of the pattern
  std::vector<size_t> groups_;
};

}  // namespace

Result<std::string> translate_regex(std::string_view pattern, const std::string& where) {
  if (!is_valid_utf8(pattern)) return bad_file("the pattern is not UTF-8", where);
  return Translator(pattern, where).run();
}

}  // namespace loom::text
