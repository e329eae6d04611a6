// Python pickles (protocols 2 to 5) as plain values. Nothing is called or imported: a global is its
// name, and a call is the value of its arguments if the caller's rule knows the name. Format:
// pickletools.py of CPython.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace loom::core {

constexpr size_t kMaxPickleValues = size_t{1} << 22;

enum class PickleKind : uint8_t {
  none,
  boolean,
  integer,
  real,
  text,
  bytes,
  tuple,       // items
  list,        // items; a set too
  dict,        // items: key, value, key, value, ...
  global,      // text: "torch._utils _rebuild_tensor_v2"
  called,      // items: the global, its arguments
  persistent,  // items: the id
};

struct PickleValue {
  PickleKind kind = PickleKind::none;
  int64_t integer = 0;  // also of a boolean
  double real = 0;
  std::string_view text;        // into the pickle; of a global, into the Pickle
  std::vector<uint32_t> items;  // indices of values
};

class Pickle {
 public:
  // `calls`: whether the file may use a global of this name. All others are an error that
  // names them. `end`: the offset after the pickle in `bytes`. `offset`: of `bytes` in the file,
  // for messages. The bytes must outlive the result. Errors: bad_file, unsupported.
  static Result<Pickle> parse(std::span<const std::byte> bytes, uint64_t offset,
                              const std::string& where,
                              const std::function<bool(std::string_view)>& calls, size_t& end);

  const PickleValue& root() const { return at(root_); }
  size_t size() const { return values_.size(); }
  const PickleValue& at(uint32_t index) const { return values_[index]; }
  const PickleValue& item(const PickleValue& value, size_t i) const { return at(value.items[i]); }

 private:
  friend class PickleReader;
  std::vector<PickleValue> values_;
  std::vector<std::unique_ptr<std::string>> names_;  // of globals
  uint32_t root_ = 0;
};

}  // namespace loom::core
