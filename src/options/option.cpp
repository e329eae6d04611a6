#include "options/option.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/names.hpp"
#include "base/text.hpp"
#include "options/list_text.hpp"

namespace loom::core {
namespace {

// An option and the name that messages have for it: of the option, or "--" and that of the flag.
struct Called {
  OptionRange range;
  std::string_view type;
  std::string name;

  Error wrong(std::string_view text, std::string_view expected) const {
    const std::string shown = text.empty() ? "empty" : printable(text);
    return invalid(cat(name, " is ", shown, ", must be ", expected));
  }
  Called of(std::string_view pattern) const {
    return {range, type, cat(name, " of ", printable(pattern))};
  }
};

template <class T>
constexpr std::string_view kKind = std::is_floating_point_v<T> ? "a number" : "an integer";

// Do commas separate the items of a list?
template <class T>
bool is_plain(std::string_view type) {
  return std::is_arithmetic_v<T> || type == "words";
}

// The whole text as a number in the range of the row.
template <class T>
Status read_number(const Called& option, std::string_view text, T& to) {
  T value{};
  const char* const last = text.data() + text.size();
  const auto [end, code] = std::from_chars(text.data(), last, value);
  if (code == std::errc::result_out_of_range && end == last && std::is_integral_v<T>)
    return option.wrong(text, cat("at most ", std::numeric_limits<T>::max()));
  if (code != std::errc() || end != last) return option.wrong(text, kKind<T>);
  if (!option.range.holds(static_cast<double>(value)))
    return option.wrong(text, option.range.text());
  to = value;
  return {};
}

// "(0, 0, 0, 0)/*=0.1".
Status read_rate(const Called& option, std::string_view text, RateFor& to) {
  const size_t equals = text.rfind('=');
  if (equals == std::string_view::npos || equals == 0)
    return option.wrong(text, "PATTERN=FACTOR, as (0, 0, 0, 0)/*=0.1");
  to.pattern = text.substr(0, equals);
  return read_number(option.of(to.pattern), text.substr(equals + 1), to.factor);
}

template <class T>
Status read_item(const Called& option, std::string_view text, T& to) {
  if constexpr (std::is_same_v<T, std::string>) {
    to = text;
    return {};
  } else if constexpr (std::is_same_v<T, RateFor>) {
    return read_rate(option, text, to);
  } else {
    return read_number(option, text, to);
  }
}

// Sets the value from a text. Where `items` is not null, it has the values of a list.
struct Reader {
  const Called option;
  std::string_view text;
  const std::vector<std::string>* items = nullptr;

  Status operator()(bool* to) const {
    if (text != "true" && text != "false") return option.wrong(text, "true or false");
    *to = text == "true";
    return {};
  }
  Status operator()(std::string* to) const {
    *to = text;
    return {};
  }
  Status operator()(const EnumValue& to) const {
    LOOM_ASSIGN(*to.value, value_of<uint8_t>(to.what, to.words, text));
    return {};
  }
  Status operator()(const EnumList& to) const {
    std::vector<std::string> texts;
    if (items != nullptr) {
      texts = *items;
    } else {
      LOOM_ASSIGN(texts, split_list(text, true));
    }
    std::vector<uint8_t> values(texts.size());
    for (size_t i = 0; i < texts.size(); ++i) {
      LOOM_ASSIGN(values[i], value_of<uint8_t>(to.what, to.words, texts[i]));
    }
    if (to.single && values.size() > 1) return option.wrong(text, "one value");
    to.write(to.list, values);
    return {};
  }
  Status operator()(std::optional<std::string>* to) const {  // an empty text counts
    *to = text;
    return {};
  }
  template <class T>
  Status operator()(std::optional<T>* to) const {
    if (text.empty()) {
      to->reset();
      return {};
    }
    T value{};
    if constexpr (std::is_same_v<T, bool>) {
      LOOM_TRY((*this)(&value));
    } else {
      LOOM_TRY(read_number(option, text, value));
    }
    *to = value;
    return {};
  }
  template <class T>
  Status operator()(std::vector<T>* to) const {
    std::vector<std::string> texts;
    if (items != nullptr) {
      texts = *items;
    } else {
      LOOM_ASSIGN(texts, split_list(text, is_plain<T>(option.type)));
    }
    std::vector<T> values(texts.size());
    for (size_t i = 0; i < texts.size(); ++i) LOOM_TRY(read_item(option, texts[i], values[i]));
    *to = std::move(values);
    return {};
  }
  template <class T>
  Status operator()(T* to) const {
    return read_number(option, text, *to);
  }
};

std::string item_text(const std::string& value) {
  return value;
}
std::string item_text(const RateFor& value) {
  return cat(value.pattern, "=", value.factor);
}
template <class T>
std::string item_text(T value) {
  return cat(value);
}

// The text that Reader reads.
struct Writer {
  const OptionRow& row;

  std::string operator()(const bool* value) const { return *value ? "true" : "false"; }
  std::string operator()(const std::string* value) const { return *value; }
  std::string operator()(const EnumValue& value) const {
    return std::string(word_of(value.words, *value.value));
  }
  std::string operator()(const EnumList& values) const {
    std::vector<std::string> items;
    for (const uint8_t value : values.read(values.list))
      items.emplace_back(word_of(values.words, value));
    return join_list(items, true);
  }
  template <class T>
  std::string operator()(const std::optional<T>* value) const {
    return value->has_value() ? (*this)(&**value) : "";
  }
  template <class T>
  std::string operator()(const std::vector<T>* values) const {
    std::vector<std::string> items;
    for (const T& value : *values) items.push_back(item_text(value));
    return join_list(items, is_plain<T>(row.type));
  }
  template <class T>
  std::string operator()(const T* value) const {
    return cat(*value);
  }
};

// Is what a struct holds in its range?
struct Checker {
  const Called option;

  template <class T>
  Status number(T value) const {
    if (option.range.holds(static_cast<double>(value))) return {};
    return option.wrong(cat(value), option.range.text());
  }
  Status operator()(const bool*) const { return {}; }
  Status operator()(const std::string*) const { return {}; }
  Status operator()(const EnumValue& value) const {
    if (*value.value < value.words.size()) return {};
    return option.wrong(cat(int{*value.value}), cat("one of ", value.words.size(), " values"));
  }
  Status operator()(const EnumList& values) const {
    for (uint8_t value : values.read(values.list))
      LOOM_TRY((*this)(EnumValue{&value, values.what, values.words}));
    return {};
  }
  template <class T>
  Status operator()(const std::optional<T>* value) const {
    return value->has_value() ? (*this)(&**value) : Status();
  }
  template <class T>
  Status operator()(const std::vector<T>* values) const {
    for (const T& value : *values) {
      if constexpr (std::is_arithmetic_v<T>) LOOM_TRY(number(value));
      if constexpr (std::is_same_v<T, RateFor>)
        LOOM_TRY(Checker{option.of(value.pattern)}.number(value.factor));
    }
    return {};
  }
  template <class T>
  Status operator()(const T* value) const {
    return number(*value);
  }
};

OptionValue value_in(const OptionRow& row, const void* options) {
  return row.value(const_cast<void*>(options));  // it is only read
}

}  // namespace

bool OptionRange::holds(double value) const {
  if (!(value >= low && value <= high) || std::isinf(value)) return false;
  return !(low_open && value == low) && !(high_open && value == high);
}

std::string OptionRange::text() const {
  const bool below = std::isfinite(low), above = std::isfinite(high);
  if (below && above) {
    if (low_open && high_open) return cat("between ", low, " and ", high);
    if (low_open) return cat("above ", low, ", up to ", high);
    if (high_open) return cat("from ", low, ", below ", high);
    return cat(low, " to ", high);
  }
  if (below) return low_open ? cat("above ", low) : cat(low, " or more");
  if (above) return high_open ? cat("below ", high) : cat(high, " or less");
  return "a finite number";
}

namespace {

// Are they the same name, whatever joins its words?
bool same(std::string_view a, std::string_view b) {
  const auto joint = [](char c) { return c == '.' || c == '-' || c == '_'; };
  return std::ranges::equal(a, b, [&](char x, char y) { return x == y || (joint(x) && joint(y)); });
}

Error no_option(OptionRows rows, std::string_view name, std::string_view OptionRow::*key) {
  std::vector<std::string> names;
  for (const OptionRow& row : rows) names.emplace_back(row.*key);
  const std::string near = closest(name, names);
  return make_error(Code::not_found, cat("there is no option '", printable(name), "'",
                                         near.empty() ? "" : cat("; did you mean '", near, "'?")));
}

// "schedule.floor", and for languages whose options are flat "schedule_floor" or, as the flag has
// it, "floor". "schedule" is "schedule.kind".
Result<const OptionRow*> find_option(OptionRows rows, std::string_view name) {
  const std::string kind = cat(name, ".kind");
  for (const OptionRow& row : rows)
    if (same(row.name, name) || row.name == kind) return &row;
  for (const OptionRow& row : rows)
    if (same(row.flag, name) && !name.empty()) return &row;
  return no_option(rows, name, &OptionRow::name);
}

// A struct inside without a kind, as augment: its text has names with numbers.
bool is_numbers(OptionRows rows, std::string_view name) {
  const auto inside = [&](const OptionRow& row) { return row.name.starts_with(cat(name, ".")); };
  const auto kind = [&](const OptionRow& row) { return row.name == cat(name, ".kind"); };
  return std::ranges::any_of(rows, inside) && std::ranges::none_of(rows, kind);
}

Result<const OptionRow*> find_flag(OptionRows rows, std::string_view flag) {
  for (const OptionRow& row : rows)
    if (row.flag == flag && !flag.empty()) return &row;
  return no_option(rows, flag, &OptionRow::flag);
}

bool same_text(const OptionRow& row, const void* a, const void* b) {
  return std::visit(Writer{row}, value_in(row, a)) == std::visit(Writer{row}, value_in(row, b));
}

// Is it one of the words at the commas?
bool has_word(std::string_view words, std::string_view word) {
  return cat(",", words, ",").find(cat(",", word, ",")) != std::string::npos;
}

OptionInfo info_of(const OptionRow& row, const void* options) {
  OptionInfo out{
      .name = row.name, .flag = row.flag, .group = row.group, .type = row.type, .help = row.help};
  for (std::string_view rest = row.was; !rest.empty();) {
    const size_t comma = std::min(rest.find(','), rest.size());
    out.was.push_back(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  const OptionValue value = value_in(row, options);
  const auto* one = std::get_if<EnumValue>(&value);
  const auto* list = std::get_if<EnumList>(&value);
  if (one != nullptr || list != nullptr) {
    for (const Word& word : one != nullptr ? one->words : list->words)
      out.values.push_back(word.text);
  }
  const OptionRange& range = row.range;
  if (std::isfinite(range.low)) out.low = range.low;
  if (std::isfinite(range.high)) out.high = range.high;
  out.low_open = out.low && range.low_open;
  out.high_open = out.high && range.high_open;
  out.text = std::visit(Writer{row}, value);
  return out;
}

std::string quoted(std::string_view text) {
  return cat('"', escaped(text), '"');
}

std::string quoted(const std::vector<std::string_view>& texts) {
  std::vector<std::string> items;
  for (const std::string_view text : texts) items.push_back(quoted(text));
  return cat("[", join(items, ", "), "]");
}

std::string json_of(const OptionInfo& o) {
  std::string out = cat("{\"name\": ", quoted(o.name), ", \"flag\": ", quoted(o.flag),
                        ", \"was\": ", quoted(o.was), ", \"group\": ", quoted(o.group),
                        ", \"type\": ", quoted(o.type), ", \"help\": ", quoted(o.help));
  if (!o.values.empty()) out += cat(", \"values\": ", quoted(o.values));
  if (o.low) out += cat(", \"low\": ", *o.low);
  if (o.high) out += cat(", \"high\": ", *o.high);
  if (o.low_open) out += ", \"low_open\": true";
  if (o.high_open) out += ", \"high_open\": true";
  return cat(out, ", \"value\": ", quoted(o.text), "}");
}

}  // namespace

static Status read_value(const OptionRow& row, std::string_view text, void* options) {
  return std::visit(Reader{{row.range, row.type, std::string(row.name)}, text}, row.value(options));
}

// "crop:2" of a struct inside; a name alone has its usual value.
Status set_item(OptionRows rows, void* options, std::string_view group, std::string_view item) {
  const size_t colon = item.find(':');
  LOOM_ASSIGN(const OptionRow* row, find_option(rows, cat(group, ".", item.substr(0, colon))));
  const std::string_view value =
      colon == std::string_view::npos ? row->usual : item.substr(colon + 1);
  return read_value(*row, value, options);
}

Status set_group(OptionRows rows, void* options, std::string_view group, std::string_view text) {
  LOOM_ASSIGN(const std::vector<std::string> items, split_list(text, true));
  for (const std::string& item : items) LOOM_TRY(set_item(rows, options, group, item));
  return {};
}

// The values that are not 0, as set_group() reads them.
std::string group_text(OptionRows rows, const void* options, std::string_view group) {
  std::vector<std::string> items;
  for (const OptionRow& row : rows) {
    if (!row.name.starts_with(cat(group, "."))) continue;
    const std::string value = std::visit(Writer{row}, value_in(row, options));
    if (value != "0") items.push_back(cat(row.name.substr(group.size() + 1), ":", value));
  }
  return join(items, ",");
}

Status set_option(OptionRows rows, void* options, std::string_view name, std::string_view text) {
  if (is_numbers(rows, name)) return set_group(rows, options, name, text);
  LOOM_ASSIGN(const OptionRow* row, find_option(rows, name));
  return read_value(*row, text, options);
}

Status set_flag(OptionRows rows, void* options, std::string_view flag,
                const std::vector<std::string>& values) {
  LOOM_ASSIGN(const OptionRow* row, find_flag(rows, flag));
  const std::string_view text = values.empty() ? std::string_view() : values.front();
  const Reader reader{{row->range, row->type, cat("--", flag)}, text, &values};
  return std::visit(reader, row->value(options));
}

Result<std::string> option_text(OptionRows rows, const void* options, std::string_view name) {
  if (is_numbers(rows, name)) return group_text(rows, options, name);
  LOOM_ASSIGN(const OptionRow* row, find_option(rows, name));
  return std::visit(Writer{*row}, value_in(*row, options));
}

static Status check_limit(const OptionLimit& limit, const void* options) {
  const Checker check{{limit.range, {}, std::string(limit.name)}};
  return std::visit(check, limit.value(const_cast<void*>(options)));  // it is only read
}

Status check_options(OptionRows rows, const void* options) {
  for (const OptionRow& row : rows) LOOM_TRY(check_limit(row.limit(), options));
  return {};
}

Status check_options(std::span<const OptionLimit> limits, const void* options) {
  for (const OptionLimit& limit : limits) LOOM_TRY(check_limit(limit, options));
  return {};
}

std::vector<OptionInfo> list_options(OptionRows rows, const void* options) {
  std::vector<OptionInfo> all;
  for (const OptionRow& row : rows) all.push_back(info_of(row, options));
  return all;
}

std::vector<std::string> idle_options(OptionRows rows, const void* options, const void* usual) {
  std::vector<std::string> idle;
  for (const OptionRow& row : rows) {
    const size_t equals = row.only_with.find('=');
    if (equals == std::string_view::npos || same_text(row, options, usual)) continue;
    const std::string_view on = row.only_with.substr(0, equals);
    const std::string now = option_text(rows, options, on).or_exit();
    const std::string_view fitting = row.only_with.substr(equals + 1);
    if (now == "automatic" || has_word(fitting, now)) continue;  // what it becomes is not known
    idle.push_back(cat(row.name, " has no effect with ", on, " ", now, "; it is for ", fitting));
  }
  return idle;
}

std::string describe_options(const std::vector<OptionInfo>& options) {
  std::vector<std::string> all;
  for (const OptionInfo& option : options) all.push_back(json_of(option));
  return cat("[", join(all, ",\n"), "]\n");
}

}  // namespace loom::core
