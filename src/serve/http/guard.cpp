#include "serve/http/guard.hpp"

#include "base/text.hpp"
#include "net/address.hpp"

namespace loom::core {

bool same_secret(std::string_view a, std::string_view b) {
  unsigned char different = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size(); ++i)
    different |= static_cast<unsigned char>(a[i] ^ (b.empty() ? '\1' : b[i % b.size()]));
  return different == 0;
}

std::string host_name(std::string_view host) {
  if (!host.empty() && host.front() == '[') {
    const size_t end = host.find(']');
    return std::string(host.substr(1, end == std::string_view::npos ? end : end - 1));
  }
  return to_lower_ascii(host.substr(0, host.find(':')));
}

bool is_number(std::string_view host) {
  return !host.empty() && (host.find(':') != std::string_view::npos ||
                           host.find_first_not_of("0123456789.") == std::string_view::npos);
}

std::string_view bearer_token(std::string_view authorization) {
  constexpr std::string_view kBearer = "bearer ";
  if (to_lower_ascii(authorization.substr(0, kBearer.size())) != kBearer) return {};
  return authorization.substr(kBearer.size());
}

bool is_local_page(std::string_view origin) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!origin.starts_with(scheme)) continue;
    const std::string_view rest = origin.substr(scheme.size());
    const std::string host = host_name(rest);
    return rest.find_first_of("@/\\") == std::string_view::npos &&
           (host == "localhost" || (is_number(host) && is_loopback(host)));
  }
  return false;
}

}  // namespace loom::core
