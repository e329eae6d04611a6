// Literal search, and the choice between a literal and a regular expression. An empty literal
// matches between all characters, like the empty regular expression that HF makes of it.
#include "text/splitting/pattern.hpp"

#include "base/text.hpp"
#include "text/normalizers/unicode.hpp"

namespace loom::core::text {

Pattern Pattern::literal(std::string text) {
  Pattern pattern;
  pattern.literal_ = std::move(text);
  return pattern;
}

Result<Pattern> Pattern::regex(std::string_view text, const std::string& where) {
  LOOM_ASSIGN(Regex compiled, Regex::compile(text, where));
  Pattern pattern;
  pattern.regex_ = std::move(compiled);
  return pattern;
}

Result<Pattern> Pattern::make(const PatternSpec& spec) {
  if (spec.regex) return regex(spec.text, spec.where);
  return literal(spec.text);
}

void Pattern::find_literal(std::string_view text, std::vector<Span>& out) const {
  size_t covered = 0;
  if (literal_.empty()) {
    out.push_back({0, 0, true});
    while (covered < text.size()) {
      const size_t next = covered + code_point_at(text, covered).length;
      out.push_back({covered, next, false});
      out.push_back({next, next, true});
      covered = next;
    }
    return;
  }
  for (size_t at = text.find(literal_); at != std::string_view::npos;
       at = text.find(literal_, covered)) {
    if (at != covered) out.push_back({covered, at, false});
    covered = at + literal_.size();
    out.push_back({at, covered, true});
  }
  if (covered != text.size()) out.push_back({covered, text.size(), false});
}

Status Pattern::find_all(std::string_view text, Budget& budget, std::vector<Span>& out) const {
  if (text.empty()) {
    out.push_back({0, 0, false});
    return {};
  }
  if (regex_) return regex_->find_all(text, budget, out);
  find_literal(text, out);
  return {};
}

Result<std::string> Pattern::replace_all(std::string_view text, std::string_view content,
                                         Budget& budget) const {
  std::vector<Span> spans;
  LOOM_TRY(find_all(text, budget, spans));
  std::string out;
  for (const Span& span : spans) {
    const std::string_view piece =
        span.matched ? content : text.substr(span.begin, span.end - span.begin);
    if (!budget.spend_bytes(piece.size())) return unsupported("replacing makes the text too long");
    out += piece;
  }
  return out;
}

}  // namespace loom::core::text
