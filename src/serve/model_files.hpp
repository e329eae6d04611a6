// Model files that another program changes in place while they are served.
#pragma once

#include "base/result.hpp"

namespace loom::core {

// Ask before what a model computed is sent: its weights may be other bytes by now. Costs a system
// call per mapped file. Any thread. Errors: io_error, which names the file.
Status check_model_files();

}  // namespace loom::core
