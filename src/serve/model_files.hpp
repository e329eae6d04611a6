// Model files that another program changes in place while they are served.
#pragma once

#include "base/result.hpp"

namespace loom::core {

// Call it before sending results of a model: its weights may have changed on disk. Costs a system
// call per mapped file. Any thread. Errors: io_error, which names the file.
Status check_model_files();

}  // namespace loom::core
