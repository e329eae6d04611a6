#include "serve/streams.hpp"

#include <algorithm>
#include <charconv>

#include "base/text.hpp"
#include "base/threads/try_again.hpp"
#include "serve/dialects/dialects.hpp"
#include "serve/dialects/fields.hpp"

namespace loom::core {

struct Streams::Kept {
  Kept(std::string name, const StreamLimits& most, ServeClock by, std::shared_ptr<HttpReply> to)
      : id(std::move(name)), limits(most), clock(std::move(by)), reader(std::move(to)) {}

  const std::string id;
  const StreamLimits limits;
  const ServeClock clock;
  std::mutex mutex;  // guards the members below
  std::shared_ptr<HttpReply> reader;
  HttpHeaders headers;
  std::deque<std::string> events;
  int64_t first = 0;  // number of the oldest stored event
  size_t bytes = 0;
  bool begun = false, ended = false, stopped = false, full = false;
  Clock::time_point alone{};  // since when there is no reader

  // Call the functions below with the lock held.
  bool attended() {
    if (reader != nullptr && reader->gone()) leave();
    return reader != nullptr;
  }
  void leave() {
    reader.reset();
    alone = clock();
  }
  bool expired() {
    if (attended()) return false;
    return stopped || (ended && !begun) || clock() - alone > std::chrono::seconds(limits.seconds);
  }
  // Puts the number of an event before its first line.
  void add(std::string_view event, std::string& sent) {
    const int64_t number = first + static_cast<int64_t>(events.size());
    events.push_back(cat("id: ", id, ":", number, "\n", event));
    bytes += events.back().size();
    sent += events.back();
    while (bytes > limits.bytes) {
      // A reader has these already, or gets them soon; without a reader they would be lost.
      if (!attended()) {
        full = true;
        return;
      }
      bytes -= events.front().size();
      events.pop_front();
      ++first;
    }
  }
  void end() {
    if (ended) return;
    // A reply that has not started gets a separate answer.
    if (attended() && begun) reader->end();
    ended = true;
    leave();
  }
};

// The sink of the text. Only it holds the request's reply, and so the model, no longer than the
// text needs it.
class Streams::Writer final : public HttpReply {
 public:
  Writer(std::shared_ptr<Kept> kept, std::shared_ptr<HttpReply> reply)
      : kept_(std::move(kept)), reply_(std::move(reply)) {}
  ~Writer() override {
    const std::lock_guard lock(kept_->mutex);
    try_again([this] { kept_->end(); });
  }
  // An error before streaming started.
  void send(int status, HttpHeaders headers, std::string body) override {
    const std::lock_guard lock(kept_->mutex);
    kept_->ended = true;
    kept_->leave();
    reply_->send(status, std::move(headers), std::move(body));
  }
  void begin(int status, HttpHeaders headers) override {
    const std::lock_guard lock(kept_->mutex);
    headers.emplace_back("X-Stream-Id", kept_->id);
    kept_->headers = headers;
    if (kept_->attended()) kept_->reader->begin(status, std::move(headers));
    kept_->begun = true;
  }
  void write(std::string piece) override {
    const std::lock_guard lock(kept_->mutex);
    std::string sent;
    for (std::string_view rest = piece; !rest.empty();) {
      const size_t at = rest.find("\n\n");
      const size_t end = at == std::string_view::npos ? rest.size() : at + 2;
      kept_->add(rest.substr(0, end), sent);
      rest.remove_prefix(end);
    }
    if (kept_->attended()) kept_->reader->write(std::move(sent));
  }
  void end() override {
    const std::lock_guard lock(kept_->mutex);
    kept_->end();
  }
  bool gone() const override {
    const std::lock_guard lock(kept_->mutex);
    return kept_->full || kept_->stopped || kept_->expired();
  }
  void report_field(const char* name, int64_t value) override { reply_->report_field(name, value); }

 private:
  const std::shared_ptr<Kept> kept_;
  const std::shared_ptr<HttpReply> reply_;
};

void Streams::forget_expired() {
  std::erase_if(kept_, [](const auto& one) {
    const std::lock_guard lock(one.second->mutex);
    return one.second->expired();
  });
}

std::shared_ptr<HttpReply> Streams::keep(const std::string& id, std::shared_ptr<HttpReply> reply) {
  const std::lock_guard lock(mutex_);
  forget_expired();
  if (kept_.size() >= limits_.streams) {
    auto oldest = kept_.end();
    for (auto one = kept_.begin(); one != kept_.end(); ++one) {
      const std::lock_guard inner(one->second->mutex);
      if (!one->second->ended) continue;
      if (oldest == kept_.end() || one->second->alone < oldest->second->alone) oldest = one;
    }
    if (oldest == kept_.end()) return nullptr;
    kept_.erase(oldest);
  }
  auto kept = std::make_shared<Kept>(id, limits_, clock_, reply);
  kept_[id] = kept;
  return std::make_shared<Writer>(std::move(kept), std::move(reply));
}

Result<std::shared_ptr<Streams::Kept>> Streams::find(const std::string& id) {
  const std::lock_guard lock(mutex_);
  forget_expired();
  const auto found = kept_.find(id);
  if (found != kept_.end()) return found->second;
  return make_error(Code::not_found,
                    cat("no stream ", printable(id),
                        " is kept; streams of requests with "
                        "\"resumable\": true are, for ",
                        limits_.seconds, " s without a reader or after their end"));
}

Status Streams::resume(const std::string& id, int64_t after, std::shared_ptr<HttpReply> reply) {
  LOOM_ASSIGN(const std::shared_ptr<Kept> kept, find(id));
  const std::lock_guard lock(kept->mutex);
  const int64_t last = kept->first + static_cast<int64_t>(kept->events.size()) - 1;
  if (!kept->begun)
    return make_error(Code::not_found,
                      cat("nothing of the stream ", printable(id), " was written"));
  if (after < -1 || after > last)
    return invalid(cat("the stream has the events 0 to ", last, "; there is none after ", after));
  if (after + 1 < kept->first) {
    return make_error(
        Code::not_found,
        cat("event ", after + 1, " is no longer kept; the first one that is, is ", kept->first));
  }
  if (kept->attended()) kept->reader->end();
  reply->begin(200, kept->headers);
  std::string missed;
  for (auto i = static_cast<size_t>(after + 1 - kept->first); i < kept->events.size(); ++i)
    missed += kept->events[i];
  reply->write(std::move(missed));
  if (kept->ended) {
    reply->end();
    kept->leave();
  } else {
    kept->reader = std::move(reply);
  }
  return {};
}

Status Streams::stop(const std::string& id) {
  LOOM_ASSIGN(const std::shared_ptr<Kept> kept, find(id));
  {
    const std::lock_guard lock(kept->mutex);
    kept->stopped = true;
    if (kept->attended()) kept->reader->end();
    kept->leave();
  }
  const std::lock_guard lock(mutex_);
  kept_.erase(id);
  return {};
}

namespace {

// A number of a query or of "ID:NUMBER"; empty means -1.
Result<int64_t> event_number(std::string_view text, std::string_view where) {
  text = text.substr(text.rfind(':') + 1);
  int64_t number = -1;
  if (text.empty()) return number;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (bad == std::errc() && end == text.data() + text.size() && number >= -1) return number;
  return invalid(cat(where, " must be the id of an event or its number; got ", printable(text)));
}

std::string id_in(const Call& call) {
  return call.request.path.substr(call.request.path.rfind('/') + 1);
}

Status resume_from(const Call& call, std::string_view name) {
  std::string from = query_value(call.request.query, name);
  if (from.empty()) from = call.request.header("Last-Event-ID");
  LOOM_ASSIGN(const int64_t after, event_number(from, name));
  return call.models.streams().resume(id_in(call), after, call.reply);
}

void resume_stream(const Call& call) {
  const Status done = resume_from(call, "after");
  if (!done.ok()) send_error(*call.reply, openai_errors(), done.error());
}

// OpenAI's request for the rest of a response.
void resume_response(const Call& call) {
  Status done = unsupported("responses are kept as streams alone: ask with ?stream=true");
  if (query_value(call.request.query, "stream") == "true")
    done = resume_from(call, "starting_after");
  if (!done.ok()) send_error(*call.reply, openai_errors(), done.error());
}

void stop_stream(const Call& call) {
  const Status done = call.models.streams().stop(id_in(call));
  if (!done.ok()) return send_error(*call.reply, openai_errors(), done.error());
  send_json(*call.reply, 200, object("id", std::string_view(id_in(call)), "stopped", true));
}

}  // namespace

void add_streams(std::vector<Route>& routes) {
  Route get{"GET", "/v1/streams/*", true, resume_stream};
  get.query = {{"after", {}, false}};
  routes.push_back(std::move(get));
  routes.push_back({"DELETE", "/v1/streams/*", true, stop_stream});
  Route response{"GET", "/v1/responses/*", true, resume_response};
  response.query = {{"stream", {"true"}, true}, {"starting_after", {}, false}};
  routes.push_back(std::move(response));
}

}  // namespace loom::core
