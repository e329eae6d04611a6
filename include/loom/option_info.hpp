// An option as data, for programs, pages and other languages that offer it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loom {

// The texts live as long as the program.
struct OptionInfo {
  std::string_view name;                 // "quantile"; of a nested struct "schedule.floor"
  std::string_view flag;                 // command-line flag without dashes; empty if none
  std::vector<std::string_view> was;     // flags of earlier versions
  std::string_view group;                // heading: "Batches and samples"
  std::string_view type;                 // "float?": may be unset; "ints": a list
  std::string_view help;                 // one sentence with kinds, range and unit
  std::vector<std::string_view> values;  // texts of an enum
  std::optional<double> low, high;       // range of a number
  bool low_open = false;                 // the bound itself is outside
  bool high_open = false;
  std::string text;  // the current value; empty if unset or an empty list
};

}  // namespace loom
