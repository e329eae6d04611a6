// The chat page, as files that a browser asks for (src/serve/page).
#pragma once

#include <string_view>

namespace loom::core {

extern const std::string_view kPageHtml, kPageCss, kPageJs;

}  // namespace loom::core
