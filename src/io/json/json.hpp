// JSON as plain data: a strict reader (UTF-8, no duplicate keys, bounded depth, size and memory)
// and a writer. The only room that uses the JSON library; no other code includes it.
//
// A JsonValue keeps the order of an object's members, and whether a number was an integer. It has
// 16 bytes, because a hostile text can hold one value per two bytes. Parsing any text stays within
// 64 MB + 16 x its size.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace loom::core {

class JsonValue {
 public:
  enum class Type : uint8_t {
    null,
    boolean,
    integer,
    unsigned_integer,  // only above the range of int64
    real,
    string,
    array,
    object
  };
  using Member = std::pair<std::string, JsonValue>;

  JsonValue() = default;
  JsonValue(const JsonValue& other);
  JsonValue(JsonValue&& other) noexcept { swap(other); }
  JsonValue& operator=(JsonValue other) noexcept {
    swap(other);
    return *this;
  }
  ~JsonValue() {
    if (type_ >= Type::string) free_owned();
  }

  static JsonValue boolean(bool v);
  static JsonValue integer(int64_t v);
  static JsonValue real(double v);
  static JsonValue string(std::string v);
  static JsonValue array(std::vector<JsonValue> v = {});
  static JsonValue object(std::vector<Member> v = {});

  Type type() const { return type_; }
  bool is_null() const { return type_ == Type::null; }
  bool is_bool() const { return type_ == Type::boolean; }
  bool is_int() const { return type_ == Type::integer || type_ == Type::unsigned_integer; }
  bool is_number() const { return is_int() || type_ == Type::real; }
  bool is_string() const { return type_ == Type::string; }
  bool is_array() const { return type_ == Type::array; }
  bool is_object() const { return type_ == Type::object; }

  // Checked access. An Error contains `where` (for example "config.json: hidden_size"), the offset
  // of the value, and the expected type.
  Result<bool> as_bool(std::string_view where) const;
  Result<int64_t> as_int(std::string_view where) const;
  Result<double> as_double(std::string_view where) const;
  Result<std::string> as_string(std::string_view where) const;

  // Unchecked views; empty if the type is another.
  const std::string& text() const;
  const std::vector<JsonValue>& elements() const;
  const std::vector<Member>& members() const;

  // The member called `key`; null if there is none or this is not an object. Linear in the number
  // of members.
  const JsonValue* find(std::string_view key) const;

  // Appends a member (object) or an element (array). A value of another type first becomes an empty
  // object or array.
  void add(std::string key, JsonValue value);
  void push(JsonValue value);

  // The offset of this value in the source text, for messages; -1 for values made in code.
  int64_t offset() const { return offset_ == kNoOffset ? -1 : static_cast<int64_t>(offset_); }

  // A short form for messages, on one line: `null`, `12`, `"abc"`, `an array`.
  std::string describe() const;

 private:
  friend class JsonBuilder;
  static constexpr uint32_t kNoOffset = UINT32_MAX;

  void swap(JsonValue& other) noexcept;
  void free_owned();
  Error type_error(std::string_view where, std::string_view expected) const;

  // The pointers are owned; a null pointer is an empty string, array or object.
  union Payload {
    int64_t bits = 0;
    bool truth;
    int64_t int_value;
    uint64_t uint_value;
    double real_value;
    std::string* string_value;
    std::vector<JsonValue>* array_value;
    std::vector<Member>* object_value;
  };
  Payload payload_;
  uint32_t offset_ = kNoOffset;
  Type type_ = Type::null;
};

struct JsonLimits {
  size_t max_bytes = size_t{256} << 20;
  int max_depth = 64;
};

// Parses the whole of `text`; `where` names the source in messages. Errors carry the byte offset.
Result<JsonValue> parse_json(std::string_view text, std::string_view where, JsonLimits limits = {});

// Compact text (indent < 0) or pretty text, members in their own order. Doubles print in the
// shortest form that parses back, and always look like a real ("1.0"). Values that JSON cannot
// express are replaced: a non-finite number by null, invalid UTF-8 by U+FFFD.
std::string dump_json(const JsonValue& value, int indent = -1);

}  // namespace loom::core
