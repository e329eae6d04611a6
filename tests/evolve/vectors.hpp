// The cases of tests/data/evolve/vectors.json, which make_vectors.py wrote with NumPy, SciPy and
// scikit-learn.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/numbers/bits.hpp"
#include "io/files/file.hpp"
#include "io/json/json.hpp"
#include "support/paths.hpp"

namespace loom::core::test {

inline const std::vector<JsonValue>& vector_cases(const std::string& kind) {
  static const JsonValue all = [] {
    const std::string path = loom_test::source_path("tests/data/evolve/vectors.json");
    return parse_json(read_file(path).value(), path).value();
  }();
  return all.find(kind)->elements();
}

inline double number_in(const JsonValue& object, const char* key) {
  return object.find(key)->as_double(key).value();
}

inline std::vector<double> numbers_of(const JsonValue& list) {
  std::vector<double> out;
  for (const JsonValue& item : list.elements()) {
    if (item.is_array()) {
      for (const double v : numbers_of(item)) out.push_back(v);
    } else {
      out.push_back(item.as_double("a number").value());
    }
  }
  return out;
}

inline std::vector<int64_t> integers_of(const JsonValue& list) {
  std::vector<int64_t> out;
  for (const JsonValue& item : list.elements()) out.push_back(item.as_int("an integer").value());
  return out;
}

// Floats by their bits.
inline std::vector<float> floats_of(const JsonValue& list) {
  std::vector<float> out;
  for (const int64_t bits : integers_of(list))
    out.push_back(bit_cast<float>(static_cast<uint32_t>(bits)));
  return out;
}

}  // namespace loom::core::test
