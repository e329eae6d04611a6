// Which variants of GPU kernels searches found fastest (docs/webgpu.md), in a file: per adapter,
// for one version of the table of variants. What cannot be read is passed over, and what cannot be
// written is not: the next process searches again.
#pragma once

#include <string>
#include <vector>

#include "backend/webgpu/webgpu.hpp"

namespace loom::core {

struct GpuChoices {
  std::vector<webgpu::Choice> choices;
  std::string note;  // why there are none
};

// Of this adapter.
GpuChoices read_gpu_choices(const std::string& path, const webgpu::AdapterReport& adapter);

// Adds `choices` to those of this adapter, and keeps those of others. Makes the file's folder, and
// the one that is in.
Status write_gpu_choices(const std::string& path, const webgpu::AdapterReport& adapter,
                         const std::vector<webgpu::Choice>& choices);

// Gives `gpu` what the file holds, and the file what `gpu` finds from now on. Returns the note.
std::string keep_gpu_choices(webgpu::Backend& gpu, const std::string& path);

}  // namespace loom::core
