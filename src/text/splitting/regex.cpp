// Regex over PCRE2. Every attempt is anchored and this code walks over the text, so that work can
// be counted. An attempt starts with a small match limit, which grows while the budget of the call
// lasts. PCRE2's own limit restarts at every position and does not bound the whole text.
#include "text/splitting/regex.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/text.hpp"
#include "text/normalizers/unicode.hpp"

namespace loom::core::text {
namespace {

constexpr size_t kMaxPatternBytes = 16384;
constexpr uint32_t kFirstMatchLimit = 2048;
constexpr uint32_t kHeapLimitKiB = 256 * 1024;
// Budget::stopped(), among the codes of PCRE2.
constexpr int kStopped = PCRE2_ERROR_CALLOUT;

struct CodeDeleter {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct DataDeleter {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
struct ContextDeleter {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};
struct CompileContextDeleter {
  void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
};

}  // namespace

struct Regex::Impl {
  std::unique_ptr<pcre2_code, CodeDeleter> code;
  SymbolMap symbols;
  std::string pattern;  // as in the file
  std::string where;
};

namespace {

struct Match {
  size_t begin = 0;
  size_t end = 0;
  bool found = false;
};

// One pass over one text in symbols.
class Walk {
 public:
  Walk(const pcre2_code* code, std::string_view text, Budget& budget)
      : code_(code),
        text_(text),
        data_(pcre2_match_data_create(1, nullptr)),
        context_(pcre2_match_context_create(nullptr)),
        budget_(&budget) {
    if (context_) pcre2_set_heap_limit(context_.get(), kHeapLimitKiB);
  }

  // Finds the first match at or after `from`. Returns a PCRE2 error code, or 0.
  int next(size_t from, Match& match) {
    if (!data_ || !context_) return PCRE2_ERROR_NOMEMORY;
    match.found = false;
    for (size_t at = from; at <= text_.size();) {
      const int rc = attempt(at);
      if (rc >= 0) {
        const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(data_.get());
        match = {ends[0], ends[1], true};
        return 0;
      }
      if (rc != PCRE2_ERROR_NOMATCH) return rc;
      if (at == text_.size()) break;
      ++at;
    }
    return 0;
  }

 private:
  int attempt(size_t at) {
    for (uint32_t limit = kFirstMatchLimit;; limit *= 4) {
      if (budget_->steps < 1) return PCRE2_ERROR_MATCHLIMIT;
      const auto allowed = static_cast<uint32_t>(std::min<uint64_t>(limit, budget_->steps));
      pcre2_set_match_limit(context_.get(), allowed);
      pcre2_set_depth_limit(context_.get(), allowed);
      const int rc = pcre2_match(code_, reinterpret_cast<PCRE2_SPTR>(text_.data()), text_.size(),
                                 at, PCRE2_ANCHORED, data_.get(), context_.get());
      const bool stopped = rc == PCRE2_ERROR_MATCHLIMIT || rc == PCRE2_ERROR_DEPTHLIMIT;
      budget_->steps -= stopped ? allowed : 1;
      if (budget_->stopped(stopped ? allowed : 1)) return kStopped;
      if (!stopped) return rc;
      if (limit > UINT32_MAX / 8) return rc;
    }
  }

  const pcre2_code* code_;
  std::string_view text_;
  std::unique_ptr<pcre2_match_data, DataDeleter> data_;
  std::unique_ptr<pcre2_match_context, ContextDeleter> context_;
  Budget* budget_;
};

}  // namespace

Regex::Regex(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

Result<Regex> Regex::compile(std::string_view pattern, const std::string& where) {
  if (pattern.size() > kMaxPatternBytes) {
    return unsupported(
        cat("the pattern has ", pattern.size(), " bytes, more than ", kMaxPatternBytes), where);
  }
  LOOM_ASSIGN(RegexProgram program, translate_regex(pattern, where));
  const std::unique_ptr<pcre2_compile_context, CompileContextDeleter> context(
      pcre2_compile_context_create(nullptr));
  if (!context) return make_error(Code::out_of_memory, "no memory for a pattern", where);
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  constexpr uint32_t kOptions = PCRE2_MULTILINE | PCRE2_NO_START_OPTIMIZE | PCRE2_NO_AUTO_CAPTURE;
  int code = 0;
  PCRE2_SIZE offset = 0;
  auto impl = std::make_shared<Impl>();
  impl->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(program.native.data()),
                                 program.native.size(), kOptions, &code, &offset, context.get()));
  if (!impl->code) {
    PCRE2_UCHAR message[160] = {};
    pcre2_get_error_message(code, message, sizeof message);
    return bad_file(cat("pattern '", printable(pattern),
                        "' does not compile: ", reinterpret_cast<const char*>(message)),
                    where);
  }
  impl->pattern = printable(pattern);
  impl->symbols = std::move(program.symbols);
  impl->where = where;
  return Regex(std::move(impl));
}

namespace {

// Byte offsets of symbols, in ascending order of calls.
class Offsets {
 public:
  explicit Offsets(std::string_view text) : text_(text) {}
  size_t of(size_t symbol) {
    for (; symbol_ < symbol; ++symbol_) byte_ += code_point_at(text_, byte_).length;
    return byte_;
  }

 private:
  std::string_view text_;
  size_t symbol_ = 0, byte_ = 0;
};

}  // namespace

Status Regex::find_all(std::string_view text, Budget& budget, std::vector<Span>& out) const {
  const std::string symbols = impl_->symbols.translate(text);
  Walk walk(impl_->code.get(), symbols, budget);
  Offsets offsets(text);
  size_t covered = 0;  // end of the last match, in bytes
  size_t from = 0;     // start of the next attempt
  size_t last_match = symbols.size() + 1;
  while (from <= symbols.size()) {
    Match match;
    const int rc = walk.next(from, match);
    if (rc == kStopped) return Budget::stop_error();
    if (rc != 0) {
      return make_error(Code::unsupported,
                        cat("pattern '", impl_->pattern, "' needs too many steps on this text"),
                        impl_->where);
    }
    if (!match.found) break;
    if (match.begin == match.end && match.end == last_match) {
      // An empty match directly after a match does not count; continues one character later.
      ++from;
      continue;
    }
    const size_t begin = offsets.of(match.begin);
    if (covered != begin) out.push_back({covered, begin, false});
    covered = offsets.of(match.end);
    out.push_back({begin, covered, true});
    from = last_match = match.end;
  }
  if (covered != text.size()) out.push_back({covered, text.size(), false});
  return {};
}

}  // namespace loom::core::text
