// Messages of "donate compute": JSON objects with "v": 1 and a "type". Errors name the field and
// its valid values; unknown fields are ignored.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "io/json/json.hpp"

namespace loom::core {

constexpr int64_t kDonateVersion = 1;

// {"v": 1, "type": type}, to which fields are added.
JsonValue donate_message(std::string_view type);
// {"v": 1, "type": "error", "error": what}
JsonValue donate_error(std::string_view what);

// The object in a frame. Errors: bad_file (no JSON, no object), invalid_argument (another version,
// no type).
Result<JsonValue> read_donate_message(std::string_view frame);
std::string_view donate_type(const JsonValue& message);

// Fields by name. null is as good as absent. Errors: invalid_argument, naming the field.
Result<std::string> donate_text(const JsonValue& message, std::string_view field, size_t most);
// Returns `otherwise` if it is absent.
Result<int64_t> donate_count(const JsonValue& message, std::string_view field, int64_t low,
                             int64_t high, int64_t otherwise);
Result<bool> donate_flag(const JsonValue& message, std::string_view field);
Result<std::vector<int32_t>> donate_ids(const JsonValue& message, std::string_view field);
JsonValue donate_list(const std::vector<int32_t>& ids);

}  // namespace loom::core
