// Typed, strict access to the parts of tokenizer.json. Messages are built only when something is
// wrong.
#include "text/node.hpp"

#include <algorithm>

#include "base/result.hpp"
#include "base/text.hpp"
#include "text/normalizers/unicode.hpp"

namespace loom::core::text {
namespace {
constexpr size_t kMaxSteps = 64;  // of one pipeline; real ones have fewer than ten
}

Error Node::error(std::string message) const {
  return bad_file(std::move(message), where());
}

Error Node::error_at(std::string_view key, std::string message) const {
  return bad_file(std::move(message), path_of(key));
}

Error Node::not_supported(std::string_view key, std::string_view what) const {
  return unsupported(cat("'", printable(what), "' is not supported"), path_of(key));
}

std::string Node::join_path(std::string_view key) const {
  if (path_.empty()) return std::string(key);
  return cat(path_, ".", key);
}

Status Node::expect_keys(std::initializer_list<std::string_view> keys) const {
  if (!value_->is_object()) return error("expected an object");
  for (const auto& [key, value] : value_->members()) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      return error(cat("unknown key '", printable(key), "'"));
    }
  }
  return {};
}

bool Node::has_value(std::string_view key) const {
  const JsonValue* found = value_->find(key);
  return found != nullptr && !found->is_null();
}

Result<Node> Node::child(std::string_view key) const {
  const JsonValue* found = value_->find(key);
  if (found == nullptr) return error(cat("'", key, "' is missing"));
  return Node(*found, file_, join_path(key));
}

Result<std::vector<Node>> Node::elements(std::string_view key) const {
  LOOM_ASSIGN(const Node list, child(key));
  if (!list.value().is_array()) return list.error("expected an array");
  std::vector<Node> nodes;
  for (const JsonValue& element : list.value().elements()) {
    nodes.emplace_back(element, file_, cat(list.path_, "[", nodes.size(), "]"));
  }
  return nodes;
}

Result<std::string> Node::string(std::string_view key) const {
  LOOM_ASSIGN(const Node node, child(key));
  if (!node.value().is_string()) return node.error("expected a string");
  return node.value().text();
}

Result<std::string> Node::string_or(std::string_view key, std::string_view otherwise) const {
  if (!has_value(key)) return std::string(otherwise);
  return string(key);
}

Result<bool> Node::boolean(std::string_view key) const {
  LOOM_ASSIGN(const Node node, child(key));
  if (!node.value().is_bool()) return node.error("expected true or false");
  return node.value().as_bool(node.where());
}

Result<bool> Node::boolean_or(std::string_view key, bool otherwise) const {
  if (!has_value(key)) return otherwise;
  return boolean(key);
}

Result<char32_t> Node::character(std::string_view key) const {
  LOOM_ASSIGN(const std::string text, string(key));
  const char32_t c = only_code_point(text);
  if (c == 0) return error_at(key, "expected a string of one character");
  return c;
}

Result<int64_t> Node::count(std::string_view key) const {
  LOOM_ASSIGN(const Node node, child(key));
  if (node.value().is_int()) {
    const Result<int64_t> value = node.value().as_int(node.where());
    if (value.ok() && *value >= 0) return *value;
  }
  return node.error("expected an integer >= 0");
}

Result<int32_t> Node::token_id(std::string_view key) const {
  LOOM_ASSIGN(const Node node, child(key));
  return node.as_token_id();
}

Result<int32_t> Node::as_token_id() const {
  if (value_->is_int()) {
    const Result<int64_t> value = value_->as_int({});
    if (value.ok() && *value >= 0 && *value <= kMaxTokenId) return static_cast<int32_t>(*value);
  }
  return error(cat("expected a token id from 0 to ", kMaxTokenId));
}

Status flatten_sequence(const Node& node, std::string_view list_key, std::vector<Node>& out) {
  if (!node.value().is_object()) return node.error("expected an object");
  LOOM_ASSIGN(const std::string type, node.string("type"));
  if (type != "Sequence") {
    if (out.size() >= kMaxSteps) return node.error(cat("more than ", kMaxSteps, " steps"));
    out.push_back(node);
    return {};
  }
  LOOM_TRY(node.expect_keys({"type", list_key}));
  LOOM_ASSIGN(const std::vector<Node> parts, node.elements(list_key));
  for (const Node& part : parts) LOOM_TRY(flatten_sequence(part, list_key, out));
  return {};
}

}  // namespace loom::core::text
