// A line of JSON for each request that was answered: when, what was asked of which path, the
// status, how long it took, tokens. Never the text of a prompt or an answer, and never a key.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "serve/http.hpp"

namespace loom::core {

// Called once for each request, by the thread that ended its reply.
using LogLine = std::function<void(const std::string& line)>;

// A reply that is logged when it ends; one that is dropped before is logged with the status 499, as
// by servers that know no better one for a client that went away.
std::shared_ptr<HttpReply> logged(std::shared_ptr<HttpReply> reply, const HttpRequest& request,
                                  LogLine log);

}  // namespace loom::core
