// ConfigFields: typed reading of one JSON object of settings, with ranges. null counts as absent.
// Every Error names the field. Reading an absent field leaves `out` unchanged: the caller sets the
// default.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.hpp"
#include "io/json/json.hpp"

namespace loom::core {

class ConfigFields {
 public:
  // `object` must outlive this. `prefix` comes before field names in messages: "rope_scaling.".
  ConfigFields(const JsonValue& object, std::string where, std::string prefix = {})
      : object_(object), where_(std::move(where)), prefix_(std::move(prefix)) {}

  const JsonValue* find(std::string_view key) const;
  bool has_key(std::string_view key) const { return object_.find(key) != nullptr; }

  Status read(std::string_view key, bool& out) const;
  Status read(std::string_view key, std::string& out) const;
  Status read(std::string_view key, int64_t& out, int64_t min, int64_t max) const;
  Status read(std::string_view key, double& out, double min, double max) const;
  Status require(std::string_view key) const;

  // "where: at byte N: prefix key: message"
  Error error(Code code, std::string_view key, std::string_view message) const;
  Error bad(std::string_view key, std::string_view message) const {
    return error(Code::bad_file, key, message);
  }
  Error refuse(std::string_view key, std::string_view message) const {
    return error(Code::unsupported, key, message);
  }

 private:
  Error unexpected(std::string_view key, std::string_view expected) const;

  const JsonValue& object_;
  std::string where_;
  std::string prefix_;
};

}  // namespace loom::core
