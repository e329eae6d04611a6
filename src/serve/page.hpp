// The chat page, as files for a browser (src/serve/page).
#pragma once

#include <string_view>

namespace loom::core {

extern const std::string_view kPageHtml, kPageCss, kPageJs;

}  // namespace loom::core
