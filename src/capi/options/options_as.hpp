// The struct of options that a function takes, of a handle that may hold any.
#pragma once

#include "capi/support.hpp"

namespace loom::capi {

template <class Options, class Variant>
inline constexpr bool kHolds = false;
template <class Options, class... Others>
inline constexpr bool kHolds<Options, std::variant<Others...>> = (std::is_same_v<Options, Others> ||
                                                                  ...);

// A null pointer gives the defaults. Errors: invalid_argument (options of another kind).
template <class Options>
Result<Options> options_as(const loom_options* options) {
  if (options == nullptr) return Options{};
  LOOM_ASSIGN(const AnyOptions* object, object_of(options));
  std::string required = "of another kind";
  if constexpr (kHolds<Options, AnyOptions>) {
    if (const Options* values = std::get_if<Options>(object)) return *values;
    required = "of '" + std::string(kOptionKinds[AnyOptions(Options{}).index()].name) + "'";
  }
  return invalid("these are options of '" + std::string(kOptionKinds[object->index()].name) +
                 "'; give those " + required + ", which loom_options_new() makes");
}

}  // namespace loom::capi
