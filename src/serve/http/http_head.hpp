// The head of a request, by RFC 9110 and 9112. Boost.Beast checks its grammar. This checks
// ambiguities that two programs on the way could resolve differently: the end of the body, and the
// host of the request.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "serve/http/http.hpp"

namespace loom::core {

// Why a request is refused. Nothing after such a head is read, because the next request may begin
// anywhere.
struct HttpFault {
  int status = 400;
  std::string message;  // holds no bytes of the client
};

// The request line after its method.
struct HttpTarget {
  std::string_view text;  // "/v1/models?a=b", "http://host/v1/models" or "*"
  bool version_11 = true;
};

// Checks request.headers and fills request.path and request.query. The body must have one length: a
// Content-Length of digits, or "Transfer-Encoding: chunked" (400; 501 for a coding before chunked).
// HTTP/1.1 needs one Host. A target with an authority replaces the value of Host. Headers that
// affect access or the body must be unique.
std::optional<HttpFault> check_head(HttpRequest& request, HttpTarget target);

// The first line and the headers of a reply, each with its line end; without the empty line.
std::string http_reply_head(int status, const HttpHeaders& headers, bool keep_alive);
// A piece of a body in chunks.
std::string http_chunk(std::string_view piece);

// Decodes the escapes of a URL: %41 becomes A; other uses of % stay. `plus`: + becomes a space, as
// in a query.
std::string percent_decoded(std::string_view text, bool plus = false);

// "application/json" of " Application/JSON ; charset=utf-8": the type without its parameters.
std::string media_type(std::string_view content_type);

}  // namespace loom::core
