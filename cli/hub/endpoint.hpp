// Addresses of hubs.
#pragma once

#include <string>

#include "loom/result.hpp"

namespace loom::cli {

// HF_ENDPOINT, without a slash at the end; otherwise the address of the Hugging Face Hub.
std::string hub_endpoint();
// Whether HF_HUB_OFFLINE forbids the network: any value but 0, false, no, off and empty.
bool is_offline();
// "http://127.0.0.1:8000/" -> without the slash. Errors: invalid_argument (no http or https
// address).
Result<std::string> checked_endpoint(const std::string& text);
// May a token go there? Over HTTPS, or to this machine.
bool may_carry_token(const std::string& endpoint);

}  // namespace loom::cli
