// loom ps and stop: the models of a running server, over its HTTP interface.
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <memory>

#include "../shared/json_value.hpp"
#include "../shared/tls_flags.hpp"
#include "../shared/verbs.hpp"
#include "net/client.hpp"

namespace loom::cli {
namespace {

constexpr double kSeconds = 30;                 // of a call
constexpr size_t kMaxReply = size_t{16} << 20;  // bytes

struct StatusFlags {
  std::string host = "127.0.0.1", tls_ca, model;
  int64_t port = 8080;
  bool tls = false, json = false;
};

struct HttpAnswer {
  int status = 0;
  std::string body;
};

std::string address_of(const StatusFlags& f) {
  const bool encrypted = f.tls || !f.tls_ca.empty();
  return shown_address(f.host, static_cast<int>(f.port), encrypted ? "https://" : "http://");
}

Error no_server(const StatusFlags& f, const std::string& why) {
  return Error{Code::io_error,
               fmt::format("{}; `loom serve MODEL` starts a server, --host and --port say where "
                           "one is",
                           why),
               address_of(f), -1};
}

// The whole reply of a server that closes the connection after it.
Result<HttpAnswer> read_answer(core::NetClient& client, const StatusFlags& f) {
  std::string text;
  for (;;) {
    const Result<std::string> part = client.receive(kSeconds);
    if (!part.ok()) return no_server(f, part.error().message);
    if (part->empty()) break;
    text += *part;
    if (text.size() > kMaxReply) return no_server(f, "its reply has no end");
  }
  const size_t head = text.find("\r\n\r\n");
  if (!text.starts_with("HTTP/1.") || head == text.npos || text.size() < 12)
    return no_server(f, "another program answers there");
  return HttpAnswer{std::atoi(text.substr(9, 3).c_str()), text.substr(head + 4)};
}

Result<JsonValue> ask(const StatusFlags& f, std::string_view method, std::string_view path,
                      const std::string& body = {}) {
  core::TlsContext tls;
  if (f.tls || !f.tls_ca.empty()) {
    LOOM_ASSIGN(tls, core::tls_client({{}, {}, f.tls_ca}));
  }
  const Result<std::unique_ptr<core::NetClient>> client =
      core::NetClient::connect(f.host, static_cast<uint16_t>(f.port), tls, kSeconds);
  if (!client.ok()) return no_server(f, client.error().message);
  const char* key = std::getenv("LOOM_API_KEY");
  const std::string host = is_unix_host(f.host) ? "localhost" : f.host;
  std::string request =
      fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n",
                  method, path, host.find(':') == host.npos ? host : "[" + host + "]", body.size());
  if (!body.empty()) request += "Content-Type: application/json\r\n";
  if (key != nullptr && *key != '\0') request += fmt::format("Authorization: Bearer {}\r\n", key);
  const Status sent = (*client)->send(request + "\r\n" + body, kSeconds);
  if (!sent.ok()) return no_server(f, sent.error().message);
  LOOM_ASSIGN(const HttpAnswer answer, read_answer(**client, f));
  const Result<JsonValue> json = JsonValue::parse(answer.body, address_of(f));
  if (answer.status == 401)
    return Error{Code::io_error, "the server wants a key; set LOOM_API_KEY", address_of(f), -1};
  if (answer.status != 200 || !json.ok()) {
    const JsonValue* error = json.ok() ? json->find("error") : nullptr;
    const std::string says = error == nullptr ? "" : error->member_text("message") + error->text();
    return Error{Code::io_error,
                 fmt::format("the server answers {}{}{}", answer.status, says.empty() ? "" : ": ",
                             printable(says, 300)),
                 address_of(f), -1};
  }
  return *json;
}

// "in 4 min 10 s", "forever".
std::string until_text(const std::string& when) {
  std::tm parts{};
  if (std::sscanf(when.c_str(), "%d-%d-%dT%d:%d:%d", &parts.tm_year, &parts.tm_mon, &parts.tm_mday,
                  &parts.tm_hour, &parts.tm_min, &parts.tm_sec) != 6 ||
      parts.tm_year >= 9999)
    return "forever";
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  const int64_t left = std::max<int64_t>(timegm(&parts) - std::time(nullptr), 0);
  if (left >= 3600) return fmt::format("in {} h {:02} min", left / 3600, left / 60 % 60);
  if (left >= 60) return fmt::format("in {} min {:02} s", left / 60, left % 60);
  return fmt::format("in {} s", left);
}

struct RunningModel {
  std::string name, processor, until, expires;
  int64_t bytes = 0, context = 0;
};

Result<std::vector<RunningModel>> running_models(const StatusFlags& f) {
  LOOM_ASSIGN(const JsonValue json, ask(f, "GET", "/api/ps"));
  const JsonValue* models = json.find("models");
  if (models == nullptr || !models->is_array())
    return no_server(f, "another program answers there");
  std::vector<RunningModel> out;
  for (const JsonValue& one : models->elements()) {
    const auto number = [&](const char* name) {
      const JsonValue* value = one.find(name);
      return value == nullptr ? int64_t{0} : value->integer().value_or(0);
    };
    RunningModel model;
    model.name = one.member_text("name");
    model.bytes = number("size");
    model.context = number("context_length");
    model.processor = number("size_vram") > 0 ? "GPU" : "CPU";
    model.expires = one.member_text("expires_at");
    model.until = until_text(model.expires);
    out.push_back(std::move(model));
  }
  return out;
}

int run_ps(const StatusFlags& f) {
  const Result<std::vector<RunningModel>> models = running_models(f);
  if (!models.ok()) return fail(models.error());
  if (f.json) {
    Json list = Json::array();
    for (const RunningModel& one : *models)
      list.push(JsonObject()
                    .set("name", one.name)
                    .set("bytes", one.bytes)
                    .set("processor", one.processor)
                    .set("context", one.context)
                    .set("expires_at", one.expires)
                    .value());
    write_out(list.text() + "\n");
    return kDone;
  }
  if (models->empty()) {
    note("no model is in memory; a request loads one");
    return kDone;
  }
  size_t widest = 4;
  for (const RunningModel& one : *models) widest = std::max(widest, one.name.size());
  constexpr const char* kRow = "{:<{}}  {:>9}  {:<9}  {:>7}  {}";
  write_line(fmt::format(kRow, "NAME", widest, "SIZE", "PROCESSOR", "CONTEXT", "UNTIL"));
  for (const RunningModel& one : *models)
    write_line(fmt::format(kRow, one.name, widest, human_bytes(one.bytes), one.processor,
                           one.context, one.until));
  return kDone;
}

// Without its ending, and without ":latest".
std::string_view stem_of(std::string_view name) {
  for (const std::string_view end : {":latest", ".gguf", ".entity"})
    if (name.ends_with(end)) name.remove_suffix(end.size());
  return name;
}

int run_stop(const StatusFlags& f) {
  const Result<std::vector<RunningModel>> models = running_models(f);
  if (!models.ok()) return fail(models.error());
  std::vector<std::string> names, chosen;
  for (const RunningModel& one : *models) {
    names.push_back(one.name);
    if (f.model.empty() || stem_of(one.name) == stem_of(f.model)) chosen.push_back(one.name);
  }
  if (chosen.empty() && f.model.empty()) note("no model is in memory");
  if (chosen.empty() && !f.model.empty())
    return fail(kFailed,
                fmt::format("{} is not in memory; {}", printable(f.model, 100),
                            names.empty() ? "no model is" : "in memory: " + list_of(names)));
  for (const std::string& name : chosen) {
    const Json body = JsonObject().set("model", name).value();
    const Result<JsonValue> done = ask(f, "POST", "/models/unload", body.text());
    if (!done.ok()) return fail(done.error());
    note(
        fmt::format("{} leaves memory after its last text; the next request loads it again", name));
  }
  return kDone;
}

void add_address(const Command& verb, StatusFlags& f) {
  verb.option("--host", f.host, "Address of the server, or unix:PATH").show_default();
  verb.option("--port", f.port, "Its port").range(1, 65535).show_default();
  verb.flag("--tls", f.tls, "Encrypted, with the authorities that this machine trusts");
  verb.option("--tls-ca", f.tls_ca, "Encrypted; PEM file of the authorities that are trusted");
}

}  // namespace

Verb add_ps(Command app) {
  auto f = std::make_shared<StatusFlags>();
  const Command verb = app.command("ps", "List the models in the memory of a server.");
  verb.examples(
      "  loom ps\n"
      "  loom ps --port 11434 --json\n"
      "The key of a server that needs one is read from LOOM_API_KEY.");
  add_address(verb, *f);
  verb.flag("--json", f->json, "A JSON array instead of a table");
  return {verb, [f] { return run_ps(*f); }};
}

Verb add_stop(Command app) {
  auto f = std::make_shared<StatusFlags>();
  const Command verb = app.command("stop", "Unload a model of a server, or all of them.");
  verb.examples(
      "  loom stop stories.entity\n"
      "  loom stop --port 11434\n"
      "The server stays, and loads a model again on request. Ctrl-C or SIGTERM ends the server.");
  verb.option("MODEL", f->model, "Its name in loom ps (default: all)");
  add_address(verb, *f);
  return {verb, [f] { return run_stop(*f); }};
}

}  // namespace loom::cli
