#include "serve/dialects/openapi.hpp"

#include "base/text.hpp"

namespace loom::core {
namespace {

JsonValue answer(std::string_view words, bool json_body) {
  JsonValue out = object("description", words);
  if (json_body) out.add("content", object("application/json", object("schema", true)));
  return out;
}

// Replies that any route may have, besides its own.
JsonValue answers(const Route& route) {
  const bool reads = route.method == "POST";
  JsonValue out = object("200", answer("The requested result.", true));
  if (route.path == "/favicon.ico") out = object("204", answer("There is none.", false));
  if (reads) {
    for (const auto& [status, words] :
         {std::pair("400", "A field is missing, or holds what it cannot."),
          std::pair("413", "The body is too large."),
          std::pair("415", "The body is not application/json."),
          std::pair("429", "As many requests wait as may.")})
      out.add(status, answer(words, true));
  }
  out.add("401", answer("A key is needed.", true));
  out.add("403", answer("The Host or Origin of the request is not known here.", true));
  out.add("404", answer("There is no such model.", true));
  out.add("501", answer("It is switched off.", true));
  out.add("503", answer("The server stops.", true));
  return out;
}

JsonValue operation(const Route& route) {
  JsonValue out = object("responses", answers(route));
  if (route.method == "POST") {
    JsonValue schema = route.body ? route.body() : object("type", "object");
    out.add("requestBody", object("required", true, "content",
                                  object("application/json", object("schema", std::move(schema)))));
  }
  JsonValue parameters = JsonValue::array();
  if (route.path.ends_with('*')) {
    parameters.push(object("name", "name", "in", "path", "required", true, "schema",
                           object("type", "string", "minLength", 1)));
  }
  for (const QueryField& field : route.query) {
    JsonValue schema = object("type", "string");
    JsonValue values = JsonValue::array();
    for (const std::string_view value : field.values) values.push(json(value));
    if (!field.values.empty()) schema.add("enum", std::move(values));
    parameters.push(object("name", field.name, "in", "query", "required", field.required, "schema",
                           std::move(schema)));
  }
  if (!parameters.elements().empty()) out.add("parameters", std::move(parameters));
  if (route.open) out.add("security", JsonValue::array());
  return out;
}

}  // namespace

const std::vector<std::pair<const char*, std::vector<JsonValue>>>& json_samples() {
  static const std::vector<std::pair<const char*, std::vector<JsonValue>>> samples = {
      {"boolean", {json(true), json(false)}},
      {"integer", {json(int64_t{1}), json(int64_t{0}), json(int64_t{-1})}},
      {"number", {json(0.5)}},
      {"string", {json("text"), json("auto"), json("none"), json("json"), json("")}},
      {"array", {JsonValue::array(), list("a"), list(int64_t{1})}},
      {"object",
       {JsonValue::object(), object("type", "text"), object("type", "object"),
        object("format", object("type", "text"))}}};
  return samples;
}

JsonValue openapi_of(const std::vector<Route>& routes, std::string_view version) {
  JsonValue paths = JsonValue::object();
  std::vector<std::string> done;
  for (const Route& first : routes) {
    if (std::ranges::find(done, first.path) != done.end()) continue;
    done.push_back(first.path);
    JsonValue item = JsonValue::object();
    for (const Route& route : routes) {
      if (route.path == first.path) item.add(to_lower_ascii(route.method), operation(route));
    }
    std::string path = first.path;
    if (path.ends_with('*')) path = path.substr(0, path.size() - 1) + "{name}";
    paths.add(path, std::move(item));
  }
  JsonValue schemes = object("key", object("type", "http", "scheme", "bearer"));
  return object("openapi", "3.1.0", "info",
                object("title", "loom serve", "version", version, "description",
                       "A language model for programs that speak to OpenAI, Anthropic, Ollama or "
                       "llama.cpp."),
                "paths", std::move(paths), "components",
                object("securitySchemes", std::move(schemes)), "security",
                list(JsonValue::object(), object("key", JsonValue::array())));
}

}  // namespace loom::core
