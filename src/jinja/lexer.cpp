// The lexer follows `Lexer.tokeniter` of Jinja 3, which determines the output of a template to the
// last newline.
#include "jinja/lexer.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.hpp"
#include "text/normalizers/unicode.hpp"

namespace loom::core::jinja {
namespace {

constexpr size_t kMaxTokens = 200'000;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c);
}

std::string_view strip_right(std::string_view text) {
  while (!text.empty()) {
    const text::CodePoint c = text::code_point_before(text, text.size());
    if (!text::is_python_space(c.value)) break;
    text.remove_suffix(c.length);
  }
  return text;
}

class Lexer {
 public:
  Lexer(std::string_view source, const std::string& where) : source_(source), where_(where) {}

  Result<std::vector<TemplateToken>> run() {
    while (at_ < source_.size()) {
      LOOM_TRY(text_and_tag());
      if (tokens_.size() > kMaxTokens) return fail("too many tokens");
    }
    push(TemplateToken::Kind::end, "");
    return std::move(tokens_);
  }

 private:
  Error fail(std::string message) const { return bad_file(std::move(message), where_, offset()); }
  int64_t offset() const { return static_cast<int64_t>(at_); }
  std::string_view rest() const { return source_.substr(at_); }
  bool looking_at(std::string_view text) const { return rest().substr(0, text.size()) == text; }
  void push(TemplateToken::Kind kind, std::string text, int64_t number = 0) {
    tokens_.push_back({kind, std::move(text), number, 0, offset()});
  }

  // The first of {%, {{ and {# at or after at_.
  size_t find_tag() const {
    size_t found = source_.find('{', at_);
    while (found != std::string_view::npos && found + 1 < source_.size()) {
      const char next = source_[found + 1];
      if (next == '%' || next == '{' || next == '#') return found;
      found = source_.find('{', found + 1);
    }
    return source_.size();
  }

  Status text_and_tag() {
    const size_t tag = find_tag();
    std::string_view data = source_.substr(at_, tag - at_);
    if (tag == source_.size()) {
      if (!data.empty()) push(TemplateToken::Kind::data, std::string(data));
      at_ = tag;
      return {};
    }
    const char kind = source_[tag + 1];
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    if (sign == '-') {
      data = strip_right(data);
    } else if (sign != '+' && kind != '{') {
      data = strip_line_start(data);
    }
    if (!data.empty()) push(TemplateToken::Kind::data, std::string(data));
    at_ = tag;
    if (kind != '#')
      push(kind == '%' ? TemplateToken::Kind::block_begin : TemplateToken::Kind::variable_begin,
           "");
    at_ += sign == '-' || sign == '+' ? 3 : 2;
    line_starting_ = false;
    if (kind == '#') return comment();
    size_t end = 0;
    if (kind == '%' && raw_tag(at_, "raw", end)) return raw(end);
    return inside(kind == '%');
  }

  // Whether the tag whose inside begins at `at` is only `name`; `end` is set after it.
  bool raw_tag(size_t at, std::string_view name, size_t& end) const {
    const auto skip_space = [&] {
      while (at < source_.size() && text::is_python_space(static_cast<unsigned char>(source_[at])))
        ++at;
    };
    skip_space();
    if (source_.substr(at, name.size()) != name) return false;
    at += name.size();
    skip_space();
    if (at < source_.size() && (source_[at] == '-' || source_[at] == '+')) ++at;
    end = at + 2;
    return source_.substr(at, 2) == "%}";
  }

  // Raw text, up to {% endraw %}.
  Status raw(size_t begin) {
    tokens_.pop_back();  // block_begin
    at_ = begin;
    after_end(source_[begin - 3] == '-', source_[begin - 3] == '+', true);
    for (size_t tag = source_.find("{%", at_); tag != std::string_view::npos;
         tag = source_.find("{%", tag + 1)) {
      const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
      const size_t inside = tag + (sign == '-' || sign == '+' ? 3 : 2);
      size_t end = 0;
      if (!raw_tag(inside, "endraw", end)) continue;
      std::string_view data = source_.substr(at_, tag - at_);
      if (sign == '-') {
        data = strip_right(data);
      } else if (sign != '+') {
        data = strip_line_start(data);
      }
      if (!data.empty()) push(TemplateToken::Kind::data, std::string(data));
      at_ = end;
      after_end(source_[end - 3] == '-', source_[end - 3] == '+', true);
      return {};
    }
    return fail("a raw block without an end");
  }

  // Cuts white space between the last line end and the tag.
  std::string_view strip_line_start(std::string_view data) const {
    const size_t newline = data.rfind('\n');
    if (newline == std::string_view::npos && !line_starting_) return data;
    const size_t start = newline == std::string_view::npos ? 0 : newline + 1;
    const bool blank = strip_right(data.substr(start)).empty();
    return blank ? data.substr(0, start) : data;
  }

  // Handles the text after the two characters of an end tag at at_ - 2.
  void after_end(bool minus, bool plus, bool trims_newline) {
    const size_t before = at_;
    if (minus) {
      while (at_ < source_.size()) {
        const text::CodePoint c = text::code_point_at(source_, at_);
        if (!text::is_python_space(c.value)) break;
        at_ += c.length;
      }
    } else if (trims_newline && !plus && looking_at("\n")) {
      ++at_;
    }
    line_starting_ = at_ > before && source_[at_ - 1] == '\n';
  }

  Status comment() {
    const size_t end = source_.find("#}", at_);
    if (end == std::string_view::npos) return fail("a comment without an end");
    const char sign = end > at_ ? source_[end - 1] : '\0';
    at_ = end + 2;
    after_end(sign == '-', sign == '+', true);
    return {};
  }

  Status inside(bool block) {
    const std::string_view end = block ? "%}" : "}}";
    const auto kind = block ? TemplateToken::Kind::block_end : TemplateToken::Kind::variable_end;
    size_t brackets = 0;
    while (at_ < source_.size()) {
      const char c = source_[at_];
      const bool minus = c == '-', plus = c == '+' && block;
      const size_t sign = minus || plus ? 1 : 0;
      if (brackets == 0 && rest().substr(sign, 2) == end) {
        push(kind, "");
        at_ += sign + 2;
        after_end(minus, plus, block);
        return {};
      }
      LOOM_TRY(token(brackets));
    }
    return fail("a tag without an end");
  }

  Status token(size_t& brackets) {
    const char c = source_[at_];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v') {
      ++at_;
      return {};
    }
    if (c == '"' || c == '\'') return string(c);
    if (is_digit(c)) return number();
    if (is_name(c)) {
      size_t end = at_;
      while (end < source_.size() && is_name(source_[end])) ++end;
      push(TemplateToken::Kind::name, std::string(source_.substr(at_, end - at_)));
      at_ = end;
      return {};
    }
    return symbol(brackets);
  }

  // Digits of a base with single underscores between them, from `end` on.
  std::string digits(size_t& end, std::string_view allowed) const {
    std::string out;
    while (end < source_.size()) {
      const char c = to_lower_ascii(source_.substr(end, 1))[0];
      const bool between = c == '_' && !out.empty() && end + 1 < source_.size() &&
                           allowed.find(source_[end + 1]) != std::string_view::npos;
      if (allowed.find(c) == std::string_view::npos && !between) break;
      if (!between) out += c;
      ++end;
    }
    return out;
  }

  Status number() {
    static constexpr std::string_view kHex = "0123456789abcdef";
    const char sign = to_lower_ascii(source_.substr(std::min(at_ + 1, source_.size()), 1))[0];
    const int base = source_[at_] != '0' ? 10
                     : sign == 'x'       ? 16
                     : sign == 'o'       ? 8
                     : sign == 'b'       ? 2
                                         : 10;
    size_t end = at_ + (base == 10 ? 0 : 2);
    std::string text = digits(end, kHex.substr(0, static_cast<size_t>(base)));
    const auto digit_at = [&](size_t i) { return i < source_.size() && is_digit(source_[i]); };
    bool real = false;
    if (base == 10 && end < source_.size() && source_[end] == '.' && digit_at(end + 1)) {
      real = true;
      text += '.';
      text += digits(++end, kHex.substr(0, 10));
    }
    if (base == 10 && end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      const bool sign_first =
          end + 1 < source_.size() && (source_[end + 1] == '-' || source_[end + 1] == '+');
      if (digit_at(end + (sign_first ? 2 : 1))) {
        real = true;
        text += 'e';
        if (sign_first && source_[end + 1] == '-') text += '-';
        end += sign_first ? 2 : 1;
        text += digits(end, kHex.substr(0, 10));
      }
    }
    if (text.empty()) return fail("a number without digits");
    TemplateToken token;
    token.kind = real ? TemplateToken::Kind::real : TemplateToken::Kind::integer;
    token.offset = offset();
    const char* const last = text.data() + text.size();
    const auto read = real ? std::from_chars(text.data(), last, token.real)
                           : std::from_chars(text.data(), last, token.number, base);
    if (read.ec != std::errc() || read.ptr != last) return unsupported_here("a number that large");
    tokens_.push_back(std::move(token));
    at_ = end;
    return {};
  }

  Error unsupported_here(std::string_view what) const {
    return make_error(Code::unsupported, cat(what, " is not supported"), where_, offset());
  }

  Status symbol(size_t& brackets) {
    static constexpr std::array<std::string_view, 29> kSymbols = {
        "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(",
        ")",  "{",  "}",  ">",  "<",  "=",  ".", ":", "|", ",", ";", "&", "^", "!"};
    for (const std::string_view symbol : kSymbols) {
      if (!looking_at(symbol)) continue;
      const char c = symbol[0];
      if (c == '(' || c == '[' || c == '{') ++brackets;
      if ((c == ')' || c == ']' || c == '}') && brackets-- == 0) {
        return fail(cat("an unexpected '", symbol, "'"));
      }
      push(TemplateToken::Kind::symbol, std::string(symbol));
      at_ += symbol.size();
      return {};
    }
    return fail(cat("unexpected character '", printable(rest().substr(0, 1)), "'"));
  }

  // A string literal with the escapes of Python.
  Status string(char quote) {
    std::string out;
    size_t i = at_ + 1;
    while (i < source_.size() && source_[i] != quote) {
      if (source_[i] != '\\') {
        out += source_[i++];
        continue;
      }
      if (i + 1 >= source_.size()) break;
      LOOM_TRY(escape(i, out));
    }
    if (i >= source_.size()) return fail("a string without an end");
    push(TemplateToken::Kind::string, std::move(out));
    at_ = i + 1;
    return {};
  }

  // Reads the escape at source_[i] and steps over it.
  Status escape(size_t& i, std::string& out) {
    static constexpr std::string_view kFrom = "\\'\"abfnrtv\n", kTo = "\\'\"\a\b\f\n\r\t\v";
    const char c = source_[i + 1];
    const size_t simple = kFrom.find(c);
    if (simple != std::string_view::npos) {
      if (c != '\n') out += kTo[simple];
      i += 2;
      return {};
    }
    const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits == 0) {
      if (is_digit(c) || c == 'N') return unsupported_here(cat("the escape '\\", c, "'"));
      out += '\\';  // Python keeps an unknown escape
      ++i;
      return {};
    }
    char32_t value = 0;
    for (size_t k = 0; k < digits; ++k) {
      const size_t index = i + 2 + k;
      const std::string_view kHex = "0123456789abcdef";
      const size_t digit = index < source_.size()
                               ? kHex.find(to_lower_ascii(source_.substr(index, 1)))
                               : std::string_view::npos;
      if (digit == std::string_view::npos) return fail(cat("the escape '\\", c, "' is too short"));
      value = value * 16 + static_cast<char32_t>(digit);
    }
    if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) {
      return unsupported_here("an escape that is not a character");
    }
    text::append_utf8(out, value);
    i += 2 + digits;
    return {};
  }

  std::string_view source_;
  const std::string& where_;
  std::vector<TemplateToken> tokens_;
  size_t at_ = 0;
  bool line_starting_ = true;
};

}  // namespace

Result<std::vector<TemplateToken>> tokenize(std::string_view source, const std::string& where) {
  return Lexer(source, where).run();
}

}  // namespace loom::core::jinja
