// A WebGPU library, opened at run time: Dawn or wgpu-native. Nothing is linked.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "backend/webgpu/runtime/wgpu.hpp"
#include "base/result.hpp"

namespace loom::core::wgpu {

// Names that are tried in this order if the caller gives no path, in the system's library
// locations.
std::span<const std::string_view> library_names();

// Opens `path`. If it is empty, opens the first of library_names() that works. The library stays
// open for the life of the process, because drivers leave threads running. Errors: not_found with
// the names that were tried, unsupported for a library that lacks a function.
Result<Api> open_library(const std::string& path, std::string* opened = nullptr);

}  // namespace loom::core::wgpu
