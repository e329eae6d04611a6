// LoRA adapters from files of their own.
#pragma once

#include <string>
#include <vector>

#include "llm/model.hpp"

namespace loom::core {

// Adds adapters to a model: folders of PEFT, "PATH" or "PATH=WEIGHT". Errors: those of
// read_peft_adapter(); unsupported for an encoder, and in a build without Hugging Face folders.
Status add_lora(LanguageModel& model, const std::vector<std::string>& paths, ThreadPool& pool);

}  // namespace loom::core
