// Access checks of a local server: host names, web origins, secrets.
#pragma once

#include <string>
#include <string_view>

namespace loom::core {

// Takes the same time for wrong keys as for the right one (constant-time comparison).
bool same_secret(std::string_view a, std::string_view b);
// The token after "Bearer" in an Authorization header; empty for anything else.
std::string_view bearer_token(std::string_view authorization);
// "localhost:8080" and "[::1]:8080" without the port.
std::string host_name(std::string_view host);
// Whether a host is an IP number. A web page can give another meaning to a name, but not to a
// number.
bool is_number(std::string_view host);
// Whether the origin is a page of this machine, at any port: "http://localhost:3000".
bool is_local_page(std::string_view origin);

}  // namespace loom::core
