// Translates Oniguruma's dialect (as HF `tokenizers` compiles it) to a pattern over symbols
// (symbol_map.hpp), which PCRE2 runs byte by byte. Every character and class becomes a set of
// symbols. Their meaning comes from Loom's own tables and from Oniguruma's rules: \w has other
// characters inside a class than outside; \h is a hex digit; X{1,3}+ repeats instead of being
// possessive; (?m:...) lets the dot match newlines. The supported constructs are an allow-list:
// others are refused by name.
#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "base/text.hpp"
#include "text/normalizers/unicode.hpp"
#include "text/splitting/regex.hpp"

namespace loom::core::text {
namespace {

constexpr size_t kMaxDepth = 100;  // PCRE2 recurses while it compiles
constexpr size_t kMaxNativeBytes = size_t{1} << 20;
constexpr char32_t kLast = 0x10FFFF;

using Ranges = std::vector<CodeRange>;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Letters, and pairs of them, that Oniguruma folds to several or from several; Loom folds one to
// one.
bool folds_to_several(char32_t c) {
  return c == 0xDF || c == 0x149 || c == 0x1F0 || c == 0x390 || c == 0x3B0 || c == 0x587 ||
         (c >= 0x1E96 && c <= 0x1E9E) || (c >= 0x1F50 && c <= 0x1FFC) ||
         (c >= 0xFB00 && c <= 0xFB17);
}
constexpr std::array<std::string_view, 5> kFoldedPairs = {"ss", "ff", "fi", "fl", "st"};

// Outside a class, Oniguruma reads Latin-1 by a special table, in which fractions and superscripts
// are word characters.
CharSet word_set(bool in_class) {
  const CharSet word = CharSet::word();
  if (in_class) return word;
  Ranges ranges(word.ranges().begin(), word.ranges().end());
  for (const CodeRange& more : {CodeRange{0xB2, 0xB3}, {0xB9, 0xB9}, {0xBC, 0xBE}})
    ranges.push_back(more);
  return CharSet(std::move(ranges));
}

CharSet hex_set() {
  return CharSet({{'0', '9'}, {'A', 'F'}, {'a', 'f'}});
}

// The set of an escape such as \s, or unset. `letter`: in lower case; the upper case is its
// complement.
std::optional<CharSet> escape_set(char letter, bool in_class) {
  if (letter == 's') return CharSet::property("white_space");
  if (letter == 'd') return CharSet::property("Nd");
  if (letter == 'w') return word_set(in_class);
  if (letter == 'h') return hex_set();
  return std::nullopt;
}

CharSet intersection(const CharSet& a, const CharSet& b) {
  const CharSet not_a = a.complement(), not_b = b.complement();
  Ranges neither(not_a.ranges().begin(), not_a.ranges().end());
  neither.insert(neither.end(), not_b.ranges().begin(), not_b.ranges().end());
  return CharSet(std::move(neither)).complement();
}

std::optional<char32_t> escaped_control(char c) {
  static constexpr std::string_view kLetters = "nrtfaev";
  static constexpr std::string_view kControls = "\n\r\t\f\a\x1b\v";
  const size_t at = kLetters.find(c);
  if (at == std::string_view::npos) return std::nullopt;
  return static_cast<char32_t>(kControls[at]);
}

// A pattern in PCRE2's dialect with numbered sets that are not written yet.
class Draft {
 public:
  size_t size() const { return parts_.size(); }
  void add(std::string text) { parts_.push_back({std::move(text), kText}); }
  void insert(size_t at, std::string text) {
    parts_.insert(parts_.begin() + static_cast<std::ptrdiff_t>(at), {std::move(text), kText});
  }
  void add(CharSet set) {
    const auto same = std::find(sets_.begin(), sets_.end(), set);
    parts_.push_back({"", static_cast<size_t>(same - sets_.begin())});
    if (same == sets_.end()) sets_.push_back(std::move(set));
  }
  Result<RegexProgram> finish(const std::string& where) const {
    RegexProgram program;
    for (const CharSet& set : sets_) {
      if (!program.symbols.add(set))
        return unsupported("the pattern tells too many kinds of characters apart", where);
    }
    program.symbols.finish();
    std::vector<std::string> written;
    for (const CharSet& set : sets_) written.push_back(write(program.symbols.symbols(set)));
    for (const Part& part : parts_) {
      program.native += part.set == kText ? part.text : written[part.set];
      if (program.native.size() > kMaxNativeBytes)
        return unsupported("the pattern names too many characters", where);
    }
    return program;
  }

 private:
  static constexpr size_t kText = SIZE_MAX;
  struct Part {
    std::string text;
    size_t set = kText;
  };

  static std::string write_symbol(size_t symbol) {
    static constexpr std::string_view kDigits = "0123456789abcdef";
    return cat("\\x", kDigits.substr(symbol / 16, 1), kDigits.substr(symbol % 16, 1));
  }
  static std::string write(const std::bitset<256>& symbols) {
    if (symbols.none()) return "[^\\x00-\\xff]";
    std::string out;
    for (size_t i = 0; i < 256; ++i) {
      if (!symbols[i]) continue;
      size_t last = i;
      while (last + 1 < 256 && symbols[last + 1]) ++last;
      out += write_symbol(i);
      if (last > i) out += cat("-", write_symbol(last));
      i = last;
    }
    return symbols.count() == 1 ? out : cat("[", out, "]");
  }

  std::vector<Part> parts_;
  std::vector<CharSet> sets_;
};

class Translator {
 public:
  Translator(std::string_view pattern, const std::string& where)
      : pattern_(pattern), where_(where) {}

  Result<RegexProgram> run() {
    if (pattern_.substr(0, 4) == "(?i)") {  // elsewhere its scope differs between the dialects
      at_ = 4;
      caseless_ = true;
    }
    while (at_ < pattern_.size()) LOOM_TRY(item());
    return out_.finish(where_);
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
  // Emits PCRE2 text for `bytes` bytes of the pattern.
  Status put(std::string_view text, size_t bytes) {
    out_.add(std::string(text));
    at_ += bytes;
    return {};
  }

  Status item() {
    switch (peek()) {
      case '\\': start_atom(); return escape();
      case '[': start_atom(); return char_class();
      case '(': return open_group();
      case ')': close_group(); return {};
      case '*':
      case '+':
      case '?': return put(pattern_.substr(at_, 1), 1);
      case '|': return put("|", 1);
      case '.':
      case '^':
      case '$': start_atom(); return put(pattern_.substr(at_, 1), 1);
      case '{': return interval();
      default: start_atom(); return literal();
    }
  }

  // The current character, in either case if the pattern is caseless.
  Status literal() {
    const std::string pair = to_lower_ascii(pattern_.substr(at_, 2));
    const bool folds =
        std::find(kFoldedPairs.begin(), kFoldedPairs.end(), pair) != kFoldedPairs.end();
    if (caseless_ && folds) return refuse("a letter that folds to several");
    LOOM_ASSIGN(const char32_t c, plain_character());
    add_character(c);
    return {};
  }
  void add_character(char32_t c) {
    out_.add(caseless_ ? CharSet(c).with_other_cases() : CharSet(c));
  }
  Result<char32_t> plain_character() {
    const CodePoint c = code_point_at(pattern_, at_);
    if (caseless_ && folds_to_several(c.value)) return refuse("a letter that folds to several");
    at_ += c.length;
    return c.value;
  }

  struct Group {
    size_t atom = 0;
    bool caseless = false;  // restored after the group
  };

  void close_group() {
    out_.add(")");
    ++at_;
    atom_ = groups_.empty() ? out_.size() : groups_.back().atom;
    if (groups_.empty()) return;
    caseless_ = groups_.back().caseless;
    groups_.pop_back();
  }

  Status open_group() {
    if (groups_.size() >= kMaxDepth) return refuse("deeper nesting");
    groups_.push_back({out_.size(), caseless_});
    if (peek(1) == '*') return refuse("'(*'");
    if (peek(1) != '?') return put("(", 1);
    static constexpr std::array<std::string_view, 6> kKinds = {"(?:", "(?=",  "(?!",
                                                               "(?>", "(?<=", "(?<!"};
    for (const std::string_view kind : kKinds) {
      if (pattern_.substr(at_, kind.size()) == kind) return put(kind, kind.size());
    }
    return flag_group();
  }

  // (?i:...), (?m-i:...): i is handled here; m of Oniguruma is s of PCRE2.
  Status flag_group() {
    std::string flags = "(?";
    bool on = true;
    size_t i = at_ + 2;
    for (; i < pattern_.size() && pattern_[i] != ':'; ++i) {
      const char c = pattern_[i];
      if (c != 'i' && c != 'm' && c != '-') return refuse("this kind of group");
      if (c == 'i') {
        caseless_ = on;
      } else {
        flags += c == 'm' ? 's' : c;
      }
      on = on && c != '-';
    }
    if (i >= pattern_.size()) return refuse("this kind of group");
    return put(flags + ':', i + 1 - at_);
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
      return literal();
    }
    at_ = i + 1;
    const std::string body = cat("{", low.empty() ? "0" : low, comma ? "," : "", high, "}");
    const bool again = peek() == '+' || (peek() == '?' && !comma);
    if (!again) return put(body, 0);
    out_.insert(atom_, "(?:");  // Oniguruma repeats the repetition
    return put(cat(body, ")", pattern_.substr(at_, 1)), 1);
  }

  Status escape() {
    const char c = peek(1);
    switch (c) {
      case 'A': return put("\\A", 2);
      case 'z': return put("\\z", 2);
      case 'Z': return put("\\Z", 2);
      case 'R': add_line_break(); return put("", 2);
      case 'b':
      case 'B': add_word_boundary(c == 'b'); return put("", 2);
      default: break;
    }
    LOOM_ASSIGN(std::optional<CharSet> set, set_escape(false));
    if (set) {
      out_.add(std::move(*set));
      return {};
    }
    LOOM_ASSIGN(const char32_t character, character_escape());
    add_character(character);
    return {};
  }

  void add_line_break() {
    out_.add("(?>");
    out_.add(CharSet('\r'));
    out_.add(CharSet('\n'));
    out_.add("|");
    out_.add(CharSet({{0xA, 0xD}, {0x85, 0x85}, {0x2028, 0x2029}}));
    out_.add(")");
  }

  void add_word_boundary(bool between) {
    const CharSet word = word_set(false);
    const auto side = [&](const char* look) {
      out_.add(look);
      out_.add(word);
      out_.add(")");
    };
    out_.add("(?:");
    side("(?<=");
    side(between ? "(?!" : "(?=");
    out_.add("|");
    side("(?<!");
    side(between ? "(?=" : "(?!");
    out_.add(")");
  }

  // \s, \W, \p{...} and similar; unset: the escape is a single character.
  Result<std::optional<CharSet>> set_escape(bool in_class) {
    if (at_ + 1 >= pattern_.size()) return refuse("a lone backslash");
    const char c = peek(1);
    if (c == 'p' || c == 'P') {
      LOOM_ASSIGN(CharSet set, property());
      return std::optional(std::move(set));
    }
    const bool negated = c >= 'A' && c <= 'Z';
    std::optional<CharSet> set = escape_set(negated ? static_cast<char>(c + 32) : c, in_class);
    if (!set) return set;
    at_ += 2;
    return negated ? std::optional(set->complement()) : set;
  }

  Result<char32_t> character_escape() {
    const char c = peek(1);
    if (c == 'x' || c == 'u') return hex_escape();
    if (const std::optional<char32_t> control = escaped_control(c)) {
      at_ += 2;
      return *control;
    }
    if (is_letter(c) || is_digit(c)) return refuse(cat("the escape '\\", c, "'"));
    ++at_;
    return plain_character();
  }

  // \xHH, \x{H...}, \uHHHH
  Result<char32_t> hex_escape() {
    const bool braces = peek(1) == 'x' && peek(2) == '{';
    const size_t max = braces ? 6 : peek(1) == 'x' ? 2 : 4;
    size_t i = at_ + (braces ? 3 : 2);
    std::string digits;
    char32_t value = 0;
    while (i < pattern_.size() && is_hex(pattern_[i]) && digits.size() < max) {
      const char c = pattern_[i++];
      digits += c;
      value = value * 16 + static_cast<char32_t>(is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    const bool closed = !braces || (i < pattern_.size() && pattern_[i] == '}');
    if (digits.empty() || !closed || (peek(1) == 'u' && digits.size() != 4) || value > kLast) {
      return refuse("this hexadecimal escape");
    }
    // A lone \x80..\xFF is a raw byte in Oniguruma, which no text matches.
    if (!braces && peek(1) == 'x' && digits.size() == 2 && digits[0] >= '8') {
      return refuse("this hexadecimal escape");
    }
    at_ = i + (braces ? 1 : 0);
    return value;
  }

  // \p{Name}, \P{Name}, \p{^Name}
  Result<CharSet> property() {
    const size_t close = pattern_.find('}', at_);
    if (peek(2) != '{' || close == std::string_view::npos) return refuse("this property");
    std::string_view name = pattern_.substr(at_ + 3, close - at_ - 3);
    const bool negated = !name.empty() && name[0] == '^';
    if (negated) name.remove_prefix(1);
    std::optional<CharSet> set = CharSet::property(name);
    if (!set) return refuse(cat("the property '", printable(name), "'"));
    const bool outside = negated != (peek(1) == 'P');
    at_ = close + 1;
    return outside ? set->complement() : std::move(*set);
  }

  // The ranges of one member of a class: a set, a character, or a range of characters.
  Status class_member(Ranges& out) {
    if (peek() == '\\') {
      LOOM_ASSIGN(const std::optional<CharSet> set, set_escape(true));
      if (set) {
        out.insert(out.end(), set->ranges().begin(), set->ranges().end());
        return {};
      }
    }
    LOOM_ASSIGN(const char32_t first, class_character());
    char32_t last = first;
    if (peek() == '-' && at_ + 1 < pattern_.size() && peek(1) != ']') {
      ++at_;
      LOOM_ASSIGN(last, class_character());
      if (last < first) return refuse("a range that ends before it begins");
    }
    out.push_back({first, last});
    return {};
  }
  Result<char32_t> class_character() {
    if (peek() == '[') return refuse("a class inside a class");
    return peek() == '\\' ? character_escape() : plain_character();
  }

  // The set of a class from its "[" on, with classes inside and intersections (&&), which bind less
  // than all else.
  Result<CharSet> class_set(size_t depth) {
    if (depth > 0 && peek(1) == ':') return refuse("a POSIX bracket");
    if (depth > kMaxDepth) return refuse("deeper nesting");
    ++at_;
    const bool negated = peek() == '^';
    if (negated) ++at_;
    std::optional<CharSet> common;  // of the parts before the last "&&"
    Ranges ranges;
    bool any = false;  // the part has a member
    const auto end_part = [&] {
      CharSet part(std::exchange(ranges, {}));
      common = common ? intersection(*common, part) : std::move(part);
      return std::exchange(any, false);
    };
    while (at_ < pattern_.size() && (peek() != ']' || !any)) {
      if (peek() == ']') return refuse("an empty class");
      if (peek() == '&' && peek(1) == '&') {
        if (!end_part()) return refuse("an empty class");
        at_ += 2;
        continue;
      }
      any = true;
      if (peek() == '[') {
        LOOM_ASSIGN(const CharSet inner, class_set(depth + 1));
        ranges.insert(ranges.end(), inner.ranges().begin(), inner.ranges().end());
      } else {
        LOOM_TRY(class_member(ranges));
      }
    }
    if (at_ >= pattern_.size()) return refuse("a class without an end");
    end_part();
    ++at_;
    if (depth == 0 && caseless_) common = common->with_other_cases();
    return negated ? common->complement() : std::move(*common);
  }

  Status char_class() {
    LOOM_ASSIGN(CharSet set, class_set(0));
    out_.add(std::move(set));
    return {};
  }

  std::string_view pattern_;
  const std::string& where_;
  Draft out_;
  size_t at_ = 0;
  size_t atom_ = 0;        // start of the last repeatable item in out_
  bool caseless_ = false;  // here
  std::vector<Group> groups_;
};

}  // namespace

Result<RegexProgram> translate_regex(std::string_view pattern, const std::string& where) {
  if (!is_valid_utf8(pattern)) return bad_file("the pattern is not UTF-8", where);
  return Translator(pattern, where).run();
}

}  // namespace loom::core::text
