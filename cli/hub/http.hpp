// GET and HEAD over HTTP(S). A cover of libcurl, which http.cpp alone includes. Redirects are
// followed; the token goes to the host that was asked and to no other.
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
  std::string token;   // "": none
  int64_t stall = 30;  // seconds without a byte, or without a connection, that end a request
  // Gives a connected socket for each new connection, or -1. Unset: TCP to the host of the URL.
  std::function<int()> socket = {};
};

struct HttpReply {
  int64_t status = 0;                          // of the last reply, after redirects
  std::string failure;                         // no whole reply came: why
  std::map<std::string, std::string> headers;  // of the last reply; names in small letters
  // X-Linked-*, X-Repo-Commit and the like may stand in a redirect: of all replies.
  std::map<std::string, std::string> all_headers;
  int64_t retry_after = 0;  // seconds

  bool ok() const { return failure.empty() && status >= 200 && status < 300; }
  // May the same request be answered another time?
  bool worth_another_try() const;
  std::string header(const std::string& name) const;  // of the last reply; "": none
};

struct HttpRequest {
  std::string url;
  bool head = false;
  int64_t from = 0;      // bytes to leave out at the beginning
  std::string if_range;  // an ETag: with another one the whole file comes
  // Before the first byte of the body; false ends the request without a failure.
  std::function<bool(const HttpReply&)> begin;
  std::function<bool(std::string_view)> write;  // the body; false likewise
};

// What sends a request and reads its reply; for one thread.
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
