// Networks that have the cells of a decoder (decoder.hpp) as language models: what a file of the
// original holds, or what was trained here as a plain network.
#pragma once

#include <memory>
#include <string>

#include "bridge/network_source.hpp"
#include "llm/model_source.hpp"

namespace loom::core {

// The configuration whose decoder_grid() is `grid`; number types of cells are passed over. Its
// class is the first that can say all of it. positions: what the model was made for. Errors:
// unsupported, naming the cell that no decoder has there.
Result<DecoderConfig> decoder_config_of(const GridSpec& grid, int64_t positions);

// `text`: a folder with tokenizer.json, and tokenizer_config.json where it has a chat template, or
// a tokenizer.json alone. Errors: those of decoder_config_of(); not_found.
Result<std::unique_ptr<ModelSource>> decoder_of_network(std::unique_ptr<NetworkSource> network,
                                                        const std::string& text, int64_t positions);

}  // namespace loom::core
