// Networks with the cells of a decoder (decoder.hpp) as language models: files of the original
// project, or plain networks trained with Loom.
#pragma once

#include <memory>
#include <string>

#include "bridge/network_source.hpp"
#include "llm/model_source.hpp"

namespace loom::core {

// The configuration whose decoder_grid() is `grid`; number types of cells are ignored. Its class is
// the first that can express it completely. positions: the model's maximum. Errors: unsupported,
// naming the cell that no decoder has there.
Result<DecoderConfig> decoder_config_of(const GridSpec& grid, int64_t positions);

// `text`: a folder with tokenizer.json, and with tokenizer_config.json if it has a chat template,
// or only a tokenizer.json. Errors: those of decoder_config_of(); not_found.
Result<std::unique_ptr<ModelSource>> decoder_of_network(std::unique_ptr<NetworkSource> network,
                                                        const std::string& text, int64_t positions);

}  // namespace loom::core
