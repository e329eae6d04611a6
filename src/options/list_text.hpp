// Lists in the text of an option: numbers at commas, texts as a JSON array.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace loom::core {

// "1,2" or "[1, 2]" as its items where `plain`; ["a", "b"] with JSON's escapes; else a text alone
// as one item. "" and "[]" have none. Errors: invalid_argument.
Result<std::vector<std::string>> split_list(std::string_view text, bool plain);
// The inside of a text in quotes: \" and \\ for " and \.
std::string escaped(std::string_view text);
// The text that split_list() reads back.
std::string join_list(const std::vector<std::string>& items, bool plain);

}  // namespace loom::core
