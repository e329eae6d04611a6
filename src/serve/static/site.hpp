// Static files of a folder over HTTP, with the headers that isolate a page. An isolated page may
// share memory, so its WebAssembly has threads.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "serve/dialects/dialects.hpp"

namespace loom::core {

// The type of a file by its ending: "text/html; charset=utf-8" of "index.html".
std::string_view content_type(std::string_view name);

// Adds the files of `folder` after all other routes: each at its path, index.html at its folder.
// Hidden files and links out of the folder do not exist. Answers HEAD, ranges and If-None-Match.
// Errors: not_found (no such folder).
Status add_site(std::vector<Route>& routes, const std::string& folder);

}  // namespace loom::core
