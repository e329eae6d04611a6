// A JSON value with its path, for strict reading of tokenizer.json. A key of the wrong type and an
// unknown key are Errors that name the path.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "io/json/json.hpp"
#include "text/tokenizer_spec.hpp"

namespace loom::core::text {

class Node {
 public:
  // `path` is empty for the root of the file called `file`.
  Node(const JsonValue& value, std::string file, std::string path)
      : value_(&value), file_(std::move(file)), path_(std::move(path)) {}

  const JsonValue& value() const { return *value_; }
  // "tokenizer.json: model.vocab"
  std::string where() const { return path_.empty() ? file_ : file_ + ": " + path_; }
  std::string path_of(std::string_view key) const { return file_ + ": " + join_path(key); }
  Error error(std::string message) const;  // bad_file here
  Error error_at(std::string_view key, std::string message) const;
  Error not_supported(std::string_view key, std::string_view what) const;

  // Refuses a value that is not an object, and keys that are not in the list.
  Status expect_keys(std::initializer_list<std::string_view> keys) const;

  bool has(std::string_view key) const { return value_->find(key) != nullptr; }
  // Present and not null.
  bool has_value(std::string_view key) const;
  Result<Node> child(std::string_view key) const;                  // an Error when absent
  Result<std::vector<Node>> elements(std::string_view key) const;  // of a member that is an array

  Result<std::string> string(std::string_view key) const;
  Result<std::string> string_or(std::string_view key,
                                std::string_view otherwise) const;  // absent or null
  Result<bool> boolean(std::string_view key) const;
  Result<bool> boolean_or(std::string_view key, bool otherwise) const;
  Result<char32_t> character(std::string_view key) const;  // a string of one code point
  Result<int64_t> count(std::string_view key) const;       // an integer >= 0
  Result<int32_t> token_id(std::string_view key) const;
  Result<int32_t> as_token_id() const;

 private:
  std::string join_path(std::string_view key) const;
  const JsonValue* value_;
  std::string file_, path_;
};

// The members of a "Sequence" component, flattened: {"type": "Sequence", list_key: [...]} may nest.
// Another component is returned itself.
Status flatten_sequence(const Node& node, std::string_view list_key, std::vector<Node>& out);

}  // namespace loom::core::text
