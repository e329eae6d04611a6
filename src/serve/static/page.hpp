// The chat page, as files for a browser (src/serve/page).
#pragma once

#include <span>
#include <string_view>

namespace loom::core {

struct PageFile {
  std::string_view name, text;
};
std::span<const PageFile> page_files();

}  // namespace loom::core
