// The rows of a struct of options, as its description says them, and texts of other values.
#pragma once

#include <cmath>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "io/json/json.hpp"
#include "loom/training_options.hpp"

namespace loom::options_test {

using core::cat;

struct Row {
  std::string name, type, value, flag;
  std::vector<std::string> words;
  std::optional<double> low, high;
  bool low_open = false, high_open = false;

  bool list() const { return type == "ints" || type == "floats"; }
  bool texts() const { return type == "texts" || type == "rates"; }
  bool is_integer() const { return type.starts_with("int") || type == "seed"; }
  bool number() const {
    return is_integer() || type.starts_with("float") || type.starts_with("double");
  }
};

inline std::optional<double> real(const core::JsonValue& row, std::string_view key) {
  const core::JsonValue* value = row.find(key);
  if (value == nullptr) return {};
  return value->as_double("").or_exit();
}

inline std::string text(const core::JsonValue& row, std::string_view key) {
  return std::string(row.find(key)->as_string("").or_exit());
}

template <class Options>
std::vector<Row> rows() {
  std::vector<Row> all;
  const core::JsonValue list = core::parse_json(describe(Options{}), "describe").or_exit();
  for (const core::JsonValue& item : list.elements()) {
    Row row{text(item, "name"), text(item, "type"), text(item, "value"), text(item, "flag")};
    if (const core::JsonValue* words = item.find("values"))
      for (const core::JsonValue& word : words->elements())
        row.words.emplace_back(word.as_string("").or_exit());
    row.low = real(item, "low");
    row.high = real(item, "high");
    row.low_open = item.find("low_open") != nullptr;
    row.high_open = item.find("high_open") != nullptr;
    all.push_back(row);
  }
  return all;
}

using Draw = std::mt19937;

inline std::string draw_number(const Row& row, Draw& draw) {
  const double low = row.low.value_or(-1e3), high = std::min(row.high.value_or(low + 1e3), 1e6);
  if (row.is_integer()) {
    const double first = std::ceil(std::max(low, 0.0)) + (row.low_open ? 1 : 0);
    const auto begin = static_cast<int64_t>(first);
    const auto most = static_cast<uint64_t>(std::min(row.high.value_or(1e3) - low, 200.0));
    const int64_t value = begin + static_cast<int64_t>(draw() % (most + 1));
    return cat(value) == row.value ? cat(value == begin ? value + 1 : begin) : cat(value);
  }
  const double share = (1 + static_cast<double>(draw() % 998)) / 1000;
  const double value = low + share * (high - low);
  return row.type.starts_with("float") ? cat(static_cast<float>(value)) : cat(value);
}

// A text that is another value than the default.
inline std::string draw_text(const Row& row, Draw& draw) {
  if (row.type == "bool") return row.value == "true" ? "false" : "true";
  if (row.type == "bool?") return draw() % 2 == 0 ? "true" : "false";
  if (row.type.ends_with("[]")) return cat(row.words[draw() % 3], ",", row.words.back());
  if (row.type == "words") return "loss,bytes";
  if (!row.words.empty()) {
    std::string word = row.value;
    while (word == row.value) word = row.words[draw() % row.words.size()];
    return word;
  }
  if (row.type == "path") return "a folder/net.entity";
  if (row.type == "texts") return R"(["(0, 0, 0, *)/weight", "a \"b\" \\ c"])";
  if (row.type == "rates") return cat("[\"(0, 0, 0, 0)/*=", draw_number(row, draw), "\"]");
  if (!row.list()) return draw_number(row, draw);
  std::string all;
  for (int i = 0; i < 3; ++i) all += cat(i == 0 ? "" : ",", draw_number(row, draw));
  return all;
}

}  // namespace loom::options_test
