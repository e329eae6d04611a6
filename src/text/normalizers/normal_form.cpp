// The four normalization forms (Unicode Standard Annex 15). Canonical ordering uses one stable sort
// per run of marks, so that a hostile run of many marks costs no more than a sort.
#include <algorithm>
#include <utility>
#include <vector>

#include "text/normalizers/unicode.hpp"
#include "text/normalizers/unicode_tables.hpp"

namespace loom::core::text {
namespace {

using Buffer = std::u32string;

// Hangul syllables are composed by a formula (Unicode Standard, section 3.12).
constexpr char32_t kSyllables = 0xAC00, kLeads = 0x1100, kVowels = 0x1161, kTails = 0x11A7;
constexpr char32_t kLeadCount = 19, kVowelCount = 21, kTailCount = 28;
constexpr char32_t kSyllableCount = kLeadCount * kVowelCount * kTailCount;

uint8_t combining_class(char32_t c) {
  if (c < 0x300) return 0;
  const auto after = std::upper_bound(kCombiningClasses.begin(), kCombiningClasses.end(),
                                      static_cast<uint32_t>(c << 8 | 0xFF));
  return static_cast<uint8_t>(*(after - 1) & 0xFF);
}

const DecompositionRun* find_run(char32_t c) {
  const auto after =
      std::upper_bound(kDecompositionRuns.begin(), kDecompositionRuns.end(), c,
                       [](char32_t v, const DecompositionRun& run) { return v < run.first; });
  if (after == kDecompositionRuns.begin() || c > (after - 1)->last) return nullptr;
  return &*(after - 1);
}

char32_t part_of(const DecompositionRun& run, char32_t c, uint32_t i) {
  const uint32_t step = c - run.first;
  return run.rises != 0 ? kDecompositionParts[run.parts] + step
                        : kDecompositionParts[run.parts + step * run.length + i];
}

void decompose(char32_t c, bool compatible, Buffer& out) {
  if (c >= kSyllables && c < kSyllables + kSyllableCount) {
    const char32_t index = c - kSyllables, tail = index % kTailCount;
    out += kLeads + index / (kVowelCount * kTailCount);
    out += kVowels + index / kTailCount % kVowelCount;
    if (tail != 0) out += kTails + tail;
    return;
  }
  const DecompositionRun* run = c < 0xA0 ? nullptr : find_run(c);
  if (run == nullptr || (run->compatible != 0 && !compatible)) {
    out += c;
    return;
  }
  for (uint32_t i = 0; i < run->length; ++i) decompose(part_of(*run, c, i), compatible, out);
}

// Sorts the marks from `begin` to `end` by class; those of one class keep their order.
void order_run(Buffer& buffer, size_t begin, size_t end) {
  std::vector<std::pair<uint8_t, char32_t>> marks;
  for (size_t i = begin; i < end; ++i) marks.emplace_back(combining_class(buffer[i]), buffer[i]);
  const auto by_class = [](const auto& a, const auto& b) { return a.first < b.first; };
  if (std::is_sorted(marks.begin(), marks.end(), by_class)) return;
  std::stable_sort(marks.begin(), marks.end(), by_class);
  for (size_t i = begin; i < end; ++i) buffer[i] = marks[i - begin].second;
}

// Puts every run of marks into canonical order.
void order_marks(Buffer& buffer) {
  for (size_t i = 0; i < buffer.size();) {
    size_t end = i;
    while (end < buffer.size() && combining_class(buffer[end]) != 0) ++end;
    if (end > i + 1) order_run(buffer, i, end);
    i = end + 1;
  }
}

struct Pair {
  char32_t first, second, composed;
  bool operator<(const Pair& other) const {
    return std::pair(first, second) < std::pair(other.first, other.second);
  }
};

std::vector<Pair> make_pairs() {
  std::vector<Pair> pairs;
  for (const DecompositionRun& run : kDecompositionRuns) {
    if (run.compatible != 0 || run.length != 2) continue;
    for (char32_t c = run.first; c <= run.last; ++c) {
      const bool stays =
          std::any_of(kNotComposed.begin(), kNotComposed.end(),
                      [c](const CodeRange& range) { return c >= range.first && c <= range.last; });
      if (!stays) pairs.push_back({part_of(run, c, 0), part_of(run, c, 1), c});
    }
  }
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

// The composition of two neighbours, or 0.
char32_t composed(char32_t first, char32_t second) {
  if (first >= kLeads && first < kLeads + kLeadCount) {
    if (second < kVowels || second >= kVowels + kVowelCount) return 0;
    return kSyllables + ((first - kLeads) * kVowelCount + second - kVowels) * kTailCount;
  }
  if (first >= kSyllables && first < kSyllables + kSyllableCount &&
      (first - kSyllables) % kTailCount == 0) {
    const bool tail = second > kTails && second < kTails + kTailCount;
    return tail ? first + second - kTails : 0;
  }
  static const std::vector<Pair> pairs = make_pairs();
  const auto found = std::lower_bound(pairs.begin(), pairs.end(), Pair{first, second, 0});
  const bool same = found != pairs.end() && found->first == first && found->second == second;
  return same ? found->composed : 0;
}

void compose(Buffer& buffer) {
  size_t size = 0, starter = 0;
  bool has_starter = false;
  uint8_t last_class = 0;  // of the previous character, if it is a mark of the starter
  for (const char32_t c : Buffer(buffer)) {
    const uint8_t own = combining_class(c);
    if (has_starter && (size == starter + 1 || last_class < own)) {
      if (const char32_t both = composed(buffer[starter], c); both != 0) {
        buffer[starter] = both;
        continue;
      }
    }
    if (own == 0) {
      starter = size;
      has_starter = true;
    }
    last_class = own;
    buffer[size++] = c;
  }
  buffer.resize(size);
}

bool changes_nothing(std::string_view text, NormalForm form) {
  // Below U+0300 every character is its own NFC; below U+0080 its own form of any kind.
  const unsigned char least = form == NormalForm::nfc ? 0xCC : 0x80;
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return static_cast<unsigned char>(c) < least; });
}

}  // namespace

std::string normalize(std::string_view text, NormalForm form) {
  if (changes_nothing(text, form)) return std::string(text);
  const bool compatible = form == NormalForm::nfkc || form == NormalForm::nfkd;
  Buffer buffer;
  buffer.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    at += c.length;
    decompose(c.value, compatible, buffer);
  }
  order_marks(buffer);
  if (form == NormalForm::nfc || form == NormalForm::nfkc) compose(buffer);
  std::string out;
  out.reserve(text.size());
  for (const char32_t c : buffer) append_utf8(out, c);
  return out;
}

}  // namespace loom::core::text
