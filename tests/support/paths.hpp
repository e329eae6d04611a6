// Where the repository and the built programs are, for tests. Test files name no path of a machine:
// paths.cpp alone is compiled with them, so a compiler cache serves every clone.
#pragma once

#include <string>
#include <string_view>

namespace loom_test {

// The absolute path of a file of the repository: source_path("models/stories.entity").
std::string source_path(std::string_view below_root);

// The program `loom` of this build.
const std::string& program_path();

// Libraries that tests load: one that prints while it is loaded, and a WebGPU library with faults.
// Empty if this build has none.
const std::string& noisy_library_path();
const std::string& faulty_webgpu_path();

}  // namespace loom_test
