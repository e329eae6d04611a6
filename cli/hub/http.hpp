// GET and HEAD over HTTP(S). It wraps libcurl, which only http.cpp includes. Redirects are
// followed; the token is sent only to the original host.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "loom/result.hpp"

namespace loom::cli {

struct HttpOptions {
  std::string token;   // may be empty
  int64_t stall = 30;  // seconds without data, or without a connection, that end a request
  // Returns a connected socket for each new connection, or -1. If it is unset, TCP to the host of
  // the URL.
  std::function<int()> socket = {};
};

struct HttpReply {
  int64_t status = 0;                          // of the last reply, after redirects
  std::string failure;                         // why there is no complete reply
  std::map<std::string, std::string> headers;  // of the last reply; names in lower case
  // Headers of all replies: X-Linked-*, X-Repo-Commit and others may be in a redirect.
  std::map<std::string, std::string> all_headers;
  int64_t retry_after = 0;  // seconds

  bool ok() const { return failure.empty() && status >= 200 && status < 300; }
  // Whether a retry may succeed.
  bool worth_another_try() const;
  std::string header(const std::string& name) const;  // of the last reply; may be empty
};

struct HttpRequest {
  std::string url;
  bool head = false;
  int64_t from = 0;      // bytes to skip at the beginning
  std::string if_range;  // an ETag: if it differs, the whole file is sent
  // Called before the first byte of the body; false ends the request without a failure.
  std::function<bool(const HttpReply&)> begin;
  std::function<bool(std::string_view)> write;  // receives the body; false likewise
};

// Sends requests and reads replies; for one thread.
class HttpClient {
 public:
  virtual ~HttpClient() = default;
  virtual HttpReply send(const HttpRequest& request) = 0;
};

// One connection. Interrupts (console.hpp) end a request.
class Http final : public HttpClient {
 public:
  explicit Http(HttpOptions options);
  Http(Http&&) noexcept;
  ~Http() override;
  HttpReply send(const HttpRequest& request) override;

  // "a b" -> "a%20b"; `keep_slashes`: for paths.
  static std::string escape(std::string_view text, bool keep_slashes);

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace loom::cli
