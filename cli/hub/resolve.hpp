// The one place where a name on a command line becomes a path.
#pragma once

#include <string>

#include "loom/result.hpp"

namespace loom::cli {

// A path that exists, or looks like one, stays as it is: what opens it says what is wrong. Else it
// is a model that was pulled: "NAME", "ORG/NAME", "hf:ORG/NAME", with :FILE and @REVISION. Errors:
// not_found, with what to pull; invalid_argument (several models, or files of one, have that name).
Result<std::string> resolve_model_path(const std::string& text);

}  // namespace loom::cli
