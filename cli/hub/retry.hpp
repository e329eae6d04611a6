// Requests to a hub that are asked again where that may help, and what a refusal means for a
// person.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "http.hpp"
#include "name.hpp"

namespace loom::cli {

struct FetchOptions {
  std::string endpoint;  // checked_endpoint()
  std::string token;     // "": none
  int64_t parallel = 4;  // files at a time
  int64_t retries = 5;   // in a row without a byte
  int64_t stall = 30;    // HttpOptions::stall
  // Bytes that are here, in all, and that came over the network; called 10 times a second.
  std::function<void(int64_t done, int64_t total, int64_t loaded)> progress;
  // What a person should know while it goes on.
  std::function<void(const std::string&)> note;
  // Makes what talks to the hub, for each thread. Unset: Http.
  std::function<std::unique_ptr<HttpClient>()> client = {};
  // Sleeps between attempts. Unset: this thread does.
  std::function<void(std::chrono::milliseconds)> sleep = {};
};

// How long to wait before the next attempt: twice as long each time, or what the hub asks for.
class Patience {
 public:
  explicit Patience(int64_t retries) : retries_(retries) {}
  void forget() { failed_ = 0; }  // something came
  // Sleeps; an Error of `reply` where there is no further attempt, or of an interrupt.
  // `stop`: asked meanwhile, ends the sleep.
  Status wait(const HttpReply& reply, const HubName& name, const FetchOptions& options,
              const std::string& what, const std::function<bool()>& stop);

 private:
  int64_t retries_, failed_ = 0;
};

// What a reply that is no success means. `what`: the file, or "the list of files".
Error refusal(const HttpReply& reply, const HubName& name, const FetchOptions& options,
              const std::string& what);

Error interrupted_error();

}  // namespace loom::cli
