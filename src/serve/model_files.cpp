#include "serve/model_files.hpp"

#include "base/text.hpp"
#include "io/files/mapped_watch.hpp"

namespace loom::core {

Status check_model_files() {
  const std::string changed = changed_mapped_file();
  if (changed.empty()) return {};
  return make_error(Code::io_error,
                    cat(printable(changed, 200),
                        " was changed in place while it is served; start the server again, and "
                        "replace files by a rename (mv)"));
}

}  // namespace loom::core
