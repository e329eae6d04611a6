// Addresses of hubs.
#pragma once

#include <string>

#include "loom/result.hpp"

namespace loom::cli {

// "http://127.0.0.1:8000/" -> without the slash. Errors: invalid_argument (no http or https
// address).
Result<std::string> checked_endpoint(const std::string& text);
// May a token go there? Over HTTPS, or to this machine.
bool may_carry_token(const std::string& endpoint);

}  // namespace loom::cli
