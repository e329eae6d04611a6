// Modelfiles as settings of a served model.
#pragma once

#include <string>

#include "../models/modelfile.hpp"
#include "serve/service.hpp"

namespace loom::cli {

// `defaults`: of --defaults, which precede the parameters of the file. Errors: invalid_argument (a
// parameter that is an option of the whole server; defaults that are not a JSON object).
Result<core::ModelSettings> settings_of(const Modelfile& file, const std::string& defaults);

}  // namespace loom::cli
