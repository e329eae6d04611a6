// Retries of requests to a hub, and error messages for refusals.
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
  std::string token;     // may be empty
  int64_t parallel = 4;  // files at a time
  int64_t retries = 5;   // consecutive, without progress
  int64_t stall = 30;    // HttpOptions::stall
  // Bytes present, total, and loaded over the network; called 10 times a second.
  std::function<void(int64_t done, int64_t total, int64_t loaded)> progress;
  // Receives remarks for people.
  std::function<void(const std::string&)> note;
  // Creates the client of each thread. If it is unset, Http.
  std::function<std::unique_ptr<HttpClient>()> client = {};
  // Sleeps between attempts. If it is unset, this thread does.
  std::function<void(std::chrono::milliseconds)> sleep = {};
};

// The delay before the next attempt: doubled each time, or as the hub requests.
class Patience {
 public:
  explicit Patience(int64_t retries) : retries_(retries) {}
  void forget() { failed_ = 0; }  // after progress
  // Sleeps. Returns the Error of `reply` after the last attempt, or of an interrupt. `stop` is
  // polled meanwhile and ends the sleep.
  Status wait(const HttpReply& reply, const HubName& name, const FetchOptions& options,
              const std::string& what, const std::function<bool()>& stop);

 private:
  int64_t retries_, failed_ = 0;
};

// The error for an unsuccessful reply. `what`: the file, or "the list of files".
Error refusal(const HttpReply& reply, const HubName& name, const FetchOptions& options,
              const std::string& what);

Error interrupted_error();

}  // namespace loom::cli
