// The library of templates: filters, tests, methods of strings and mappings, and a few functions.
// An unknown name is an Error when it is called, not when the template is parsed. Templates have
// branches for tools and dates that plain chats never execute.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/civil_time.hpp"
#include "base/result.hpp"
#include "jinja/value.hpp"

namespace loom::core::jinja {

// The remaining cost limits of a rendering, and the location for messages.
class Meter {
 public:
  Meter(std::string where, uint64_t input_bytes)
      : where_(std::move(where)),
        steps_(4'000'000 + input_bytes),
        bytes_((uint64_t{64} << 20) + 64 * input_bytes) {}

  // One step and the handling of `bytes` bytes.
  Status work(uint64_t bytes, int64_t offset);
  // Accounts for a new string, list or mapping.
  Result<Value> make(std::string text, int64_t offset, bool safe = false);
  Result<Value> make(Value::List list, int64_t offset,
                     Value::Sequence sequence = Value::Sequence::list);
  Result<Value> make(Value::Dict dict, int64_t offset);

  Error fail(std::string message, int64_t offset) const;
  Error refuse(std::string_view what, int64_t offset) const;
  Error undefined(const Value& value, int64_t offset) const;
  // Python's str(value).
  Result<std::string> to_text(const Value& value, int64_t offset);

 private:
  Status spend(uint64_t bytes, int64_t offset);
  Status check(const Value& value, int64_t offset) const;
  std::string where_;
  uint64_t steps_, bytes_;
};

struct Call {
  std::string_view name;
  Value self;  // the operand of the filter, the test or the dot
  std::vector<Value> arguments;
  std::vector<std::pair<std::string, Value>> named;
  int64_t offset = 0;

  // The argument at `index`, or the one called `key`; undefined if there is neither.
  Value argument(size_t index, std::string_view key = {}) const;
};

Result<Value> call_filter(const Call& call, Meter& meter);
Result<Value> call_method(const Call& call, Meter& meter);
bool is_function(std::string_view name);
// `now`: the result of strftime_now().
Result<Value> call_function(const Call& call, const CivilTime& now, Meter& meter);
Result<bool> call_test(const Call& call, Meter& meter);

// Whether Python has a method of this name: transformers' sandbox hides methods that change their
// object.
enum class Method : uint8_t { none, known, changes };
Method method_of(const Value& object, std::string_view name);

// The families of filters; `known` is false if `call.name` is not in the family.
Result<Value> list_filter(const Call& call, bool& known, Meter& meter);
Result<Value> ordered_filter(const Call& call, bool& known, Meter& meter);
Result<Value> number_filter(const Call& call, bool& known, Meter& meter);
Result<Value> text_filter(const Call& call, bool& known, Meter& meter);
Result<Value> text_operation(const Call& call, const std::string& text, bool& known, Meter& meter);
Result<Value> text_search(const Call& call, const std::string& text, bool& known, Meter& meter);
Result<Value> join_items(const Call& call, const Value& list, const Value& separator, Meter& meter);
Result<Value> items_of(const Value& dict, std::string_view what, Meter& meter, int64_t offset);
Result<Value> to_json(const Call& call, Meter& meter);
// "%s and %d" % values.
Result<Value> format_percent(const std::string& format, const Value& values, Meter& meter,
                             int64_t offset);
// "{} and {name}".format(...).
Result<Value> format_braces(const Call& call, const std::string& format, Meter& meter);
// `item` at "a.b.0".
Result<Value> attribute_path(const Value& item, const Value& path, Meter& meter, int64_t offset);

// Operators shared by the library and the evaluator.
Result<Value> operate(std::string_view name, const Value& left, const Value& right, Meter& meter,
                      int64_t offset);
Result<bool> compare(std::string_view name, const Value& left, const Value& right, Meter& meter,
                     int64_t offset);
// Below, equal or above, in Python's order of numbers, strings and lists.
Result<int> order(const Value& left, const Value& right, Meter& meter, int64_t offset);
Result<bool> contains(const Value& container, const Value& item, Meter& meter, int64_t offset);
Result<Value::List> iterate(const Value& value, Meter& meter, int64_t offset);

// The key of a member as a value.
Result<Value> key_value(const std::string& key, Meter& meter, int64_t offset);

// Text of single values in Python's form.
std::string python_real(double value);
std::string python_repr(const Value& value);
std::string escape_html(std::string_view text);
std::string lower_text(std::string_view text);
std::string upper_text(std::string_view text);
std::string python_strip(std::string_view text);   // str.strip()
std::string python_rstrip(std::string_view text);  // str.rstrip()
// Code points as views of their bytes.
std::vector<std::string_view> characters(std::string_view text);

}  // namespace loom::core::jinja
