// Notes on the configuration files of a Hugging Face folder: fields of config.json that are not
// used, and files that disagree. Nothing here is an error: config.cpp has read what the model
// needs.
#pragma once

#include <string>
#include <vector>

#include "llm/model_source.hpp"

namespace loom::core {

// One line each, for a person.
std::vector<std::string> hf_config_notes(const ModelSource& source);

}  // namespace loom::core
