#include "serve/static/page.hpp"

#include "base/text.hpp"
#include "serve/dialects/dialects.hpp"
#include "serve/static/site.hpp"

namespace loom::core {
namespace {

// The page runs its own script and asks its own server: nothing that a model writes can load, run
// or send anything.
void show(const Call& call, const PageFile& file) {
  call.reply->send(200,
                   {{"Content-Type", std::string(content_type(file.name))},
                    {"Content-Security-Policy",
                     "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
                     "style-src-attr 'unsafe-inline'; form-action 'none'; frame-ancestors 'none'; "
                     "base-uri 'none'"},
                    {"X-Content-Type-Options", "nosniff"},
                    {"Referrer-Policy", "no-referrer"},
                    {"Cache-Control", "no-cache"}},
                   std::string(file.text));
}

// Browsers request one.
void no_icon(const Call& call) {
  call.reply->send(204, {}, {});
}

}  // namespace

void add_page(std::vector<Route>& routes) {
  for (const PageFile& file : page_files()) {
    const std::string path = file.name == "page.html" ? "/" : cat("/page/", file.name);
    routes.push_back({"GET", path, true, [&file](const Call& call) { show(call, file); }, true,
                      nullptr, "page"});
  }
  routes.push_back({"GET", "/favicon.ico", true, no_icon, true, nullptr, "page"});
}

}  // namespace loom::core
