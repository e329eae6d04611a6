// The configuration of a decoder to and from the metadata of a GGUF file. Reading goes through the
// reader of config.json, so that every bound and every refusal is the same for both kinds of file.
#pragma once

#include "formats/config/config.hpp"
#include "formats/gguf/file.hpp"
#include "formats/gguf/names.hpp"
#include "formats/gguf/write.hpp"

namespace loom::core {

// Errors: unsupported (another architecture, an unsupported key of it), bad_file.
Result<DecoderConfig> read_gguf_config(const Gguf& gguf, const DecoderFamily& family);

// general.architecture and the keys under it. Errors: unsupported (a setting without a key in the
// architecture, found by reading the output back).
Status write_gguf_config(const DecoderConfig& config, const DecoderFamily& family,
                         GgufMetadata& metadata);

}  // namespace loom::core
