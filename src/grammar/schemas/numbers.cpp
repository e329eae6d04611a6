#include "grammar/schemas/numbers.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace loom::core::grammar {
namespace {

constexpr uint32_t kMaxWhole = 18, kMaxPart = 15;
constexpr size_t kMaxBoundDigits = 60;

int compare_sizes(const Bound& a, const Bound& b) {
  if (a.whole.size() != b.whole.size()) return a.whole.size() < b.whole.size() ? -1 : 1;
  const int whole = a.whole.compare(b.whole);
  return whole != 0 ? whole : a.part.compare(b.part);
}

std::string plus_one(std::string digits) {
  size_t i = digits.size();
  while (i > 0 && digits[i - 1] == '9') digits[--i] = '0';
  if (i == 0) return "1" + digits;
  ++digits[i - 1];
  return digits;
}
// Requires digits > 0.
std::string minus_one(std::string digits) {
  size_t i = digits.size();
  while (i > 0 && digits[i - 1] == '0') digits[--i] = '9';
  --digits[i - 1];
  if (digits.size() > 1 && digits[0] == '0') digits.erase(0, 1);
  return digits;
}
bool less_whole(const std::string& a, const std::string& b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

// Magnitudes of numbers from `low` to `high`; without `high`, unbounded.
struct Sizes {
  Bound low;
  std::optional<Bound> high;
};

class NumberWriter {
 public:
  explicit NumberWriter(Builder& builder) : b_(builder) {}

  ExprId integers(const std::string& low, const std::string* high) {
    std::vector<ExprId> choices;
    if (high == nullptr) {
      choices.push_back(at_least(low));
      const auto more = static_cast<uint32_t>(low.size());
      const uint32_t most = std::max(kMaxWhole, more + 1);
      choices.push_back(b_.sequence({digit('1', '9'), digits(more, most - 1)}));
      return b_.choice(std::move(choices));
    }
    for (size_t n = low.size(); n <= high->size(); ++n) {
      const std::string from = n == low.size() ? low : "1" + std::string(n - 1, '0');
      const std::string to = n == high->size() ? *high : std::string(n, '9');
      if (from <= to) choices.push_back(between(from, to));
    }
    return b_.choice(std::move(choices));
  }

  ExprId reals(const Sizes& s) {
    const Bound& low = s.low;
    if (!s.high.has_value()) {
      return b_.choice({b_.sequence({b_.literal(low.whole), with_point(low, nullptr)}),
                        b_.sequence({integers(plus_one(low.whole), nullptr), any_part()})});
    }
    const Bound& high = *s.high;
    if (low.whole == high.whole)
      return b_.sequence({b_.literal(low.whole), with_point(low, &high)});
    std::vector<ExprId> choices = {b_.sequence({b_.literal(low.whole), with_point(low, nullptr)})};
    const std::string from = plus_one(low.whole), to = minus_one(high.whole);
    if (!less_whole(to, from)) choices.push_back(b_.sequence({integers(from, &to), any_part()}));
    choices.push_back(b_.sequence({b_.literal(high.whole), with_point(Bound(), &high)}));
    return b_.choice(std::move(choices));
  }

  ExprId any_part() { return b_.optional(b_.sequence({b_.literal("."), digits(1, kMaxPart)})); }

 private:
  ExprId digit(char from, char to) {
    return b_.chars(static_cast<char32_t>(from), static_cast<char32_t>(to));
  }
  ExprId digits(uint32_t least, uint32_t most) { return b_.repeat(digit('0', '9'), least, most); }
  ExprId digits(size_t count) {
    return digits(static_cast<uint32_t>(count), static_cast<uint32_t>(count));
  }
  ExprId one(char c) { return b_.literal(std::string(1, c)); }

  // Digits of one length: at least, at most, between.
  ExprId at_least(const std::string& s) {
    if (s.find_first_not_of('0') == std::string::npos) return digits(s.size());
    const std::string rest = s.substr(1);
    std::vector<ExprId> choices = {b_.sequence({one(s[0]), at_least(rest)})};
    if (s[0] < '9') {
      choices.push_back(
          b_.sequence({digit(static_cast<char>(s[0] + 1), '9'), digits(rest.size())}));
    }
    return b_.choice(std::move(choices));
  }
  ExprId at_most(const std::string& s) {
    if (s.find_first_not_of('9') == std::string::npos) return digits(s.size());
    const std::string rest = s.substr(1);
    std::vector<ExprId> choices = {b_.sequence({one(s[0]), at_most(rest)})};
    if (s[0] > '0') {
      choices.push_back(
          b_.sequence({digit('0', static_cast<char>(s[0] - 1)), digits(rest.size())}));
    }
    return b_.choice(std::move(choices));
  }
  ExprId between(const std::string& a, const std::string& b) {
    if (a.empty()) return b_.empty();
    const std::string ra = a.substr(1), rb = b.substr(1);
    if (a[0] == b[0]) return b_.sequence({one(a[0]), between(ra, rb)});
    std::vector<ExprId> choices = {b_.sequence({one(a[0]), at_least(ra)}),
                                   b_.sequence({one(b[0]), at_most(rb)})};
    if (a[0] + 1 < b[0]) {
      choices.push_back(b_.sequence(
          {digit(static_cast<char>(a[0] + 1), static_cast<char>(b[0] - 1)), digits(ra.size())}));
    }
    return b_.choice(std::move(choices));
  }

  // The point and the following digits, or nothing, with the part between those of the bounds.
  ExprId with_point(const Bound& low, const Bound* high) {
    const std::string* most = high != nullptr ? &high->part : nullptr;
    const bool open = high != nullptr && high->open;
    std::vector<ExprId> choices;
    if (may_stop(low.part, low.open, most, open)) choices.push_back(b_.empty());
    choices.push_back(b_.sequence({b_.literal("."), part(low.part, low.open, most, open)}));
    return b_.choice(std::move(choices));
  }
  static bool may_stop(const std::string& low, bool low_open, const std::string* high,
                       bool high_open) {
    if (!low.empty() || low_open) return false;
    return high == nullptr || !high->empty() || !high_open;
  }
  // The digits after the written ones; none if these are enough.
  ExprId rest(const std::string& low, bool low_open, const std::string* high, bool high_open) {
    if (low.empty() && !low_open && high == nullptr) return digits(0, kMaxPart - 1);
    const ExprId more = part(low, low_open, high, high_open);
    return may_stop(low, low_open, high, high_open) ? b_.optional(more) : more;
  }
  // One digit or more: low <= 0.digits <= high.
  ExprId part(const std::string& low, bool low_open, const std::string* high, bool high_open) {
    if (low.empty() && !low_open && high == nullptr) return digits(1, kMaxPart);
    if (high != nullptr && high->empty()) {  // nothing above 0
      const bool none = !low.empty() || low_open || high_open;
      return none ? b_.choice({}) : b_.repeat(one('0'), 1, kMaxPart);
    }
    if (low.empty() && low_open && high == nullptr) {  // above 0
      return b_.sequence({b_.repeat(one('0'), 0, kMaxPart), digit('1', '9'), digits(0, kMaxPart)});
    }
    const char a = low.empty() ? '0' : low[0], z = high == nullptr ? '9' + 1 : (*high)[0];
    const std::string ra = low.empty() ? low : low.substr(1);
    const std::string rz = high == nullptr ? std::string() : high->substr(1);
    std::vector<ExprId> choices;
    if (a == z) {
      choices.push_back(b_.sequence({one(a), rest(ra, low_open, &rz, high_open)}));
    } else if (a < z) {
      choices.push_back(b_.sequence({one(a), rest(ra, low_open, nullptr, false)}));
      if (a + 1 < z) {
        choices.push_back(b_.sequence(
            {digit(static_cast<char>(a + 1), static_cast<char>(z - 1)), digits(0, kMaxPart - 1)}));
      }
      if (high != nullptr)
        choices.push_back(b_.sequence({one(z), rest({}, false, &rz, high_open)}));
    }
    return b_.choice(std::move(choices));
  }

  Builder& b_;
};

// The magnitudes of the numbers of a range that are 0 or more, or below 0.
std::optional<Sizes> not_negative(const NumberRange& r) {
  if (r.high.has_value() && r.high->negative && !r.high->is_zero()) return std::nullopt;
  Sizes s;
  if (r.low.has_value() && !r.low->negative) s.low = *r.low;
  s.high = r.high;
  return s;
}
std::optional<Sizes> negative(const NumberRange& r) {
  if (r.low.has_value() && (!r.low->negative || r.low->is_zero())) return std::nullopt;
  Sizes s;
  s.low.open = true;  // not -0
  if (r.high.has_value() && r.high->negative && !r.high->is_zero()) s.low = *r.high;
  s.high = r.low;
  return s;
}
bool is_void(const Sizes& s) {
  if (!s.high.has_value()) return false;
  const int order = compare_sizes(s.low, *s.high);
  return order > 0 || (order == 0 && (s.low.open || s.high->open));
}

}  // namespace

Result<Bound> bound_of(const JsonValue& value, bool open) {
  if (!value.is_number()) return invalid(cat("must be a number; got ", value.describe()));
  std::string text = dump_json(value);
  Bound out;
  out.open = open;
  if (text[0] == '-') out.negative = true, text.erase(0, 1);
  int64_t exponent = 0;
  if (const size_t e = text.find_first_of("eE"); e != std::string::npos) {
    for (size_t i = e + 1; i < text.size(); ++i) {
      if (text[i] >= '0' && text[i] <= '9') exponent = exponent * 10 + (text[i] - '0');
    }
    if (text[e + 1] == '-') exponent = -exponent;
    text.erase(e);
  }
  const size_t point = text.find('.');
  std::string whole = text.substr(0, point);
  std::string part = point == std::string::npos ? std::string() : text.substr(point + 1);
  if (exponent > 60 || exponent < -60) return unsupported("has too many digits to be held to");
  for (; exponent > 0; --exponent) {
    whole += part.empty() ? '0' : part[0];
    if (!part.empty()) part.erase(0, 1);
  }
  for (; exponent < 0; ++exponent) {
    part.insert(part.begin(), whole.empty() ? '0' : whole.back());
    if (!whole.empty()) whole.pop_back();
  }
  whole.erase(0, whole.find_first_not_of('0'));
  while (!part.empty() && part.back() == '0') part.pop_back();
  if (whole.size() + part.size() > kMaxBoundDigits)
    return unsupported("has too many digits to be held to");
  out.whole = whole.empty() ? "0" : whole;
  out.part = part;
  if (out.is_zero()) out.negative = false;
  return out;
}

int compare(const Bound& a, const Bound& b) {
  if (a.negative != b.negative) return a.negative ? -1 : 1;
  return a.negative ? compare_sizes(b, a) : compare_sizes(a, b);
}

ExprId add_integers(Builder& b, const NumberRange& range) {
  NumberWriter writer(b);
  const auto add = [&](std::optional<Sizes> s) {
    if (!s.has_value() || is_void(*s)) return b.choice({});
    const bool up = s->low.open || !s->low.part.empty();
    const std::string low = up ? plus_one(s->low.whole) : s->low.whole;
    if (!s->high.has_value()) return writer.integers(low, nullptr);
    const bool down = s->high->open && s->high->part.empty();
    if (down && s->high->whole == "0") return b.choice({});
    const std::string high = down ? minus_one(s->high->whole) : s->high->whole;
    return less_whole(high, low) ? b.choice({}) : writer.integers(low, &high);
  };
  const ExprId positive = add(not_negative(range));
  return b.choice({positive, b.sequence({b.literal("-"), add(negative(range))})});
}

ExprId add_reals(Builder& b, const NumberRange& range) {
  NumberWriter writer(b);
  const auto add = [&](std::optional<Sizes> s) {
    return s.has_value() && !is_void(*s) ? writer.reals(*s) : b.choice({});
  };
  if (!range.low.has_value() && !range.high.has_value()) {
    const std::string zero = "0";
    const ExprId digit = b.chars('0', '9');
    return b.sequence(
        {b.optional(b.literal("-")), writer.integers(zero, nullptr), writer.any_part(),
         b.optional(b.sequence({b.choice({b.literal("e"), b.literal("E")}),
                                b.optional(b.choice({b.literal("+"), b.literal("-")})),
                                b.repeat(digit, 1, 2)}))});
  }
  const ExprId positive = add(not_negative(range));
  return b.choice({positive, b.sequence({b.literal("-"), add(negative(range))})});
}

}  // namespace loom::core::grammar
