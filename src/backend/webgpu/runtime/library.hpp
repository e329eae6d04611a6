// A WebGPU library, opened at run time: Dawn or wgpu-native. Nothing is linked.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "backend/webgpu/runtime/wgpu.hpp"
#include "base/result.hpp"

namespace loom::core::wgpu {

// Names that are tried when the caller gives no path, in this order, where the system looks for
// libraries.
std::span<const std::string_view> library_names();

// Opens `path`; empty: the first of library_names() that opens. The library stays open for the life
// of the process: drivers leave threads behind. Errors: not_found with what was tried, unsupported
// for a library that lacks a function.
Result<Api> open_library(const std::string& path, std::string* opened = nullptr);

}  // namespace loom::core::wgpu
