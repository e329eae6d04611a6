// Readers of the members of tokenizer.json as parts of a TokenizerSpec. Private to the room.
#pragma once

#include "text/node.hpp"
#include "text/tokenizer_spec.hpp"

namespace loom::core::text {

// Reads a model of any kind.
Status read_model(const Node& model, TokenizerSpec& spec);
Result<AddedTokenSpec> read_added_token(const Node& node);
// `node` is the member, which may be null.
Result<std::vector<NormalizerStep>> read_normalizer(const Node& node);
Result<std::vector<PreTokenizerStep>> read_pre_tokenizer(const Node& node);
Result<std::vector<DecoderStep>> read_decoder(const Node& node);
Status read_post_processor(const Node& node, TokenizerSpec& spec);
// {"String": "..."} or {"Regex": "..."}
Result<PatternSpec> read_pattern(const Node& node);

}  // namespace loom::core::text
