// Anthropic's messages, streamed or whole, and the counting of their tokens.
#include "base/text.hpp"
#include "serve/dialects.hpp"
#include "serve/text_fields.hpp"

namespace loom::core {
namespace {

struct Request {
  TextRequest text;
  const JsonValue* messages = nullptr;
  std::string system;
};

Status take_system(const JsonValue& value, std::string_view name, Request& to) {
  LOOM_ASSIGN(to.system, content_text(value, name));
  return {};
}

Status take_thinking(const JsonValue& value, std::string_view name, Request&) {
  const JsonValue* type = value.find("type");
  return type != nullptr && type->text() == "disabled" ? Status() : must_be_off(value, name);
}

const std::vector<BodyField<Request>>& fields() {
  static const std::vector<BodyField<Request>> table = {
      kept_field("messages", &Request::messages),
      {"system", take_system},
      text_field<Request>("max_tokens", take_max_tokens),
      text_field<Request>("temperature", take_temperature),
      text_field<Request>("top_k", take_top_k),
      text_field<Request>("top_p", take_top_p),
      text_field<Request>("seed", take_seed),
      text_field<Request>("stop_sequences", take_stop),
      text_field<Request>("stream", take_stream),
      off_field<Request>("tools"),
      {"thinking", take_thinking},
      ignored_field<Request>("model"),
      ignored_field<Request>("metadata"),
      ignored_field<Request>("service_tier"),
      ignored_field<Request>("tool_choice"),
  };
  return table;
}

JsonValue anthropic_error(std::string_view type, const Error& error) {
  const std::string_view name = type == "unavailable_error" ? "overloaded_error"
                                : type == "server_error"    ? "api_error"
                                                            : type;
  return object("type", "error", "error",
                object("type", name, "message", std::string_view(message_of(error))));
}

class Messages final : public Dialect {
 public:
  Messages(const Service& service, const Request& request)
      : service_(service),
        stops_(request.text.options.stop),
        prompt_(static_cast<int64_t>(request.text.prompts.front().size())) {}

  std::string first() override {
    JsonValue message = head(JsonValue::array(), JsonValue(), JsonValue());
    message.add("usage", usage(prompt_, 0, 0));
    return sse(object("type", "message_start", "message", std::move(message)), "message_start") +
           sse(object("type", "content_block_start", "index", 0, "content_block",
                      object("type", "text", "text", "")),
               "content_block_start");
  }
  std::string piece(size_t, std::string_view text, const Token*) override {
    return sse(object("type", "content_block_delta", "index", 0, "delta",
                      object("type", "text_delta", "text", text)),
               "content_block_delta");
  }
  std::string last(size_t, const TextEnd& end) override {
    const auto [why, stop] = reason(end.text);
    const auto written = static_cast<int64_t>(end.text.token_ids.size());
    return sse(object("type", "content_block_stop", "index", 0), "content_block_stop") +
           sse(object("type", "message_delta", "delta",
                      object("stop_reason", why, "stop_sequence", stop), "usage",
                      usage(prompt_, end.cached, written)),
               "message_delta") +
           sse(object("type", "message_stop"), "message_stop");
  }
  std::string broken(const Error& error) override {
    return sse(anthropic_error(kind_of(error).type, error), "error");
  }
  JsonValue whole(const std::vector<TextEnd>& texts) override {
    const TextEnd& end = texts.front();
    const auto [why, stop] = reason(end.text);
    JsonValue content = JsonValue::array();
    content.push(object("type", "text", "text", std::string_view(end.text.text)));
    JsonValue out = head(std::move(content), why, stop);
    out.add("usage", usage(prompt_, end.cached, static_cast<int64_t>(end.text.token_ids.size())));
    return out;
  }
  JsonValue error(int, std::string_view type, const Error& error) const override {
    return anthropic_error(type, error);
  }

 private:
  JsonValue head(JsonValue content, JsonValue why, JsonValue stop) const {
    return object("id", std::string_view(id_), "type", "message", "role", "assistant", "model",
                  std::string_view(service_.name()), "content", std::move(content), "stop_reason",
                  std::move(why), "stop_sequence", std::move(stop));
  }
  // input_tokens are those that had to be read.
  static JsonValue usage(int64_t prompt, int64_t cached, int64_t written) {
    return object("input_tokens", prompt - cached, "cache_creation_input_tokens", 0,
                  "cache_read_input_tokens", cached, "output_tokens", written);
  }
  std::pair<JsonValue, JsonValue> reason(const Generation& text) const {
    if (text.stop == StopReason::eos) return {json("end_turn"), JsonValue()};
    if (text.stop != StopReason::stop_string) return {json("max_tokens"), JsonValue()};
    return {json("stop_sequence"), json(std::string_view(stop_of(service_.model(), text, stops_)))};
  }

  const Service& service_;
  const std::vector<std::string> stops_;
  const int64_t prompt_;
  const std::string id_ = new_id("msg_");
};

const Dialect& errors() {
  static const ErrorsOnly dialect(
      [](int, std::string_view type, const Error& error) { return anthropic_error(type, error); });
  return dialect;
}

Result<Request> read(Service& service, const JsonValue& body) {
  Request request;
  request.text.options.sampler.temperature = 1.0f;
  LOOM_TRY(service.set_defaults(request.text));
  LOOM_TRY(take_fields<Request>(body, fields(), service.strict(), request));
  if (request.messages == nullptr) return invalid("messages is missing: a list of messages");
  if (!request.text.has_seed) request.text.options.sampler.seed = new_seed();
  LOOM_ASSIGN(std::vector<ChatTurn> turns, service.turns(*request.messages));
  if (!request.system.empty()) turns.insert(turns.begin(), {"system", request.system});
  LOOM_ASSIGN(std::vector<TokenId> prompt, service.model().tokenize_chat(turns));
  request.text.prompts.push_back(std::move(prompt));
  return request;
}

Status messages(Service& service, const JsonValue& body, const std::shared_ptr<HttpReply>& reply) {
  LOOM_ASSIGN(Request request, read(service, body));
  if (request.text.max_tokens < 0)
    return invalid("max_tokens is missing: the most tokens that the answer may have");
  auto dialect = std::make_shared<Messages>(service, request);
  return service.write(std::move(request.text), std::move(dialect), reply);
}

Status count(Service& service, const JsonValue& body, const std::shared_ptr<HttpReply>& reply) {
  LOOM_ASSIGN(const Request request, read(service, body));
  send_json(*reply, 200, object("input_tokens", request.text.prompts.front().size()));
  return {};
}

}  // namespace

std::string stop_of(const Model& model, const Generation& text,
                    const std::vector<std::string>& stops) {
  const Result<std::string> whole = model.detokenize(text.token_ids);
  if (!whole.ok()) return {};
  // The text ends where the earliest one begins.
  std::string found;
  size_t at = std::string::npos;
  for (const std::string& stop : stops) {
    const size_t here = whole->find(stop);
    if (here < at || (here == at && here != std::string::npos && stop.size() < found.size())) {
      at = here;
      found = stop;
    }
  }
  return found;
}

void add_anthropic(std::vector<Route>& routes) {
  routes.push_back(text_route("/v1/messages", messages, errors()));
  routes.push_back(text_route("/v1/messages/count_tokens", count, errors()));
}

}  // namespace loom::core
