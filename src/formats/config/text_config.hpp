// The language model in a multimodal checkpoint: its config.json as that of a decoder alone.
#pragma once

#include <string>

namespace loom::core {

// config.json of a multimodal class that is known, as the decoder's own: text_config with the class
// and the model_type of a decoder family, the settings outside it that apply, and the defaults of
// the text configuration. Any other text is returned as it is.
std::string text_config_json(std::string text);

}  // namespace loom::core
