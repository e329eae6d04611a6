// Sets are built from tables once per pattern; SymbolMap does the fast work.
#include "text/normalizers/char_set.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/text.hpp"

namespace loom::core::text {
namespace {

constexpr char32_t kLast = 0x10FFFF;

// The values of kCategories. From `alternating` on the first is Lu, the next Ll, and so on.
enum Category : uint8_t {
  Lu,
  Ll,
  Lt,
  Lm,
  Lo,
  Mn,
  Mc,
  Me,
  Nd,
  Nl,
  No,
  Pc,
  Pd,
  Ps,
  Pe,
  Pi,
  Pf,
  Po,
  Sm,
  Sc,
  Sk,
  So,
  Zs,
  Zl,
  Zp,
  Cc,
  Cf,
  Cs,
  Co,
  Cn,
  alternating
};

constexpr uint32_t bit(Category category) {
  return uint32_t{1} << category;
}

constexpr uint32_t bits(Category first, Category last) {
  uint32_t out = 0;
  for (int c = first; c <= last; ++c) out |= uint32_t{1} << c;
  return out;
}

constexpr uint32_t kLetter = bits(Lu, Lo), kMark = bits(Mn, Me), kNumber = bits(Nd, No);

struct CategoryName {
  std::string_view name;  // in small letters, without "_"
  uint32_t bits;
};

constexpr CategoryName kCategoryNames[] = {
    {"l", kLetter},
    {"letter", kLetter},
    {"lc", bits(Lu, Lt)},
    {"casedletter", bits(Lu, Lt)},
    {"lu", bit(Lu)},
    {"uppercaseletter", bit(Lu)},
    {"ll", bit(Ll)},
    {"lowercaseletter", bit(Ll)},
    {"lt", bit(Lt)},
    {"titlecaseletter", bit(Lt)},
    {"lm", bit(Lm)},
    {"modifierletter", bit(Lm)},
    {"lo", bit(Lo)},
    {"otherletter", bit(Lo)},
    {"m", kMark},
    {"mark", kMark},
    {"combiningmark", kMark},
    {"mn", bit(Mn)},
    {"nonspacingmark", bit(Mn)},
    {"mc", bit(Mc)},
    {"spacingmark", bit(Mc)},
    {"me", bit(Me)},
    {"enclosingmark", bit(Me)},
    {"n", kNumber},
    {"number", kNumber},
    {"nd", bit(Nd)},
    {"decimalnumber", bit(Nd)},
    {"digit", bit(Nd)},
    {"nl", bit(Nl)},
    {"letternumber", bit(Nl)},
    {"no", bit(No)},
    {"othernumber", bit(No)},
    {"p", bits(Pc, Po)},
    {"punctuation", bits(Pc, Po)},
    {"pc", bit(Pc)},
    {"connectorpunctuation", bit(Pc)},
    {"pd", bit(Pd)},
    {"dashpunctuation", bit(Pd)},
    {"ps", bit(Ps)},
    {"openpunctuation", bit(Ps)},
    {"pe", bit(Pe)},
    {"closepunctuation", bit(Pe)},
    {"pi", bit(Pi)},
    {"initialpunctuation", bit(Pi)},
    {"pf", bit(Pf)},
    {"finalpunctuation", bit(Pf)},
    {"po", bit(Po)},
    {"otherpunctuation", bit(Po)},
    {"s", bits(Sm, So)},
    {"symbol", bits(Sm, So)},
    {"sm", bit(Sm)},
    {"mathsymbol", bit(Sm)},
    {"sc", bit(Sc)},
    {"currencysymbol", bit(Sc)},
    {"sk", bit(Sk)},
    {"modifiersymbol", bit(Sk)},
    {"so", bit(So)},
    {"othersymbol", bit(So)},
    {"z", bits(Zs, Zp)},
    {"separator", bits(Zs, Zp)},
    {"zs", bit(Zs)},
    {"spaceseparator", bit(Zs)},
    {"zl", bit(Zl)},
    {"lineseparator", bit(Zl)},
    {"zp", bit(Zp)},
    {"paragraphseparator", bit(Zp)},
    {"c", bits(Cc, Cn)},
    {"other", bits(Cc, Cn)},
    {"cc", bit(Cc)},
    {"control", bit(Cc)},
    {"cf", bit(Cf)},
    {"format", bit(Cf)},
    {"cs", bit(Cs)},
    {"surrogate", bit(Cs)},
    {"co", bit(Co)},
    {"privateuse", bit(Co)},
    {"cn", bit(Cn)},
    {"unassigned", bit(Cn)},
};

// Calls take(first, last, value) for every run of a table.
template <class Take>
void each_run(std::span<const uint32_t> table, const Take& take) {
  for (size_t i = 0; i < table.size(); ++i) {
    const char32_t last = i + 1 < table.size() ? (table[i + 1] >> 8) - 1 : kLast;
    take(static_cast<char32_t>(table[i] >> 8), last, static_cast<uint8_t>(table[i] & 0xFF));
  }
}

void add_categories(uint32_t categories_mask, std::vector<CodeRange>& out) {
  constexpr uint32_t kBoth = bit(Lu) | bit(Ll);
  each_run(kCategories, [&](char32_t first, char32_t last, uint8_t value) {
    const bool all = value == alternating ? (categories_mask & kBoth) == kBoth
                                          : (categories_mask >> value & 1) != 0;
    if (all) {
      out.push_back({first, last});
    } else if (value == alternating && (categories_mask & kBoth) != 0) {
      for (char32_t c = first + ((categories_mask & bit(Lu)) != 0 ? 0 : 1); c <= last; c += 2)
        out.push_back({c, c});
    }
  });
}

std::vector<CodeRange> categories(uint32_t categories_mask, std::span<const CodeRange> more = {}) {
  std::vector<CodeRange> out(more.begin(), more.end());
  add_categories(categories_mask, out);
  return out;
}

std::optional<CharSet> script(std::string_view name) {
  const auto found = std::find_if(kScriptNames.begin(), kScriptNames.end(),
                                  [&](const ScriptName& row) { return name == row.name; });
  if (found == kScriptNames.end()) return std::nullopt;
  std::vector<CodeRange> out;
  each_run(kScripts, [&](char32_t first, char32_t last, uint8_t value) {
    if (value == found->script) out.push_back({first, last});
  });
  return CharSet(std::move(out));
}

std::optional<CharSet> binary_property(std::string_view name) {
  if (name == "any") return CharSet({{0, kLast}});
  if (name == "alphabetic" || name == "alpha")
    return CharSet(categories(kLetter | bit(Nl), kOtherAlphabetic));
  if (name == "lowercase" || name == "lower") return CharSet(categories(bit(Ll), kOtherLowercase));
  if (name == "uppercase" || name == "upper") return CharSet(categories(bit(Lu), kOtherUppercase));
  if (name == "whitespace" || name == "space")
    return CharSet({kWhiteSpace.begin(), kWhiteSpace.end()});
  if (name == "ideographic") return CharSet({kIdeographic.begin(), kIdeographic.end()});
  if (name == "emoji") return CharSet({kEmoji.begin(), kEmoji.end()});
  return std::nullopt;
}

// Calls take(c, the code point that c folds to).
template <class Take>
void each_fold(const Take& take) {
  for (const CaseRow& row : kFold) {
    for (char32_t c = row.first; c <= row.last; c += row.step)
      take(c, static_cast<char32_t>(static_cast<int32_t>(c) + row.delta));
  }
}

}  // namespace

CharSet::CharSet(std::vector<CodeRange> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const CodeRange& a, const CodeRange& b) { return a.first < b.first; });
  for (const CodeRange& range : ranges) {
    if (!ranges_.empty() && range.first <= ranges_.back().last + 1) {
      ranges_.back().last = std::max(ranges_.back().last, range.last);
    } else {
      ranges_.push_back(range);
    }
  }
}

std::optional<CharSet> CharSet::property(std::string_view name) {
  std::string plain;
  for (const char c : to_lower_ascii(name)) {
    if (c != '_' && c != ' ' && c != '-') plain += c;
  }
  for (const CategoryName& row : kCategoryNames) {
    if (row.name == plain) return CharSet(categories(row.bits));
  }
  if (std::optional<CharSet> found = binary_property(plain)) return found;
  return script(plain);
}

CharSet CharSet::word() {
  return CharSet(categories(kLetter | kMark | bit(Nd) | bit(Nl) | bit(Pc), kOtherAlphabetic));
}

CharSet CharSet::complement() const {
  std::vector<CodeRange> out;
  char32_t next = 0;
  for (const CodeRange& range : ranges_) {
    if (range.first > next) out.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kLast) out.push_back({next, kLast});
  return CharSet(std::move(out));
}

CharSet CharSet::with_other_cases() const {
  std::vector<char32_t> folded;  // what members fold to
  each_fold([&](char32_t c, char32_t to) {
    if (contains(c) || contains(to)) folded.push_back(to);
  });
  std::sort(folded.begin(), folded.end());
  std::vector<CodeRange> out(ranges_.begin(), ranges_.end());
  each_fold([&](char32_t c, char32_t to) {
    if (!std::binary_search(folded.begin(), folded.end(), to)) return;
    out.push_back({c, c});
    out.push_back({to, to});
  });
  return CharSet(std::move(out));
}

bool CharSet::contains(char32_t c) const {
  const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), c,
                                      [](char32_t v, const CodeRange& r) { return v < r.first; });
  return after != ranges_.begin() && c <= (after - 1)->last;
}

bool CharSet::operator==(const CharSet& other) const {
  return std::equal(ranges_.begin(), ranges_.end(), other.ranges_.begin(), other.ranges_.end(),
                    [](const CodeRange& a, const CodeRange& b) {
                      return a.first == b.first && a.last == b.last;
                    });
}

}  // namespace loom::core::text
