// The list of models as OpenAI has it.
#include <algorithm>

#include "base/text.hpp"
#include "serve/dialects/dialects.hpp"
#include "serve/dialects/fields.hpp"

namespace loom::core {
namespace {

const char* state_name(Models::State state) {
  return state == Models::State::loaded    ? "loaded"
         : state == Models::State::loading ? "loading"
                                           : "unloaded";
}

JsonValue model_row(const Models& models, const Models::Row& row) {
  JsonValue out =
      object("id", std::string_view(row.name), "object", "model", "created", models.started(),
             "owned_by", "loom", "status", object("value", state_name(row.state)));
  JsonValue aliases = list(std::string_view(row.name)), tags = JsonValue::array();
  for (const std::string& alias : row.aliases) aliases.push(json(std::string_view(alias)));
  for (const std::string& tag : row.tags) tags.push(json(std::string_view(tag)));
  add_members(out, "aliases", std::move(aliases), "tags", std::move(tags));
  if (!row.parameters.empty()) out.add("parameters", json(std::string_view(row.parameters)));
  if (row.service == nullptr) return out;
  const ModelInfo& info = row.service->model().info();
  out.add("meta", object("n_ctx_train", info.context, "n_ctx", row.service->scheduler().context(),
                         "n_vocab", info.vocab, "n_embd", info.width, "n_params", info.parameters,
                         "size", info.bytes, "dtype", loom::dtype_name(info.dtype)));
  return out;
}

void models(const Call& call) {
  JsonValue rows = JsonValue::array();
  for (const Models::Row& row : call.models.list()) rows.push(model_row(call.models, row));
  send_json(*call.reply, 200, object("object", "list", "data", std::move(rows)));
}

void one_model(const Call& call) {
  const std::string name = call.request.path.substr(std::string_view("/v1/models/").size());
  std::vector<std::string> names;
  for (const Models::Row& row : call.models.list()) {
    const bool called = std::ranges::find(row.aliases, name) != row.aliases.end();
    if (row.name == name || called) return send_json(*call.reply, 200, model_row(call.models, row));
    names.push_back(row.name);
  }
  send_error(*call.reply, openai_errors(),
             make_error(Code::not_found,
                        cat("no model ", printable(name), "; there is ", join(names, ", "))));
}

}  // namespace

void add_openai_models(std::vector<Route>& routes) {
  for (const char* path : {"/v1/models", "/models"}) routes.push_back({"GET", path, true, models});
  routes.push_back({"GET", "/v1/models/*", true, one_model});
}

}  // namespace loom::core
