#include "remote/peer.hpp"

#include <functional>
#include <limits>
#include <utility>

#include "base/text.hpp"
#include "remote/message.hpp"

namespace loom::core {
namespace {

constexpr size_t kMaxJobId = 128;
constexpr size_t kMaxConfig = 1 << 20;
constexpr int64_t kMaxTokens = 1 << 20;

// A job with the answer `type`{job_id, ok, ..., queue_depth}. `compute` adds the result.
using Compute = std::function<Result<JsonValue>(size_t worker)>;

struct Answer {
  std::shared_ptr<DonateConnection> connection;
  std::string type, job_id;
  const char* field;  // receives the value

  void send(const Result<JsonValue>& value, int64_t depth) const {
    JsonValue out = donate_message(type);
    out.add("job_id", JsonValue::string(job_id));
    out.add("ok", JsonValue::boolean(value.ok()));
    if (value.ok()) {
      out.add(field, *value);
    } else {
      out.add("error", JsonValue::string(value.error().str()));
    }
    out.add("queue_depth", JsonValue::integer(depth));
    connection->send(dump_json(out));
    connection->await(-1);
  }
};

// An error names its job if there is one, so that a client with several can match it.
JsonValue error_of(const Error& why, const JsonValue* message) {
  JsonValue out = donate_error(why.str());
  if (message == nullptr) return out;
  const Result<std::string> job = donate_text(*message, "job_id", kMaxJobId);
  if (job.ok()) out.add("job_id", JsonValue::string(*job));
  return out;
}

Status add_job(DonateJobs& jobs, const Answer& answer, Compute compute) {
  answer.connection->await(1);
  DonateJob job;
  job.run = [&jobs, answer, compute = std::move(compute)](size_t worker) -> std::function<void()> {
    if (answer.connection->gone()) return nullptr;
    return [&jobs, answer, value = compute(worker)] { answer.send(value, jobs.depth()); };
  };
  job.drop = [answer] { answer.send(make_error(Code::cancelled, "the server stops"), 0); };
  const Status added = jobs.add(std::move(job));
  if (!added.ok()) answer.connection->await(-1);
  return added;
}

JsonValue hello_of(const DonateOptions& options, const std::string& challenge) {
  JsonValue hello = donate_message("hello");
  hello.add("mode", JsonValue::string(options.model == nullptr ? "model_push" : "local_lm"));
  hello.add("role", JsonValue::string("server"));
  if (options.model != nullptr) hello.add("local_lm_path", JsonValue::string(options.name));
  hello.add("queue_capacity", JsonValue::integer(options.queue));
  if (!challenge.empty()) hello.add("challenge", JsonValue::string(challenge));
  return hello;
}

}  // namespace

void DonatePeer::on_open(const Connection& connection) {
  if (!server_.options_.secret.empty()) {
    Result<std::string> challenge = donate_challenge();
    if (!challenge.ok()) {
      connection->send(dump_json(donate_error(challenge.error().str())));
      return connection->finish();
    }
    challenge_ = std::move(*challenge);
  }
  trusted_ = challenge_.empty();
  connection->send(dump_json(hello_of(server_.options_, challenge_)));
  connection->next();
}

void DonatePeer::on_frame(const Connection& connection, std::string frame) {
  server_.later([me = shared_from_this(), connection, text = std::move(frame)] {
    switch (me->handle(connection, text)) {
      case Then::next: return connection->next();
      case Then::wait: return;
      case Then::finish: return connection->finish();
    }
  });
}

DonatePeer::Then DonatePeer::handle(const Connection& connection, const std::string& frame) {
  const Result<JsonValue> message = read_donate_message(frame);
  if (!message.ok()) {
    connection->send(dump_json(error_of(message.error(), nullptr)));
    return trusted_ ? Then::next : Then::finish;
  }
  if (donate_type(*message) == "hello" || !trusted_) {
    const Status greeted = greet(*message);
    if (greeted.ok()) {
      connection->allow(kDonateFrameMost);
      return Then::next;
    }
    connection->send(dump_json(error_of(greeted.error(), nullptr)));
    return Then::finish;
  }
  const Result<Then> then = answer(connection, *message);
  if (then.ok()) return *then;
  connection->send(dump_json(error_of(then.error(), &*message)));
  return Then::next;
}

// A challenge is valid for one proof: a wrong guess needs a new connection and gets a new
// challenge.
Status DonatePeer::greet(const JsonValue& message) {
  if (donate_type(message) != "hello")
    return invalid("a secret is asked for: say hello with a proof first");
  if (trusted_) return {};
  const Result<std::string> proof = donate_text(message, "proof", kMaxJobId);
  const std::string challenge = std::exchange(challenge_, {});
  if (!proof.ok() || challenge.empty())
    return invalid("a secret is asked for: hello carries no proof");
  LOOM_ASSIGN(const std::string expected, donate_proof(server_.options_.secret, challenge));
  if (!same_donate_proof(*proof, expected)) return invalid("wrong secret");
  trusted_ = true;
  return {};
}

Result<DonatePeer::Then> DonatePeer::answer(const Connection& connection,
                                            const JsonValue& message) {
  const std::string_view type = donate_type(message);
  if (type == "model_commit") return commit(connection);
  if (type == "model_begin") {
    LOOM_TRY(begin(message));
  } else if (type == "weights_chunk") {
    LOOM_TRY(chunk(message));
  } else if (type == "infer") {
    LOOM_TRY(infer(connection, message));
  } else if (type == "prompt") {
    LOOM_TRY(prompt(connection, message));
  } else if (type == "queue_status") {
    report_queue(connection);
  } else {
    return invalid(cat("unknown type ", printable(type)));
  }
  return Then::next;
}

Status DonatePeer::pushing() const {
  if (server_.options_.model == nullptr) return {};
  return invalid("wrong mode: this server is in mode local_lm and takes no models");
}

Status DonatePeer::begin(const JsonValue& message) {
  LOOM_TRY(pushing());
  const JsonValue* config = message.find("config_json");
  std::string json;
  if (config != nullptr && config->is_string()) json = config->text();
  if (config != nullptr && config->is_object() && !config->members().empty())
    json = dump_json(*config);
  if (json.size() > kMaxConfig) return invalid("config_json is longer than 1 MB");
  constexpr int64_t kLow = std::numeric_limits<int64_t>::min(), kHigh = -(kLow + 1);
  LOOM_ASSIGN(const int64_t length, donate_count(message, "weights_len", kLow, kHigh, 0));
  std::string sha256;
  const JsonValue* hash = message.find("weights_sha256");
  if (hash != nullptr && !hash->is_null() && !(hash->is_string() && hash->text().empty())) {
    LOOM_ASSIGN(sha256, donate_text(message, "weights_sha256", 64));
  }
  return upload_.begin(std::move(json), length, std::move(sha256));
}

Status DonatePeer::chunk(const JsonValue& message) {
  LOOM_TRY(pushing());
  const JsonValue* data = message.find("data_b64");
  if (data == nullptr || !data->is_string()) return invalid("data_b64 must be a text");
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  LOOM_ASSIGN(const int64_t index, donate_count(message, "index", 0, kMax, -1));
  LOOM_ASSIGN(const bool last, donate_flag(message, "last"));
  return upload_.chunk(index, last, data->text());
}

// Mounting is queued among the jobs, and the connection is silent until it is done. Earlier
// requests are answered by the previous model, later ones by the new one.
Result<DonatePeer::Then> DonatePeer::commit(const Connection& connection) {
  LOOM_TRY(pushing());
  const auto status = [](const Connection& to, bool ok, const std::string& what) {
    JsonValue out = donate_message("model_status");
    out.add("ok", JsonValue::boolean(ok));
    out.add("message", JsonValue::string(what));
    to->send(dump_json(out));
  };
  const auto refuse = [connection, status](const Error& why) {
    status(connection, false, why.str());
  };
  const Result<std::shared_ptr<const DonatedModel>> pushed = upload_.commit();
  if (!pushed.ok()) {
    refuse(pushed.error());
    return Then::next;
  }
  DonateJob job;
  job.run = [me = shared_from_this(), connection, status, refuse,
             pushed = *pushed](size_t) -> std::function<void()> {
    Result<std::shared_ptr<DonateModel>> model = me->server_.options_.mount(pushed);
    const Status mounted = model.ok() ? Status() : Status(model.error());
    if (model.ok()) me->server_.mounted(std::move(*model));
    return [connection, status, refuse, mounted] {
      mounted.ok() ? status(connection, true, "mounted") : refuse(mounted.error());
      connection->next();
    };
  };
  job.drop = [connection, refuse] {
    refuse(make_error(Code::cancelled, "the server stops"));
    connection->finish();
  };
  const Status added = server_.jobs_.add(std::move(job));
  if (added.ok()) return Then::wait;
  refuse(added.error());
  return Then::next;
}

Status DonatePeer::infer(const Connection& connection, const JsonValue& message) {
  LOOM_ASSIGN(const std::string id, donate_text(message, "job_id", kMaxJobId));
  LOOM_ASSIGN(std::vector<int32_t> ids, donate_ids(message, "input_ids"));
  LOOM_ASSIGN(int64_t most, donate_count(message, "max_tokens", 0, kMaxTokens, 0));
  if (most == 0) most = kDonateInferTokens;
  const std::shared_ptr<DonateModel> model = server_.model();
  if (model == nullptr) return invalid("model not mounted");
  const Answer answer{connection, "infer_result", id, "output_ids"};
  return add_job(
      server_.jobs_, answer,
      [model, connection, most, ids = std::move(ids), &jobs = server_.jobs_](size_t worker) {
        const auto go_on = [&] { return !connection->gone() && !jobs.should_stop(); };
        return model->infer(worker, ids, most, go_on).transform(donate_list);
      });
}

Status DonatePeer::prompt(const Connection& connection, const JsonValue& message) {
  LOOM_ASSIGN(const std::string id, donate_text(message, "job_id", kMaxJobId));
  LOOM_ASSIGN(std::string text, donate_text(message, "prompt", kDonateFrameMost));
  LOOM_ASSIGN(int64_t most, donate_count(message, "max_out", 0, kMaxTokens, 0));
  if (most == 0) most = kDonatePromptTokens;
  const std::shared_ptr<DonateModel> model = server_.model();
  if (model == nullptr) return invalid("model not mounted");
  const Answer answer{connection, "prompt_result", id, "text"};
  return add_job(
      server_.jobs_, answer,
      [model, connection, most, text = std::move(text), &jobs = server_.jobs_](size_t worker) {
        const auto go_on = [&] { return !connection->gone() && !jobs.should_stop(); };
        return model->prompt(worker, text, most, go_on).transform([](std::string written) {
          return JsonValue::string(std::move(written));
        });
      });
}

void DonatePeer::report_queue(const Connection& connection) const {
  JsonValue out = donate_message("queue_status");
  out.add("depth", JsonValue::integer(server_.jobs_.depth()));
  out.add("capacity", JsonValue::integer(server_.jobs_.capacity()));
  out.add("in_progress", JsonValue::integer(server_.jobs_.in_progress()));
  connection->send(dump_json(out));
}

}  // namespace loom::core
