// What a build says of a part that it was made without (cmake/options.cmake).
#pragma once

#include <string>

#include "base/result.hpp"
#include "base/text.hpp"

namespace loom::core {

// `part`: "reader for ONNX files"; `option`: of CMake, as it has to be for a build with that part.
inline Error left_out_of_build(std::string_view part, std::string_view option,
                               std::string where = {}) {
  return unsupported(cat("this build has no ", part, "; build with -D", option), std::move(where));
}

}  // namespace loom::core
