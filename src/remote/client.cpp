#include "remote/client.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/text.hpp"
#include "io/bytes/base64.hpp"
#include "io/socket.hpp"
#include "net/address.hpp"
#include "remote/frame.hpp"
#include "remote/message.hpp"
#include "remote/secret.hpp"
#include "remote/server.hpp"
#include "text/normalizers/unicode.hpp"

namespace loom::core {
namespace {

constexpr size_t kPushPiece = 1 << 20;
constexpr size_t kMaxName = 4096;

// Models and texts must not be readable on the network.
Status check_secrecy(const DonateClientOptions& options, const std::string& host) {
  if (options.tls != nullptr || options.allow_plaintext) return {};
  if (host == "localhost" || is_loopback(host)) return {};
  return invalid(
      "what goes to another machine can be read on its way; give --tls (or --tls-ca), or "
      "--allow-plaintext",
      host);
}

// JSON would change the text.
Status check_utf8(std::string_view bytes, std::string_view what) {
  if (text::is_valid_utf8(bytes)) return {};
  return invalid(cat(what, " is not UTF-8; convert it first"));
}

}  // namespace

Result<std::unique_ptr<DonateClient>> DonateClient::connect(const DonateClientOptions& options) {
  HostPort to{options.to, 0};
  if (!is_unix_address(options.to)) {
    LOOM_ASSIGN(to, parse_host_port(options.to, kDonatePort));
    LOOM_TRY(check_secrecy(options, to.host));
  } else if (options.tls != nullptr) {
    return invalid("a Unix socket is not encrypted; leave the options of TLS out", options.to);
  }
  LOOM_ASSIGN(std::unique_ptr<NetClient> socket,
              NetClient::connect(to.host, static_cast<uint16_t>(to.port), options.tls,
                                 options.connect_seconds));
  std::string name = to.port == 0 ? to.host : cat(to.host, ":", to.port);
  return over(options, std::move(name), std::move(socket));
}

Result<std::unique_ptr<DonateClient>> DonateClient::over(const DonateClientOptions& options,
                                                         std::string name,
                                                         std::unique_ptr<NetClient> connection) {
  std::unique_ptr<DonateClient> client(
      new DonateClient(options, std::move(name), std::move(connection)));
  LOOM_TRY(client->greet());
  return client;
}

Status DonateClient::greet() {
  Result<JsonValue> response = hear_type("hello", options_.connect_seconds);
  if (!response.ok()) {
    Error why = response.error();
    const bool plain = options_.tls == nullptr && !is_unix_address(options_.to);
    if (plain && why.code == Code::io_error) why.message += "; a server with TLS needs --tls";
    return why;
  }
  const JsonValue hello = std::move(*response);
  LOOM_ASSIGN(mode_, donate_text(hello, "mode", kMaxName));
  if (hello.find("local_lm_path") != nullptr) {
    LOOM_ASSIGN(path_, donate_text(hello, "local_lm_path", kMaxName));
  }
  JsonValue mine = donate_message("hello");
  mine.add("mode", JsonValue::string(mode_));
  mine.add("role", JsonValue::string("client"));
  if (hello.find("challenge") != nullptr) {
    if (options_.secret.empty())
      return invalid("this server asks for a secret; give it with --secret-file", to_);
    LOOM_ASSIGN(const std::string challenge, donate_text(hello, "challenge", kMaxName));
    LOOM_ASSIGN(std::string proof, donate_proof(options_.secret, challenge));
    mine.add("proof", JsonValue::string(std::move(proof)));
  }
  return send(mine);
}

// ---- frames -------------------------------------------------------------------------------------

// A server that refuses sends the reason before it closes, so if sending fails its last message is
// read.
Status DonateClient::send(const JsonValue& message) {
  constexpr double kLastWords = 2.0;
  const std::string json = dump_json(message);
  if (json.size() > kDonateFrameMost)
    return invalid(cat("a message of ", json.size(), " bytes; ", kDonateFrameMost, " are allowed"));
  const Status sent = socket_->send(donate_frame(json), options_.seconds);
  if (sent.ok()) return {};
  for (;;) {
    const Result<JsonValue> last = hear(kLastWords);
    if (!last.ok()) return make_error(sent.error().code, sent.error().message, to_);
    if (donate_type(*last) == "error") return refused(*last);
  }
}

Result<JsonValue> DonateClient::hear(double seconds) {
  using Clock = std::chrono::steady_clock;
  constexpr double kLook = 0.1;
  const auto begin = Clock::now();
  for (;;) {
    if (read_.size() >= kDonateHead) {
      DonateHead head{};
      std::copy_n(read_.begin(), kDonateHead, head.begin());
      LOOM_ASSIGN(const uint32_t length, donate_length(head));
      if (read_.size() - kDonateHead >= length) {
        Result<JsonValue> message =
            read_donate_message(std::string_view(read_).substr(kDonateHead, length));
        read_.erase(0, kDonateHead + length);
        if (!message.ok())
          return bad_file(cat("no server of this kind: ", message.error().message), to_);
        return message;
      }
    }
    if (!socket_->readable(kLook)) {
      if (!options_.go_on()) return make_error(Code::cancelled, "stopped");
      if (seconds > 0 && std::chrono::duration<double>(Clock::now() - begin).count() > seconds)
        return make_error(Code::io_error, cat("nothing came in ", seconds, " s"), to_);
      continue;
    }
    LOOM_ASSIGN(const std::string more, socket_->receive(kLook));
    if (more.empty()) return make_error(Code::io_error, "the server closed the connection", to_);
    read_ += more;
  }
}

Error DonateClient::refused(const JsonValue& error) const {
  const JsonValue* detail = error.find("error");
  constexpr size_t kMax = 500;
  const std::string why = detail == nullptr ? std::string() : printable(detail->text(), kMax);
  return make_error(Code::io_error, why.empty() ? "refused" : why, to_);
}

// Answers to jobs that arrive in between are stored.
Result<JsonValue> DonateClient::hear_type(std::string_view type, double seconds) {
  for (;;) {
    LOOM_ASSIGN(JsonValue message, hear(seconds));
    if (donate_type(message) == type) return message;
    const Result<std::string> job = donate_text(message, "job_id", kMaxName);
    if (job.ok()) {
      answers_[*job] = std::move(message);
    } else if (donate_type(message) == "error") {
      return refused(message);
    }
  }
}

// ---- pushing ------------------------------------------------------------------------------------

Status DonateClient::push(std::string_view file, std::string_view config,
                          const PushProgress& progress) {
  if (mode_ != "model_push")
    return invalid(
        cat("wrong mode: this server is in mode ", printable(mode_), " and takes no models"), to_);
  LOOM_TRY(check_utf8(config, "the description of the model"));
  const auto total = static_cast<int64_t>(file.size());
  DonateDigest digest;
  digest.add(file);
  LOOM_ASSIGN(std::string hash, digest.finish());
  JsonValue begin = donate_message("model_begin");
  begin.add("config_json", JsonValue::string(std::string(config)));
  begin.add("weights_len", JsonValue::integer(total));
  begin.add("weights_sha256", JsonValue::string(std::move(hash)));
  LOOM_TRY(send(begin));
  int64_t index = 0;
  for (size_t at = 0; at < file.size(); ++index) {
    const std::string_view piece = file.substr(at, kPushPiece);
    at += piece.size();
    LOOM_TRY(send_piece(index, piece, at == file.size()));
    if (progress && !progress(static_cast<int64_t>(at), total))
      return make_error(Code::cancelled, "stopped");
  }
  LOOM_TRY(send(donate_message("model_commit")));
  LOOM_ASSIGN(const JsonValue status, hear_type("model_status", 0));
  LOOM_ASSIGN(const bool good, donate_flag(status, "ok"));
  if (good) return {};
  const Result<std::string> why = donate_text(status, "message", kMaxName);
  return make_error(Code::io_error, why.ok() && !why->empty() ? *why : std::string("refused"), to_);
}

// Stops an upload after an error.
Status DonateClient::send_piece(int64_t index, std::string_view piece, bool last) {
  JsonValue chunk = donate_message("weights_chunk");
  chunk.add("index", JsonValue::integer(index));
  chunk.add("last", JsonValue::boolean(last));
  chunk.add("data_b64", JsonValue::string(encode_base64(piece)));
  LOOM_TRY(send(chunk));
  while (socket_->readable(0)) {
    LOOM_ASSIGN(JsonValue detail, hear(options_.seconds));
    const Result<std::string> job = donate_text(detail, "job_id", kMaxName);
    if (job.ok()) {
      answers_[*job] = std::move(detail);
    } else if (donate_type(detail) == "error") {
      return refused(detail);
    }
  }
  return {};
}

// ---- asking -------------------------------------------------------------------------------------

Result<std::string> DonateClient::send_infer(std::span<const int32_t> ids, int64_t most) {
  JsonValue message = donate_message("infer");
  const std::string job = next_job();
  message.add("job_id", JsonValue::string(job));
  message.add("input_ids", donate_list({ids.begin(), ids.end()}));
  if (most > 0) message.add("max_tokens", JsonValue::integer(most));
  LOOM_TRY(send(message));
  return job;
}

Result<std::string> DonateClient::send_prompt(std::string_view text, int64_t most) {
  LOOM_TRY(check_utf8(text, "the prompt"));
  JsonValue message = donate_message("prompt");
  const std::string job = next_job();
  message.add("job_id", JsonValue::string(job));
  message.add("prompt", JsonValue::string(std::string(text)));
  if (most > 0) message.add("max_out", JsonValue::integer(most));
  LOOM_TRY(send(message));
  return job;
}

Result<JsonValue> DonateClient::answer(const std::string& job_id) {
  while (!answers_.contains(job_id)) {
    LOOM_ASSIGN(JsonValue message, hear(0));
    const Result<std::string> job = donate_text(message, "job_id", kMaxName);
    if (!job.ok() && donate_type(message) == "error") return refused(message);
    if (job.ok()) answers_[*job] = std::move(message);
  }
  JsonValue message = std::move(answers_[job_id]);
  answers_.erase(job_id);
  if (donate_type(message) == "error") return refused(message);
  LOOM_ASSIGN(const bool good, donate_flag(message, "ok"));
  if (!good) return refused(message);
  return message;
}

Result<std::vector<int32_t>> DonateClient::infer(std::span<const int32_t> ids, int64_t most) {
  LOOM_ASSIGN(const std::string job, send_infer(ids, most));
  LOOM_ASSIGN(const JsonValue message, answer(job));
  return donate_ids(message, "output_ids");
}

// The text may be empty: a model that ends at once.
Result<std::string> DonateClient::prompt(std::string_view text, int64_t most) {
  LOOM_ASSIGN(const std::string job, send_prompt(text, most));
  LOOM_ASSIGN(const JsonValue message, answer(job));
  const JsonValue* written = message.find("text");
  if (written == nullptr || !written->is_string())
    return bad_file("prompt_result carries no text", to_);
  return written->text();
}

Result<DonateQueue> DonateClient::queue() {
  LOOM_TRY(send(donate_message("queue_status")));
  LOOM_ASSIGN(const JsonValue message, hear_type("queue_status", options_.seconds));
  constexpr int64_t kMax = int64_t{1} << 40;
  DonateQueue out;
  LOOM_ASSIGN(out.depth, donate_count(message, "depth", 0, kMax, 0));
  LOOM_ASSIGN(out.capacity, donate_count(message, "capacity", 0, kMax, 0));
  LOOM_ASSIGN(out.in_progress, donate_count(message, "in_progress", 0, kMax, 0));
  return out;
}

}  // namespace loom::core
