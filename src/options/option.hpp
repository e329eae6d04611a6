// Options as data. Each option has a name, a range and an address in its struct. So one function
// each parses, prints, checks and compares them for every struct. The rows are generated from
// api/options/*.toml.
#pragma once

#include <array>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.hpp"
#include "loom/option_info.hpp"
#include "loom/training_options.hpp"
#include "options/words.hpp"

namespace loom::core {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// An enum whose values are the positions of its words.
struct EnumValue {
  uint8_t* value = nullptr;
  std::string_view what;  // "loss"
  std::span<const Word> words;
};
template <class E>
EnumValue enum_value(E* value, std::string_view what, std::span<const Word> words) {
  static_assert(std::is_same_v<std::underlying_type_t<E>, uint8_t>);
  return {reinterpret_cast<uint8_t*>(value), what, words};
}

// A list of such values, or with `single` one that may be unset.
struct EnumList {
  void* list = nullptr;
  std::vector<uint8_t> (*read)(const void* list);
  void (*write)(void* list, const std::vector<uint8_t>& values);
  std::string_view what;
  std::span<const Word> words;
  bool single = false;
};
template <class E>
EnumList enum_list(std::vector<E>* list, std::string_view what, std::span<const Word> words) {
  const auto read = [](const void* from) {
    std::vector<uint8_t> out;
    for (const E value : *static_cast<const std::vector<E>*>(from))
      out.push_back(static_cast<uint8_t>(value));
    return out;
  };
  const auto write = [](void* to, const std::vector<uint8_t>& values) {
    static_cast<std::vector<E>*>(to)->clear();
    for (const uint8_t value : values)
      static_cast<std::vector<E>*>(to)->push_back(static_cast<E>(value));
  };
  return {list, read, write, what, words};
}
template <class E>
EnumList enum_if_set(std::optional<E>* at, std::string_view what, std::span<const Word> words) {
  const auto read = [](const void* from) {
    const auto& value = *static_cast<const std::optional<E>*>(from);
    return value ? std::vector<uint8_t>{static_cast<uint8_t>(*value)} : std::vector<uint8_t>{};
  };
  const auto write = [](void* to, const std::vector<uint8_t>& values) {
    auto& value = *static_cast<std::optional<E>*>(to);
    value.reset();
    if (!values.empty()) value = static_cast<E>(values.front());
  };
  return {at, read, write, what, words, true};
}

// Points into the struct of options.
using OptionValue =
    std::variant<bool*, int64_t*, uint64_t*, float*, double*, std::string*, std::optional<bool>*,
                 std::optional<int64_t>*, std::optional<float>*, std::optional<double>*,
                 std::optional<std::string>*, std::vector<int64_t>*, std::vector<float>*,
                 std::vector<std::string>*, std::vector<RateFor>*, EnumValue, EnumList>;

struct OptionRange {
  double low, high;
  bool low_open, high_open;  // the bound itself is outside

  bool holds(double value) const;  // false for NaN
  std::string text() const;        // "above 0", "0 or more", "0 to 1", "between 0 and 1"
};

// The part of a row that checks need.
struct OptionLimit {
  std::string_view name;
  OptionRange range;
  OptionValue (*value)(void* options);
};

struct OptionRow {
  std::string_view name;       // "quantile", of a struct inside "schedule.floor"
  std::string_view flag;       // of the program, without dashes; "" if there is none
  std::string_view was;        // earlier flags, without dashes, at commas
  std::string_view group;      // heading
  std::string_view type;       // as api/options has it: "float?"
  std::string_view help;       // one sentence with kinds, range and unit
  OptionRange range;           // of numbers
  std::string_view usual;      // in the text of a struct, where its name stands alone
  std::string_view only_with;  // "loss=focal,quantile": it has an effect with these alone
  OptionValue (*value)(void* options);

  constexpr OptionLimit limit() const { return {name, range, value}; }
};
using OptionRows = std::span<const OptionRow>;

// A struct with its defaults.
template <class Options>
inline const Options kUsual{};

// The limits of rows. A library that only checks a struct has no other text of its rows.
template <size_t N>
constexpr std::array<OptionLimit, N> limits_of(const OptionRow (&rows)[N]) {
  std::array<OptionLimit, N> limits{};
  for (size_t i = 0; i < N; ++i) limits[i] = rows[i].limit();
  return limits;
}
template <const auto& Rows>
constexpr auto kLimits = limits_of(Rows);

// loom/training_options.hpp says what each does.
Status set_option(OptionRows rows, void* options, std::string_view name, std::string_view text);
Status set_flag(OptionRows rows, void* options, std::string_view flag,
                const std::vector<std::string>& values);
Result<std::string> option_text(OptionRows rows, const void* options, std::string_view name);
Status check_options(OptionRows rows, const void* options);
Status check_options(std::span<const OptionLimit> limits, const void* options);
std::vector<OptionInfo> list_options(OptionRows rows, const void* options);
std::vector<std::string> idle_options(OptionRows rows, const void* options, const void* usual);
// A JSON array with an object for each option.
std::string describe_options(const std::vector<OptionInfo>& options);

}  // namespace loom::core
