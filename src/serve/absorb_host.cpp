#include "serve/absorb_host.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <random>
#include <span>

#include "api/network/bridge_stream.hpp"
#include "base/text.hpp"
#include "io/bytes/sha256.hpp"
#include "io/json/json.hpp"
#include "loom/absorb.hpp"
#include "loom/files.hpp"
#include "loom/session.hpp"
#include "net/address.hpp"
#include "serve/dialects/fields.hpp"
#include "serve/http/guard.hpp"
#include "serve/http/http_head.hpp"
#include "serve/model_files.hpp"

namespace loom::core {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStreamType = "application/vnd.loom.bridge+binary";
constexpr std::string_view kRunSchema = "bridge.run/2";
constexpr int64_t kMaxSamples = 4096;  // maximum samples per session

// ---- replies ------------------------------------------------------------------------------------

struct Problem {
  int status;
  std::string code, message, hint;
};

std::string problem_json(const Problem& problem, std::string_view path, JsonValue more = {}) {
  JsonValue out = object("code", problem.code, "message", problem.message, "path",
                         std::string(path), "hint", problem.hint);
  for (const JsonValue::Member& member : more.members()) out.add(member.first, member.second);
  return dump_json(out);
}

void send_problem(HttpReply& reply, const HttpRequest& request, const Problem& problem,
                  JsonValue more = {}, HttpHeaders headers = {}) {
  headers.emplace_back("Content-Type", "application/problem+json");
  reply.send(problem.status, std::move(headers),
             problem_json(problem, printable(request.path), std::move(more)));
}

void send_object(HttpReply& reply, int status, const JsonValue& value) {
  reply.send(status, {{"Content-Type", "application/json"}}, dump_json(value));
}

Problem problem_of(const Error& error) {
  std::string code(code_name(error.code));
  std::ranges::replace(code, ' ', '_');
  switch (error.code) {
    case Code::not_found: return {404, code, error.str(), "POST /v2/streams makes entities"};
    case Code::unsupported:
      return {422, code, error.str(), "absorb(..., plan_only=True) lists all that has no rule"};
    case Code::bad_file: return {400, code, error.str(), "send what loom.bridge.stream() wrote"};
    case Code::out_of_memory: return {503, code, error.str(), "try smaller inputs, or later"};
    case Code::io_error:
    case Code::internal: return {500, code, error.str(), "see the machine that this runs on"};
    default: return {400, code, error.str(), "see docs/absorb.md"};
  }
}

// ---- requests -----------------------------------------------------------------------------------

// A request on the compute thread, with what its handlers need.
struct AbsorbCall {
  const Engine& engine;
  const AbsorbHostOptions& options;
  HttpRequest request;
  std::vector<std::string> words;  // path segments without the first: "streams", "NAME", "plan"
  std::shared_ptr<HttpReply> reply;
};

Status check_id(std::string_view id) {
  if (is_entity_id(id)) return {};
  return invalid(cat("'", printable(id),
                     "' names no entity: 1 to 128 of A-Z, a-z, 0-9, '.', '_' and '-', and no '.' "
                     "before it"));
}

// The path of an entity. An existing one must be a regular file in the folder, not a link.
Result<std::string> place_of(const AbsorbHostOptions& options, const std::string& id, bool there) {
  LOOM_TRY(check_id(id));
  const fs::path path = fs::path(options.folder) / (id + ".entity");
  std::error_code failed;
  const fs::file_status status = fs::symlink_status(path, failed);
  if (!fs::exists(status) && there)
    return Error{Code::not_found, cat("there is no entity ", id), {}, -1};
  if (fs::exists(status) && !fs::is_regular_file(status))
    return Error{Code::not_found, cat("entity ", id, " is not a file"), {}, -1};
  return path.string();
}

Result<Network> entity_of(const AbsorbCall& call, const std::string& id) {
  LOOM_ASSIGN(const std::string path, place_of(call.options, id, true));
  LoadOptions options;
  options.engine = call.engine;
  return Network::load(path, options);
}

std::string id_in(std::string_view query) {
  constexpr std::string_view kId = "id=";
  return std::string(query.starts_with(kId) ? query.substr(kId.size()) : std::string_view());
}

// The stored report of a proof, as an object.
Result<JsonValue> report_of(const ProofReport& proof) {
  return parse_json(proof.json(), "the proof");
}

Status send_health(const AbsorbCall& call) {
  send_object(*call.reply, 200,
              object("status", "ok", "engine_version", call.engine.info().version, "schemas",
                     list("bridge.stream/2", std::string(kRunSchema))));
  return {};
}

Status take_stream(const AbsorbCall& call) {
  const std::span<const std::byte> body = std::as_bytes(std::span(call.request.body));
  std::string id = id_in(call.request.query);
  const bool named = !id.empty();
  if (!named) id = sha256_of(body).substr(0, 32);
  LOOM_ASSIGN(const std::string path, place_of(call.options, id, false));
  std::error_code failed;
  if (named && fs::exists(path, failed)) {
    send_problem(*call.reply, call.request,
                 {409, "exists", cat("there is an entity ", id), "take another id"});
    return {};
  }
  LoadOptions options;
  options.engine = call.engine;
  LOOM_ASSIGN(const Absorbed got, absorb_stream(body, options));
  LOOM_ASSIGN(JsonValue report, report_of(got.proof));
  if (!got.proof.holds) {
    send_problem(*call.reply, call.request,
                 {422, "mismatch", got.proof.text(), "nothing is kept; see the report"},
                 object("report", std::move(report)));
    return {};
  }
  LOOM_ASSIGN(const std::string entity, got.network.save_bytes(NetworkFormat::entity));
  LOOM_TRY(write_file(path, entity));
  send_object(
      *call.reply, 201,
      object("stream_id", id, "entity_id", id, "name", got.name, "report", std::move(report)));
  return {};
}

Status send_plan(const AbsorbCall& call) {
  LOOM_ASSIGN(const Network network, entity_of(call, call.words[1]));
  call.reply->send(200, {{"Content-Type", "application/json"}}, network.json());
  return {};
}

Status send_entity(const AbsorbCall& call) {
  LOOM_ASSIGN(const std::string path, place_of(call.options, call.words[1], true));
  LOOM_ASSIGN(std::string bytes, read_file(path, uint64_t{1} << 40));
  call.reply->send(200, {{"Content-Type", "application/octet-stream"}}, std::move(bytes));
  return {};
}

Status send_comparison(const AbsorbCall& call) {
  if (call.words[2] != "native" || call.words[3] != "engine") {
    return Error{Code::not_found,
                 cat("kept are the results native and engine, in this order; not ",
                     printable(call.words[2]), " and ", printable(call.words[3])),
                 {},
                 -1};
  }
  LOOM_ASSIGN(const Network network, entity_of(call, call.words[1]));
  LOOM_ASSIGN(const ProofReport proof, verify_proof(network));
  LOOM_ASSIGN(const JsonValue report, report_of(proof));
  send_object(*call.reply, 200, report);
  return {};
}

// Runs the proof of an entity again; a JSON body names it.
Status run_fixture(const AbsorbCall& call) {
  LOOM_ASSIGN(const JsonValue body, parse_json(call.request.body, "the body"));
  const JsonValue* id = body.find("entity_id");
  const JsonValue* fixture = body.find("fixture");
  if (id == nullptr || fixture == nullptr || fixture->text() != "proof")
    return invalid("the body must be {\"entity_id\": NAME, \"fixture\": \"proof\"}");
  LOOM_ASSIGN(const Network network, entity_of(call, id->text()));
  LOOM_ASSIGN(const ProofReport proof, verify_proof(network));
  LOOM_ASSIGN(const JsonValue report, report_of(proof));
  send_object(*call.reply, 200, report);
  return {};
}

// Inputs and outputs are in the container format.
Status run_inputs(const AbsorbCall& call) {
  LOOM_ASSIGN(
      const BridgeReader asked,
      BridgeReader::open(std::as_bytes(std::span(call.request.body)), kRunSchema, "the inputs"));
  LOOM_ASSIGN(const std::string id, asked.text(asked.manifest(), "entity_id"));
  LOOM_ASSIGN(const std::vector<Tensor> inputs, asked.tensors(asked.manifest(), "inputs"));
  LOOM_ASSIGN(const Network network, entity_of(call, id));
  if (inputs.size() != network.info().inputs.size()) {
    return invalid(
        cat(id, " takes ", network.info().inputs.size(), " inputs, got ", inputs.size()));
  }
  SessionOptions options;
  options.max_batch =
      std::clamp<int64_t>(inputs[0].rank() > 0 ? inputs[0].shape()[0] : 1, 1, kMaxSamples);
  LOOM_ASSIGN(Session session, network.session(options));
  LOOM_ASSIGN(const std::vector<Tensor> outputs, session.run(inputs));
  LOOM_TRY(check_model_files());  // while its map exists
  BridgeWriter writer;
  JsonValue described = JsonValue::array();
  for (const Tensor& output : outputs) described.push(writer.add(output));
  call.reply->send(200, {{"Content-Type", std::string(kStreamType)}},
                   writer.sealed(object("schema", std::string(kRunSchema), "entity_id", id,
                                        "outputs", std::move(described))));
  return {};
}

Status run_entity(const AbsorbCall& call) {
  const bool json = media_type(call.request.header("Content-Type")) == "application/json";
  return json ? run_fixture(call) : run_inputs(call);
}

// "*" matches one segment of the path. A body of another type than these is refused, because a web
// page could send it without a preflight request.
struct AbsorbRoute {
  std::string_view method;
  std::vector<std::string_view> words;
  Status (*handle)(const AbsorbCall&);
  std::vector<std::string_view> types = {};
};

const std::vector<AbsorbRoute>& absorb_routes() {
  static const std::vector<AbsorbRoute> kRoutes = {
      {"GET", {"health"}, send_health},
      {"POST", {"streams"}, take_stream, {kStreamType}},
      {"GET", {"streams", "*", "plan"}, send_plan},
      {"POST", {"runs"}, run_entity, {kStreamType, "application/json"}},
      {"GET", {"compare", "*", "*", "*"}, send_comparison},
      {"GET", {"entities", "*"}, send_entity}};
  return kRoutes;
}

bool has_words(const AbsorbRoute& route, const std::vector<std::string>& words) {
  return std::ranges::equal(route.words, words,
                            [](std::string_view expected, std::string_view word) {
                              return expected == "*" || expected == word;
                            });
}

// "/v2/streams/a/plan" as streams, a, plan; empty if it is not below /v2.
std::vector<std::string> words_of_path(std::string_view path) {
  constexpr std::string_view kBegin = "/v2/";
  std::vector<std::string> out;
  if (!path.starts_with(kBegin)) return out;
  for (size_t at = kBegin.size(); at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    out.emplace_back(path.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

std::string new_token() {
  std::random_device device;
  std::array<uint32_t, 8> words;
  for (uint32_t& word : words) word = device();
  return hex_text(std::as_bytes(std::span(words)));
}

std::string refusal_json(std::string_view /*path*/, int status, std::string_view message) {
  return problem_json({status, status == 413 || status == 431 ? "too_large" : "bad_request",
                       std::string(message), "see loom absorb --help"},
                      "");
}

}  // namespace

bool is_entity_id(std::string_view id) {
  constexpr std::string_view kAllowed =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  return !id.empty() && id.size() <= 128 && id.front() != '.' &&
         id.find_first_not_of(kAllowed) == std::string_view::npos;
}

Result<std::unique_ptr<AbsorbHost>> AbsorbHost::start(const Engine& engine,
                                                      const AbsorbHostOptions& options) {
  if (!is_loopback(options.address)) {
    return invalid(cat("others could reach ", printable(options.address),
                       "; this host listens at 127.0.0.1 or ::1 alone"));
  }
  std::error_code failed;
  const fs::path folder = fs::canonical(options.folder, failed);
  if (failed || !fs::is_directory(folder, failed))
    return Error{Code::not_found, "there is no such folder to keep entities in", options.folder,
                 -1};
  std::unique_ptr<AbsorbHost> made(new AbsorbHost(engine, options));
  AbsorbHost* host = made.get();
  host->options_.folder = folder.string();
  if (host->options_.token.empty()) host->options_.token = new_token();
  LOOM_ASSIGN(host->http_, HttpServer::listen(
                               options.address, static_cast<uint16_t>(options.port), options.http,
                               [host](HttpRequest request, std::shared_ptr<HttpReply> reply) {
                                 host->handle(std::move(request), std::move(reply));
                               },
                               refusal_json));
  host->reader_ = std::thread([host] { host->http_->run(); });
  return made;
}

AbsorbHost::~AbsorbHost() {
  if (http_ != nullptr) http_->refuse_more();
  work_.stop();
  if (reader_.joinable()) {
    // Sends the last replies, if clients take them.
    http_->finish(std::chrono::seconds(1));
    reader_.join();
  }
  http_.reset();
}

// Refuses host names that a web page could have pointed here (DNS rebinding).
bool AbsorbHost::may_ask(const HttpRequest& request, HttpReply& reply) const {
  const std::string host = host_name(request.header("Host"));
  const std::string_view origin = request.header("Origin");
  const bool ours = host == "localhost" || (is_number(host) && is_loopback(host));
  if (!ours || (!origin.empty() && !is_local_page(origin))) {
    send_problem(reply, request,
                 {403, "forbidden",
                  ours ? cat("pages of ", printable(origin), " may not ask")
                       : cat("this host is not called ", printable(host)),
                  "ask at 127.0.0.1, from this machine"});
    return false;
  }
  if (same_secret(bearer_token(request.header("Authorization")), options_.token)) return true;
  send_problem(reply, request,
               {401, "unauthorized", "the token is missing or another one",
                "send the token that was printed at start: \"Authorization: Bearer TOKEN\""},
               {}, {{"WWW-Authenticate", "Bearer"}});
  return false;
}

void AbsorbHost::handle(HttpRequest request, std::shared_ptr<HttpReply> reply) {
  if (!may_ask(request, *reply)) return;
  std::vector<std::string> words = words_of_path(request.path);
  const std::string method = request.method == "HEAD" ? "GET" : request.method;
  const AbsorbRoute* found = nullptr;
  std::vector<std::string> verbs;
  for (const AbsorbRoute& route : absorb_routes()) {
    if (!has_words(route, words)) continue;
    verbs.emplace_back(route.method);
    if (route.method == method) found = &route;
  }
  if (found == nullptr && verbs.empty())
    return send_problem(*reply, request,
                        {404, "not_found", cat("nothing is at ", printable(request.path)),
                         "see loom absorb --help"});
  if (found == nullptr) {
    return send_problem(*reply, request,
                        {405, "method_not_allowed", cat("it takes ", join(verbs, ", ")), ""}, {},
                        {{"Allow", join(verbs, ", ")}});
  }
  const std::string type = media_type(request.header("Content-Type"));
  if (!found->types.empty() && std::ranges::find(found->types, type) == found->types.end()) {
    std::vector<std::string> types(found->types.begin(), found->types.end());
    return send_problem(*reply, request,
                        {415, "media_type", cat("the body must be ", join(types, " or ")),
                         "say so in Content-Type"});
  }
  const auto call = std::make_shared<AbsorbCall>(
      AbsorbCall{engine_, options_, std::move(request), std::move(words), reply});
  const bool taken = work_.add([call, found] {
    if (call->reply->gone()) return;
    const Status done = found->handle(*call);
    if (done.ok()) return;
    JsonValue more;
    if (done.error().code == Code::unsupported) {
      more = object("problems",
                    list(object("path", done.error().where, "message", done.error().message)));
    }
    send_problem(*call->reply, call->request, problem_of(done.error()), std::move(more));
  });
  if (!taken) {
    send_problem(*reply, call->request,
                 {503, "busy", "as many requests wait as may", "try again in a moment"});
  }
}

}  // namespace loom::core
