// Who may ask a server of this machine: names it goes by, pages of other origins, secrets.
#pragma once

#include <string>
#include <string_view>

namespace loom::core {

// As long for a wrong key as for the right one, wherever they differ.
bool same_secret(std::string_view a, std::string_view b);
// What follows "Bearer" in an Authorization header; empty: something else.
std::string_view bearer_token(std::string_view authorization);
// "localhost:8080" and "[::1]:8080" without the port.
std::string host_name(std::string_view host);
// Made of what numbers are made of: a web page cannot give a number another meaning, as it can a
// name.
bool is_number(std::string_view host);
// A page of this machine, at any port: "http://localhost:3000".
bool is_local_page(std::string_view origin);

}  // namespace loom::core
