// A network with its weights as JSON: the description of network_json.hpp with one more member:
//   "params": [{"path": "(0, 0, 0, 0)/weight", "layout": "r16", "dtype": "int8",
//               "shape": [4, 3], "hash": "...", "data": "base64"}, ...].
// Its order is that of Network::params(). A trained network also has "model" (docs/entity.md) and:
//   "normalization": {"shift": [0.5, 2], "scale": [1, 0.25]}.
// It has a number per value of an input. Layout, type and bytes are those of the blobs of an
// .entity file (docs/entity.md). So equal networks are equal texts, and conversions lose nothing.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "bridge/network_source.hpp"
#include "ops/families/fwd.hpp"

namespace loom::core {

Result<std::string> write_network_checkpoint(const NetworkSource& source, const PackPolicy& policy,
                                             ThreadPool& pool);
// Errors: bad_file with the byte and the path; a parameter that does not match its hash.
Result<std::unique_ptr<NetworkSource>> parse_network_checkpoint(std::string_view text,
                                                                const std::string& where);
// Whether the text has a member "params".
bool is_network_checkpoint(const JsonValue& json);

}  // namespace loom::core
