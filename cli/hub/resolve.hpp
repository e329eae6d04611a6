// The one place where a model argument of a command line becomes a path.
#pragma once

#include <string>

#include "loom/result.hpp"

namespace loom::cli {

// A path that exists, or looks like one, is returned unchanged: opening it gives the error.
// Otherwise it is the name of a model: "NAME", "ORG/NAME", "hf:ORG/NAME", "hf.co/ORG/NAME" or an
// address of a page, with :FILE and @REVISION. A model that is not in the cache is downloaded if
// the name says that it is of the hub (is_hub_name). `quiet`: without progress and notes. Errors:
// those of download_model(); not_found, with what to pull; invalid_argument (several models, or
// several files of one, have that name).
Result<std::string> resolve_model_path(const std::string& text, bool quiet);

}  // namespace loom::cli
