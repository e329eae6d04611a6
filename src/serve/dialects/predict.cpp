// Chats in the envelope of Google's prediction platforms: POST /predict with {"instances":
// [{"@requestFormat": "chatCompletions", ...}, ...]}. The reply is {"predictions": [...]}, a whole
// chat completion for each instance. Instances run at the same time; if one fails, its error is the
// reply.
#include <algorithm>
#include <mutex>

#include "base/text.hpp"
#include "serve/dialects/dialects.hpp"
#include "serve/dialects/fields.hpp"

namespace loom::core {
namespace {

constexpr size_t kMaxInstances = 64;

// The replies of all instances, which come from any thread.
class Predictions {
 public:
  Predictions(size_t count, std::shared_ptr<HttpReply> reply)
      : whole_(count), reply_(std::move(reply)) {}

  bool gone() const { return reply_->gone(); }
  std::string_view caller() const { return reply_->caller(); }

  void take(size_t instance, int status, HttpHeaders headers, std::string body) {
    const std::lock_guard lock(mutex_);
    if (sent_) return;
    Result<JsonValue> json = parse_json(body, "prediction");
    if (status != 200 || !json.ok()) {
      reply_->send(status, std::move(headers), std::move(body));
      sent_ = true;
      return;
    }
    whole_[instance] = std::move(*json);
    // Counted again, because a reply without memory is sent again.
    if (std::ranges::any_of(whole_, [](const JsonValue& one) { return one.is_null(); })) return;
    JsonValue all = JsonValue::array();
    for (const JsonValue& one : whole_) all.push(one);
    send_json(*reply_, 200, object("predictions", std::move(all)));
    sent_ = true;
  }

 private:
  std::mutex mutex_;
  std::vector<JsonValue> whole_;
  bool sent_ = false;
  std::shared_ptr<HttpReply> reply_;
};

class InstanceReply final : public HttpReply {
 public:
  InstanceReply(std::shared_ptr<Predictions> all, size_t instance)
      : all_(std::move(all)), instance_(instance) {}
  void send(int status, HttpHeaders headers, std::string body) override {
    all_->take(instance_, status, std::move(headers), std::move(body));
  }
  // Nothing is streamed here.
  void begin(int /*status*/, HttpHeaders /*headers*/) override {}
  void write(std::string /*piece*/) override {}
  void end() override {}
  bool gone() const override { return all_->gone(); }
  std::string_view caller() const override { return all_->caller(); }

 private:
  std::shared_ptr<Predictions> all_;
  size_t instance_;
};

Status check_instance(const JsonValue& instance, size_t i) {
  const std::string where = cat("instances[", i, "]");
  if (!instance.is_object())
    return invalid(cat(where, " must be an object; got ", instance.describe()));
  const JsonValue* format = instance.find("@requestFormat");
  if (format == nullptr || format->text() != "chatCompletions") {
    return invalid(cat(where, ".@requestFormat must be \"chatCompletions\"; got ",
                       format != nullptr ? format->describe() : "nothing"));
  }
  const JsonValue* stream = instance.find("stream");
  if (stream != nullptr && stream->as_bool(where).value_or(true))
    return invalid(cat(where, ".stream: predictions are not streamed"));
  return {};
}

Status predict(Service& service, const JsonValue& body, const std::shared_ptr<HttpReply>& reply) {
  const JsonValue* instances = body.find("instances");
  if (instances == nullptr || !instances->is_array() || instances->elements().empty())
    return invalid("instances must be a list of requests");
  const size_t count = instances->elements().size();
  if (count > kMaxInstances)
    return invalid(cat("instances may be ", kMaxInstances, "; there are ", count));
  for (size_t i = 0; i < count; ++i) LOOM_TRY(check_instance(instances->elements()[i], i));
  const auto all = std::make_shared<Predictions>(count, reply);
  for (size_t i = 0; i < count; ++i) {
    JsonValue request = JsonValue::object();
    for (const auto& [key, value] : instances->elements()[i].members()) {
      if (key != "@requestFormat") request.add(key, value);
    }
    const auto part = std::make_shared<InstanceReply>(all, i);
    const Status begun = openai_chat(service, request, part);
    if (!begun.ok()) send_error(*part, openai_errors(), begun.error());
  }
  return {};
}

JsonValue predict_schema() {
  const JsonValue instance = object("type", "object", "required", JsonValue::array());
  return object("type", "object", "properties",
                object("instances", object("type", "array", "items", instance)));
}

}  // namespace

void add_predict(std::vector<Route>& routes) {
  routes.push_back(text_route("/predict", predict, openai_errors(), predict_schema));
}

}  // namespace loom::core
