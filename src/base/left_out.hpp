// The error of a build for a part that it does not contain (cmake/options.cmake).
#pragma once

#include <string>

#include "base/result.hpp"
#include "base/text.hpp"

// How to get a missing part. `option` is a CMake option of a build with that part. Only the starter
// program (cmake/starter.cmake) omits parts that the same build folder can provide.
#ifdef LOOM_STARTER
#define LOOM_BUILD_WITH(option) "build the rest: cmake --build --preset release"
#else
#define LOOM_BUILD_WITH(option) "build with -D" option
#endif

namespace loom::core {

// `part`: "reader for ONNX files"; `how`: LOOM_BUILD_WITH("LOOM_ONNX=ON").
inline Error left_out_of_build(std::string_view part, std::string_view how,
                               std::string where = {}) {
  return unsupported(cat("this build has no ", part, "; ", how), std::move(where));
}

}  // namespace loom::core
