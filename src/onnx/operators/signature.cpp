// Reads the texts of signature.hpp. They are constants of the rows, so nothing is checked here;
// tests/interpreter/signature_test.cpp checks all of them.
#include "onnx/operators/signature.hpp"

#include <algorithm>

namespace loom::core::evaluate {
namespace {

constexpr size_t kMaxOutputs = 4096;

std::string_view take(std::string_view& text, char end) {
  const size_t n = std::min(text.find(end), text.size());
  const std::string_view out = text.substr(0, n);
  text.remove_prefix(std::min(n + 1, text.size()));
  return out;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

int64_t number(std::string_view digits) {
  int64_t n = 0;
  for (const char c : digits) n = 10 * n + (c - '0');
  return n;
}

}  // namespace

char Version::letter(size_t input) const {
  const size_t at = std::min(input, inputs - 1);
  return letters[at < min_inputs ? at : at + 1];
}

std::optional<Version> next_version(std::string_view& signature) {
  if (signature.empty()) return {};
  std::string_view rest = take(signature, '|');
  Version v;
  if (is_digit(rest[0])) v.since = number(take(rest, ' '));
  std::string_view result = take(rest, ' ');
  v.attributes = rest;
  v.letters = take(result, '>');
  if (!result.empty()) {
    v.result = result[0];
    const std::string_view count = result.substr(1);
    if (!count.empty()) v.outputs = count == "+" ? kMaxOutputs : static_cast<size_t>(number(count));
  }
  v.repeats = v.letters.ends_with('+');
  if (v.repeats) v.letters.remove_suffix(1);
  if (v.letters == ".") v.letters = {};
  v.min_inputs = std::min(v.letters.find('?'), v.letters.size());
  v.inputs = v.letters.size() - (v.min_inputs < v.letters.size() ? 1 : 0);
  return v;
}

std::optional<AttributeRule> next_attribute(std::string_view& attributes) {
  if (attributes.empty()) return {};
  std::string_view kind = take(attributes, ' ');
  AttributeRule rule;
  rule.name = take(kind, ':');
  if (!kind.empty()) rule.kind = kind[0];
  rule.required = kind.ends_with('!');
  return rule;
}

std::optional<Version> version_at(std::string_view signature, int64_t opset) {
  std::optional<Version> found;
  while (const std::optional<Version> v = next_version(signature)) {
    if (v->since <= opset) found = v;
  }
  return found && found->result != 0 ? found : std::nullopt;
}

InputCount input_count(std::string_view signature) {
  InputCount out{1 << 16, 0};
  while (const std::optional<Version> v = next_version(signature)) {
    out.min = std::min(out.min, static_cast<int>(v->min_inputs));
    out.max = v->repeats || out.max < 0 ? -1 : std::max(out.max, static_cast<int>(v->inputs));
  }
  return out;
}

}  // namespace loom::core::evaluate
