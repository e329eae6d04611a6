// Notes on the configuration files of a Hugging Face folder: unused fields of config.json, and
// files that disagree. None of them is an error: config.cpp has read everything that the model
// needs.
#pragma once

#include <string>
#include <vector>

#include "llm/model_source.hpp"

namespace loom::core {

// One line each, for a person.
std::vector<std::string> hf_config_notes(const ModelSource& source);

}  // namespace loom::core
