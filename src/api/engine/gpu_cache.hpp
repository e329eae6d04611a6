// The fastest variants of GPU kernels that searches found (docs/webgpu.md), in a file: per adapter,
// for one version of the table of variants. Files that cannot be read or written are ignored: the
// next process searches again.
#pragma once

#include <string>
#include <vector>

#include "backend/webgpu/webgpu.hpp"

namespace loom::core {

struct GpuChoices {
  std::vector<webgpu::Choice> choices;
  std::string note;  // the reason if there are none
};

// Reads the choices for this adapter.
GpuChoices read_gpu_choices(const std::string& path, const webgpu::AdapterReport& adapter);

// Adds `choices` to those of this adapter, and keeps those of others. Creates the file's folder and
// its parent.
Status write_gpu_choices(const std::string& path, const webgpu::AdapterReport& adapter,
                         const std::vector<webgpu::Choice>& choices);

// Loads the file into `gpu`, and saves later choices of `gpu` to the file. Returns the note.
std::string keep_gpu_choices(webgpu::Backend& gpu, const std::string& path);

}  // namespace loom::core
