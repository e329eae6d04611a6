// The configuration of a decoder to and from the metadata of a GGUF file. Reading goes through the
// reader of config.json, so that every bound and every refusal is the same for both kinds of file.
#pragma once

#include "io/gguf.hpp"
#include "io/gguf_write.hpp"
#include "io/hf_config.hpp"
#include "llm/gguf_names.hpp"

namespace loom::core {

// Errors: unsupported (another architecture, a key of it that we cannot honour), bad_file.
Result<HfConfig> read_gguf_config(const Gguf& gguf, const GgufArchitecture& architecture);

// general.architecture and the keys under it. Errors: unsupported (something that no key of the
// architecture says, found by reading back what was written).
Status write_gguf_config(const HfConfig& config, const GgufArchitecture& architecture,
                         GgufMetadata& metadata);

}  // namespace loom::core
