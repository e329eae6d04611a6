// The server's API as an OpenAPI 3.1 document: the method and path of each route, and the fields of
// JSON bodies. https://spec.openapis.org/oas/v3.1.0
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "serve/dialects/dialects.hpp"
#include "serve/dialects/fields.hpp"

namespace loom::core {

JsonValue openapi_of(const std::vector<Route>& routes, std::string_view version);

// The schema of a body, from its table of fields. The kinds of JSON that a field accepts are found
// by trying samples. null counts as absent everywhere.
template <class T>
JsonValue schema_of(std::span<const BodyField<T>> table) {
  JsonValue properties = JsonValue::object();
  for (const BodyField<T>& field : table) {
    JsonValue kinds = list("null");
    for (const auto& [kind, samples] : json_samples()) {
      const bool taken = std::ranges::any_of(samples, [&](const JsonValue& sample) {
        T to{};
        return !field.take || field.take(sample, field.name, to).ok();
      });
      if (taken) kinds.push(json(kind));
    }
    const bool any = kinds.elements().size() == 1;  // no sample fits
    properties.add(std::string(field.name),
                   any ? JsonValue::object() : object("type", std::move(kinds)));
  }
  return object("type", "object", "properties", std::move(properties));
}

}  // namespace loom::core
