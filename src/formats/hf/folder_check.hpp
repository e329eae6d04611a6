// Consistency of a Hugging Face folder: fields of config.json against tensors. A tensor that
// contradicts a field is an error that names both; other unused tensors are notes. The caller lists
// the tensors that parameters use: this file knows names, and reads values of a tied head only.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "io/weights/safetensors.hpp"
#include "llm/decoder_role.hpp"
#include "llm/model_source.hpp"

namespace loom::core {

// The tensors that parameters are read from, by name in the file. An unset role means an encoder.
using TensorUses = std::map<std::string, std::optional<DecoderRole>, std::less<>>;

// " (config.json says mlp_bias: true)": the field that requires a parameter of this role, or the
// fields that set its shape. The text is empty if the class always has it.
std::string presence_claim(const ModelSource& source, DecoderRole role);
std::string shape_claim(const ModelSource& source, DecoderRole role);

// Errors: bad_file, if config.json has a size under two names with different values. transformers
// takes num_hidden_layers of a GPT-2 for its n_layer, and head_dim in any class.
Status check_hf_sizes(const ModelSource& source);

// Returns notes: other unused tensors, and a type that differs from config.json. Errors: bad_file,
// if an unused tensor contradicts config.json or belongs to a block.
Result<std::vector<std::string>> check_hf_tensors(const ModelSource& source,
                                                  const SafeTensors& tensors,
                                                  const TensorUses& uses);

}  // namespace loom::core
