// What templates may call: filters, tests, methods of strings and mappings, and five functions. A
// name that is not here is an Error when it is called, not when the template is parsed: templates
// carry branches for tools and dates that plain chats never enter.
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

// What rendering may still cost, and where it is, for messages.
class Meter {
 public:
  Meter(std::string where, uint64_t input_bytes)
      : where_(std::move(where)),
        steps_(4'000'000 + input_bytes),
        bytes_((uint64_t{64} << 20) + 64 * input_bytes) {}

  // One step and the handling of `bytes` bytes.
  Status work(uint64_t bytes, int64_t offset);
  // Accounts for a new string, list or mapping.
  Result<Value> make(std::string text, int64_t offset);
  Result<Value> make(Value::List list, int64_t offset);
  Result<Value> make(Value::Dict dict, int64_t offset);

  Error fail(std::string message, int64_t offset) const;
  Error refuse(std::string_view what, int64_t offset) const;
  Error undefined(const Value& value, int64_t offset) const;
  // str(value) of Python.
  Result<std::string> to_text(const Value& value, int64_t offset);

 private:
  Status spend(uint64_t bytes, int64_t offset);
  Status check(const Value& value, int64_t offset) const;
  std::string where_;
  uint64_t steps_, bytes_;
};

struct Call {
  std::string_view name;
  Value self;  // what stands before the filter, the test or the dot
  std::vector<Value> arguments;
  std::vector<std::pair<std::string, Value>> named;
  int64_t offset = 0;

  // The argument at `index`, or the one called `key`; undefined when there is neither.
  Value argument(size_t index, std::string_view key = {}) const;
};

Result<Value> call_filter(const Call& call, Meter& meter);
Result<Value> call_method(const Call& call, Meter& meter);
bool is_function(std::string_view name);
// `now`: what strftime_now() tells.
Result<Value> call_function(const Call& call, const CivilTime& now, Meter& meter);
Result<bool> call_test(const Call& call, Meter& meter);

// Operators shared by the library and the evaluator.
Result<bool> contains(const Value& container, const Value& item, Meter& meter, int64_t offset);
Result<Value::List> iterate(const Value& value, Meter& meter, int64_t offset);
Result<Value> text_operation(const Call& call, const std::string& text, bool& known, Meter& meter);
// False when the value holds something that has no JSON.
bool append_json(std::string& out, const Value& value);

}  // namespace loom::core::jinja
