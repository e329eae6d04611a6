// Selects the number types of parameters in formats that keep them. Private to the room.
#pragma once

#include <optional>

#include "bridge/entity_network.hpp"
#include "convert/convert.hpp"

namespace loom::core {

// The type that the rules give a matrix; unset if none matches.
std::optional<DType> ruled(const Param& param, const WriteOptions& options);
// Everything except the type. `options` must outlive the policy.
PackPolicy policy_of(const WriteOptions& options);
// For a network: the first matching rule, else options.dtype, else as stored.
PackPolicy network_policy(const WriteOptions& options);

}  // namespace loom::core
