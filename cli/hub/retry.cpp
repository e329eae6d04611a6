#include "retry.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <thread>

#include "../shared/console.hpp"

namespace loom::cli {
namespace {

constexpr int64_t kLongestWait = 300;  // longest wait in seconds that a hub may request
constexpr int64_t kFirstWait = 500;    // milliseconds

std::string reply_text(const HttpReply& reply) {
  if (!reply.failure.empty()) return reply.failure;
  const std::string delay = reply.header("x-error-message");
  return fmt::format("the hub answers {}{}", reply.status, delay.empty() ? "" : ": " + delay);
}

}  // namespace

Error interrupted_error() {
  return Error{Code::cancelled, "interrupted", {}, -1};
}

Error refusal(const HttpReply& reply, const HubName& name, const FetchOptions& options,
              const std::string& what) {
  const std::string code = reply.header("x-error-code");
  const std::string page = options.endpoint + "/" + name.repo;
  const std::string get_token =
      "set HF_TOKEN to a token of the hub, or put it into ~/.cache/huggingface/token";
  std::string says;
  Code kind = Code::not_found;
  if (code == "GatedRepo" || reply.status == 403) {
    kind = Code::io_error;
    says = fmt::format(
        "the hub refuses {} (403); accept the terms of the model at {}, and {}", what, page,
        options.token.empty() ? get_token : "use a token of that account that may read it");
  } else if (reply.status == 401) {
    kind = Code::io_error;
    says = options.token.empty()
               ? fmt::format(
                     "no such model, or one that is not open to all (401); check the name, "
                     "or {}",
                     get_token)
               : "no such model, or the token may not read it (401); check both";
  } else if (code == "RevisionNotFound") {
    says = fmt::format("has no revision '{}'; see {}/tree/main", name.wanted_revision(), page);
  } else if (code == "EntryNotFound") {
    says = fmt::format("has no file {} any more; pull again", what);
  } else if (reply.status == 404) {
    says = fmt::format("no such model or revision '{}' at {}; check the name",
                       name.wanted_revision(), options.endpoint);
  } else {
    kind = Code::io_error;
    says = fmt::format("{} could not be loaded: {}; run the same command to go on", what,
                       reply_text(reply));
  }
  return Error{kind, says, name.repo, -1};
}

Status Patience::wait(const HttpReply& reply, const HubName& name, const FetchOptions& options,
                      const std::string& what, const std::function<bool()>& stop) {
  if (interrupted()) return interrupted_error();
  if (!reply.worth_another_try() || failed_ >= retries_ || reply.retry_after > kLongestWait)
    return refusal(reply, name, options, what);
  const int64_t wait_ms =
      std::max(kFirstWait << std::min<int64_t>(failed_, 6), reply.retry_after * 1000);
  ++failed_;
  if (options.note)
    options.note(fmt::format("{}: {}; attempt {} of {} in {:.1f} s", what, reply_text(reply),
                             failed_, retries_, static_cast<double>(wait_ms) / 1000));
  constexpr int64_t kPart = 50;  // milliseconds between looks at an interrupt
  for (int64_t left = wait_ms; left > 0; left -= kPart) {
    if (interrupted() || stop()) return interrupted_error();
    const std::chrono::milliseconds part(std::min(left, kPart));
    options.sleep ? options.sleep(part) : std::this_thread::sleep_for(part);
  }
  return {};
}

}  // namespace loom::cli
