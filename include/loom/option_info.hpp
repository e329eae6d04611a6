// An option as data: what a program, a page or another language needs to offer it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loom {

// Texts of the description live as long as the program.
struct OptionInfo {
  std::string_view name;                 // "quantile"; of a struct inside "schedule.floor"
  std::string_view flag;                 // of the program, without dashes; empty: none
  std::vector<std::string_view> was;     // flags of earlier versions
  std::string_view group;                // heading: "Batches and samples"
  std::string_view type;                 // "float?": may be unset. "ints": a list
  std::string_view help;                 // one sentence with kinds, range and unit
  std::vector<std::string_view> values;  // texts of an enum
  std::optional<double> low, high;       // range of a number
  bool low_open = false;                 // the bound itself is outside
  bool high_open = false;
  std::string text;  // what the struct holds; "": unset or an empty list
};

}  // namespace loom
