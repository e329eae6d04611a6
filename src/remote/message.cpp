#include "remote/message.hpp"

#include <limits>

#include "base/text.hpp"
#include "remote/frame.hpp"

namespace loom::core {
namespace {

constexpr int kDonateDepth = 16;

const JsonValue* donate_field(const JsonValue& message, std::string_view name) {
  const JsonValue* found = message.find(name);
  return found == nullptr || found->is_null() ? nullptr : found;
}

Error wrong_field(std::string_view name, std::string_view expected, const JsonValue* got) {
  return invalid(cat(name, " must be ", expected, "; got ",
                     got == nullptr ? std::string("nothing") : got->describe()));
}

}  // namespace

JsonValue donate_message(std::string_view type) {
  JsonValue out = JsonValue::object();
  out.add("v", JsonValue::integer(kDonateVersion));
  out.add("type", JsonValue::string(std::string(type)));
  return out;
}

JsonValue donate_error(std::string_view what) {
  JsonValue out = donate_message("error");
  out.add("error", JsonValue::string(std::string(what)));
  return out;
}

Result<JsonValue> read_donate_message(std::string_view frame) {
  LOOM_ASSIGN(JsonValue message,
              parse_json(frame, "the message", {kDonateFrameMost, kDonateDepth}));
  if (!message.is_object())
    return bad_file(cat("a message must be a JSON object; got ", message.describe()));
  LOOM_TRY(donate_count(message, "v", kDonateVersion, kDonateVersion, 0));
  if (donate_field(message, "v") == nullptr) return wrong_field("v", "1", nullptr);
  const JsonValue* type = donate_field(message, "type");
  if (type == nullptr || !type->is_string()) return wrong_field("type", "a text", type);
  return message;
}

std::string_view donate_type(const JsonValue& message) {
  const JsonValue* type = message.find("type");
  return type == nullptr ? std::string_view() : std::string_view(type->text());
}

Result<std::string> donate_text(const JsonValue& message, std::string_view field, size_t most) {
  const JsonValue* value = donate_field(message, field);
  if (value == nullptr || !value->is_string() || value->text().empty() ||
      value->text().size() > most)
    return wrong_field(field, cat("a text of 1 to ", most, " bytes"), value);
  return value->text();
}

Result<int64_t> donate_count(const JsonValue& message, std::string_view field, int64_t low,
                             int64_t high, int64_t otherwise) {
  const JsonValue* value = donate_field(message, field);
  if (value == nullptr) return otherwise;
  const Result<int64_t> number = value->as_int(field);
  if (!number.ok() || *number < low || *number > high) {
    return wrong_field(field, low == high ? cat(low) : cat("an integer from ", low, " to ", high),
                       value);
  }
  return *number;
}

Result<bool> donate_flag(const JsonValue& message, std::string_view field) {
  const JsonValue* value = donate_field(message, field);
  if (value == nullptr) return false;
  if (!value->is_bool()) return wrong_field(field, "true or false", value);
  return value->as_bool(field);
}

Result<std::vector<int32_t>> donate_ids(const JsonValue& message, std::string_view field) {
  constexpr std::string_view kWanted = "a list of token ids, integers from 0 to 2147483647";
  const JsonValue* value = donate_field(message, field);
  if (value == nullptr || !value->is_array()) return wrong_field(field, kWanted, value);
  std::vector<int32_t> ids;
  ids.reserve(value->elements().size());
  for (const JsonValue& one : value->elements()) {
    const Result<int64_t> id = one.as_int(field);
    if (!id.ok() || *id < 0 || *id > std::numeric_limits<int32_t>::max())
      return wrong_field(field, kWanted, &one);
    ids.push_back(static_cast<int32_t>(*id));
  }
  return ids;
}

JsonValue donate_list(const std::vector<int32_t>& ids) {
  JsonValue out = JsonValue::array();
  for (const int32_t id : ids) out.push(JsonValue::integer(id));
  return out;
}

}  // namespace loom::core
