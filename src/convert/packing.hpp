// How parameters are packed into a format that keeps their number types. Private to the room.
#pragma once

#include <optional>

#include "bridge/entity_network.hpp"
#include "convert/convert.hpp"

namespace loom::core {

// The type that the rules give a matrix; unset: they say nothing.
std::optional<DType> ruled(const Param& param, const ConvertOptions& options);
// All but the type. `options` must outlive the policy.
PackPolicy policy_of(const ConvertOptions& options);
// Of a network: the first rule that fits, else options.dtype, else as stored.
PackPolicy network_policy(const ConvertOptions& options);

}  // namespace loom::core
