// parse_json over the SAX interface of nlohmann-json; only this file includes it. The library
// defines the grammar. We add the limits, the duplicate keys, the offsets and the error messages.
// Nothing throws: the SAX interface reports errors, and its asserts are off.
//
// Invariant: finished values of open arrays are in `values_`, those of open objects in `members_`,
// in order. So a container is built once, at its end, with the exact capacity.
#include "io/json/json.hpp"

#include <cstddef>
#include <deque>
#include <iterator>

#include "base/text.hpp"
#include "io/files/foreign_file.hpp"
#include "io/json/json_diagnose.hpp"
#include "io/json/json_keys.hpp"

#define JSON_ASSERT(condition) static_cast<void>(0)
#define JSON_NO_IO
#include <nlohmann/json.hpp>

namespace loom::core {

namespace {

// Walks the text and shows the handler the position of the lexer.
class Cursor {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Cursor(const char* at, const char** seen) : at_(at), seen_(seen) {}
  reference operator*() const { return *at_; }
  Cursor& operator++() {
    *seen_ = ++at_;
    return *this;
  }
  bool operator==(const Cursor& other) const { return at_ == other.at_; }
  bool operator!=(const Cursor& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** seen_;
};

// The overhead of one heap allocation.
constexpr size_t kBlock = 16;

size_t string_cost(size_t length) {
  return length <= 15 ? 0 : length + 1 + kBlock;
}

}  // namespace

// The SAX handler: builds the tree and enforces the limits. The library defines its public member
// names.
class JsonBuilder {
 public:
  JsonBuilder(std::string_view text, std::string_view where, JsonLimits limits)
      : text_(text), where_(where), limits_(limits), seen_(text.data()) {}

  Result<JsonValue> run() {
    const Cursor first(text_.data(), &seen_);
    const Cursor last(text_.data() + text_.size(), &seen_);
    const bool ok = nlohmann::json::sax_parse(first, last, this,
                                              nlohmann::json::input_format_t::json, true, false);
    // The library treats a NUL byte as the end of the text.
    if (ok && skip_json_space(text_, last_end_) != text_.size()) {
      diagnose();
    } else if (ok) {
      return std::move(root_);
    }
    return bad_file(std::move(message_), std::string(where_), static_cast<int64_t>(fault_offset_));
  }

  bool null() { return scalar(JsonValue()); }
  bool boolean(bool v) { return scalar(JsonValue::boolean(v)); }
  bool number_integer(int64_t v) { return scalar(JsonValue::integer(v)); }
  bool number_unsigned(uint64_t v) {
    JsonValue value = JsonValue::integer(static_cast<int64_t>(v));
    if (v > static_cast<uint64_t>(INT64_MAX)) {
      value.type_ = JsonValue::Type::unsigned_integer;
      value.payload_.uint_value = v;
    }
    return scalar(std::move(value));
  }
  bool number_float(double v, const std::string&) { return scalar(JsonValue::real(v)); }
  bool string(std::string& v) {
    if (!v.empty()) cost_ += sizeof(std::string) + kBlock + string_cost(v.size());
    return scalar(JsonValue::string(v));
  }
  bool binary(nlohmann::json::binary_t&) { return false; }

  bool start_object(size_t) { return open(true); }
  bool start_array(size_t) { return open(false); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    const size_t start = token_start();
    last_end_ = position();
    place_ = JsonContext::after_key;
    Frame& frame = frames_.back();
    const size_t table = frame.keys.bytes();
    members_.emplace_back(name, JsonValue());
    if (!frame.keys.insert_last(members_, frame.first)) {
      return refuse(start, cat("duplicate key \"", printable(name), "\""));
    }
    cost_ += 2 * sizeof(JsonValue::Member) + string_cost(name.size()) + frame.keys.bytes() - table;
    return within_memory(start);
  }

  bool parse_error(size_t, const std::string&, const nlohmann::json::exception&) {
    diagnose();
    return false;
  }

 private:
  struct Frame {
    bool is_object;
    uint32_t start;
    size_t first;  // the first of its values in values_ or members_
    JsonKeySet keys;
  };

  size_t position() const { return static_cast<size_t>(seen_ - text_.data()); }

  // Only spaces and punctuation are between the last token and this one.
  size_t token_start() const {
    const size_t at = text_.find_first_not_of(" \t\n\r,:", last_end_);
    return at == std::string_view::npos ? text_.size() : at;
  }

  bool refuse(size_t offset, std::string message) {
    fault_offset_ = offset;
    message_ = std::move(message);
    return false;
  }

  void diagnose() {
    JsonFault fault = diagnose_json(text_, last_end_, place_);
    refuse(fault.offset, std::move(fault.message));
  }

  // The lexer's own copies of the longest string use the rest of the promised 64 MB + 16 x.
  bool within_memory(size_t offset) {
    if (cost_ <= (size_t{56} << 20) + 13 * text_.size()) return true;
    return refuse(offset, "so many values in so little text; refused to keep memory bounded");
  }

  // The lexer is at the end of the token; only after a number it may have read one byte more.
  bool scalar(JsonValue value) {
    const size_t start = token_start();
    last_end_ = position();
    if (value.is_number()) {
      JsonFault none;
      last_end_ = scan_json_number(text_, start, none);
    }
    value.offset_ = static_cast<uint32_t>(start);
    return put(std::move(value), start);
  }

  bool put(JsonValue value, size_t start) {
    if (frames_.empty()) {
      root_ = std::move(value);
      place_ = JsonContext::end;
    } else if (frames_.back().is_object) {
      members_.back().second = std::move(value);
      place_ = JsonContext::object_value;
    } else {
      values_.push_back(std::move(value));
      cost_ += 2 * sizeof(JsonValue);
      place_ = JsonContext::array_value;
    }
    return within_memory(start);
  }

  bool open(bool is_object) {
    const size_t start = token_start();
    last_end_ = position();
    if (frames_.size() >= static_cast<size_t>(limits_.max_depth)) {
      return refuse(start, cat("nested deeper than ", limits_.max_depth, " levels"));
    }
    place_ = is_object ? JsonContext::object_open : JsonContext::array_open;
    const size_t first = is_object ? members_.size() : values_.size();
    frames_.push_back({is_object, static_cast<uint32_t>(start), first, {}});
    return true;
  }

  bool close() {
    last_end_ = position();
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    JsonValue value = frame.is_object
                          ? JsonValue::object(take(members_, frame.first, frame.keys.bytes()))
                          : JsonValue::array(take(values_, frame.first, 0));
    value.offset_ = frame.start;
    return put(std::move(value), frame.start);
  }

  // Moves stack[first..] into a vector of its own.
  template <class T>
  std::vector<T> take(std::deque<T>& stack, size_t first, size_t table_bytes) {
    const auto begin = stack.begin() + static_cast<ptrdiff_t>(first);
    std::vector<T> out(std::make_move_iterator(begin), std::make_move_iterator(stack.end()));
    stack.erase(begin, stack.end());
    cost_ -= out.size() * sizeof(T) + table_bytes;
    if (!out.empty()) cost_ += sizeof(out) + 2 * kBlock;
    return out;
  }

  std::string_view text_;
  std::string_view where_;
  JsonLimits limits_;
  const char* seen_;     // how far the lexer has read
  size_t last_end_ = 0;  // the end of the last accepted token
  size_t cost_ = 0;      // bytes of the tree now
  JsonContext place_ = JsonContext::start;
  std::vector<Frame> frames_;
  std::deque<JsonValue> values_;
  std::deque<JsonValue::Member> members_;
  JsonValue root_;
  size_t fault_offset_ = 0;
  std::string message_;
};

Result<JsonValue> parse_json(std::string_view text, std::string_view where, JsonLimits limits) {
  // Offsets have 32 bits.
  const size_t most = std::min<size_t>(limits.max_bytes, UINT32_MAX - 1);
  if (text.size() > most) {
    return bad_file(cat(text.size(), " bytes of JSON; the limit is ", most), std::string(where));
  }
  if (text.substr(0, 3) == "\xEF\xBB\xBF") {
    return bad_file("starts with a byte order mark; save it as plain UTF-8", std::string(where), 0);
  }
  Result<JsonValue> value = JsonBuilder(text, where, limits).run();
  if (value.ok() || text.empty()) return value;
  const auto foreign = foreign_file(text, std::string(where));
  return foreign ? Result<JsonValue>(*foreign) : std::move(value);
}

}  // namespace loom::core
