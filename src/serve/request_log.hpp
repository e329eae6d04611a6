// A line of JSON for each finished request: time, method and path, status, duration, tokens. Never
// the text of a prompt or an answer, and never a key.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "serve/http/http.hpp"

namespace loom::core {

// Called once for each request, by the thread that ended its reply.
using LogLine = std::function<void(const std::string& line)>;

// A reply that is logged when it ends. One that is dropped earlier is logged with status 499, the
// common code for a client that disconnected.
std::shared_ptr<HttpReply> logged(std::shared_ptr<HttpReply> reply, const HttpRequest& request,
                                  LogLine log);

}  // namespace loom::core
