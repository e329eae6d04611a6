// Resolves a model name on a command line to a path; nothing else does.
#pragma once

#include <string>

#include "loom/result.hpp"

namespace loom::cli {

// A path that exists, or looks like one, is returned unchanged: opening it gives the error.
// Otherwise it is a pulled model: "NAME", "ORG/NAME", "hf:ORG/NAME", with :FILE and @REVISION.
// Errors: not_found, with what to pull; invalid_argument (several models, or several files of one,
// have that name).
Result<std::string> resolve_model_path(const std::string& text);

}  // namespace loom::cli
