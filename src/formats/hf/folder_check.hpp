// What a Hugging Face folder says twice: the fields of config.json beside the tensors. A tensor
// that contradicts a field is an error that names both; the rest that nothing reads is a note.
// Which tensors the parameters use is the caller's list: this file knows names, and reads values of
// a tied head only.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "io/safetensors.hpp"
#include "llm/decoder_role.hpp"
#include "llm/model_source.hpp"

namespace loom::core {

// The tensors that parameters are read from, by their names in the file. No role: of an encoder.
using TensorUses = std::map<std::string, std::optional<DecoderRole>, std::less<>>;

// " (config.json says mlp_bias: true)": the field that asks for a parameter of this role, or the
// fields that set its shape. "": its class has it always.
std::string presence_claim(const ModelSource& source, DecoderRole role);
std::string shape_claim(const ModelSource& source, DecoderRole role);

// Errors: bad_file, if config.json has a size by two names, and they differ: transformers takes
// num_hidden_layers of a GPT-2 for its n_layer, and head_dim wherever it is.
Status check_hf_sizes(const ModelSource& source);

// Errors: bad_file, if a tensor that is not used contradicts config.json or belongs to a block.
// Returns notes: other tensors that are not used, and a type that config.json says otherwise.
Result<std::vector<std::string>> check_hf_tensors(const ModelSource& source,
                                                  const SafeTensors& tensors,
                                                  const TensorUses& uses);

}  // namespace loom::core
