#include "endpoint.hpp"

#include <algorithm>
#include <cstdlib>

#include "../shared/console.hpp"

namespace loom::cli {

std::string hub_endpoint() {
  const char* setting = std::getenv("HF_ENDPOINT");
  std::string endpoint = setting == nullptr ? "" : setting;
  while (endpoint.ends_with('/')) endpoint.pop_back();
  return endpoint.empty() ? "https://huggingface.co" : endpoint;
}

bool is_offline() {
  const char* setting = std::getenv("HF_HUB_OFFLINE");
  const std::string value = setting == nullptr ? "" : lower(setting);
  return !value.empty() && value != "0" && value != "false" && value != "no" && value != "off";
}

Result<std::string> checked_endpoint(const std::string& text) {
  std::string endpoint = text;
  while (!endpoint.empty() && endpoint.back() == '/') endpoint.pop_back();
  const std::string small = lower(endpoint);
  const size_t host = small.starts_with("https://") ? 8 : small.starts_with("http://") ? 7 : 0;
  if (host == 0 || small.size() == host || small.find_first_of(" \t\r\n?#") != small.npos)
    return Error{Code::invalid_argument, "is not an address of a hub; write it as https://HOST",
                 text, -1};
  return endpoint;
}

bool may_carry_token(const std::string& endpoint) {
  const std::string small = lower(endpoint);
  if (small.starts_with("https://")) return true;
  const std::string rest = small.substr(std::min<size_t>(7, small.size()));
  for (const std::string host : {"127.0.0.1", "localhost", "[::1]"})
    if (rest == host || rest.starts_with(host + ":") || rest.starts_with(host + "/")) return true;
  return false;
}

}  // namespace loom::cli
