// The GPU of an engine. Code outside of gpu.cpp needs no backend for GPUs; a program without one
// links a gpu.cpp that was compiled with LOOM_WITHOUT_WEBGPU. Private to the room.
#pragma once

#include "api/engine/impl.hpp"

namespace loom::core {

// Sets `gpu`, `ops` and the reported device. impl.ops must be set: it computes on the CPU what the
// GPU cannot. Errors: those of Backend::open(); unsupported if there is no backend.
Status open_gpu(const EngineOptions& options, Engine::Impl& impl);

// Bytes of the buffers on the GPU. 0 if the CPU computes.
int64_t gpu_bytes(const Engine::Impl& impl);

// How many commands of the GPU's lists ran on the CPU. 0 if the CPU computes.
int64_t num_cpu_fallbacks(const Engine::Impl& impl);

// The variants of large products. Empty in a program without a backend for GPUs.
std::vector<std::string> gpu_variants();

// How many ops have a kernel for GPUs. 0 in a program without a backend for GPUs.
int num_gpu_kernels();

}  // namespace loom::core
