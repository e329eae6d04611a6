#include "serve/page.hpp"

#include "serve/dialects/dialects.hpp"

namespace loom::core {
namespace {

// The page runs its own script and asks its own server: nothing that a model writes can load, run
// or send anything.
void show(const Call& call, std::string_view type, std::string_view text) {
  call.reply->send(200,
                   {{"Content-Type", std::string(type)},
                    {"Content-Security-Policy",
                     "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
                     "style-src-attr 'unsafe-inline'; form-action 'none'; frame-ancestors 'none'; "
                     "base-uri 'none'"},
                    {"X-Content-Type-Options", "nosniff"},
                    {"Referrer-Policy", "no-referrer"},
                    {"Cache-Control", "no-cache"}},
                   std::string(text));
}

void html(const Call& call) {
  show(call, "text/html; charset=utf-8", kPageHtml);
}
void css(const Call& call) {
  show(call, "text/css; charset=utf-8", kPageCss);
}
void script(const Call& call) {
  show(call, "text/javascript; charset=utf-8", kPageJs);
}
// Browsers request one.
void no_icon(const Call& call) {
  call.reply->send(204, {}, {});
}

}  // namespace

void add_page(std::vector<Route>& routes) {
  routes.push_back({"GET", "/", true, html, true, nullptr, "page"});
  routes.push_back({"GET", "/page.css", true, css, true, nullptr, "page"});
  routes.push_back({"GET", "/page.js", true, script, true, nullptr, "page"});
  routes.push_back({"GET", "/favicon.ico", true, no_icon, true, nullptr, "page"});
}

}  // namespace loom::core
