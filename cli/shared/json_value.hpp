// Untrusted JSON, such as a hub's replies, as plain data. Not for model files, which the library
// reads. A document has at most kDeepest levels, so that recursion is bounded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "json.hpp"
#include "loom/result.hpp"

namespace loom::cli {

class JsonValue {
 public:
  static constexpr int kDeepest = 64;

  // Errors: bad_file (not JSON, or too deep), naming `where`.
  static Result<JsonValue> parse(std::string_view text, const std::string& where);

  // The member of an object; null: none, or no object.
  const JsonValue* find(std::string_view name) const;
  const std::vector<JsonValue>& elements() const { return elements_; }  // of an array
  // Empty if it has another kind.
  const std::string& text() const { return text_; }
  std::optional<int64_t> integer() const { return integer_; }
  std::optional<double> number() const { return number_; }  // integer or real
  std::optional<bool> boolean() const { return boolean_; }
  bool is_array() const { return kind_ == Kind::array; }
  bool is_text() const { return kind_ == Kind::text; }
  const std::vector<std::pair<std::string, JsonValue>>& members() const { return members_; }
  // The same for output.
  Json json() const;

  // find(name)->text(), or "".
  std::string member_text(std::string_view name) const;

 private:
  friend struct JsonCopy;
  std::string text_;
  std::optional<int64_t> integer_;
  std::optional<double> number_;
  std::optional<bool> boolean_;
  enum class Kind { null, boolean, number, text, array, object };
  Kind kind_ = Kind::null;
  std::vector<JsonValue> elements_;
  std::vector<std::pair<std::string, JsonValue>> members_;
};

}  // namespace loom::cli
