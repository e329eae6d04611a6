// What the public handles hold. For this room, the program and the tests; not installed.
#pragma once

#include <mutex>

#include "backend/cpu/cpu.hpp"
#include "backend/webgpu/webgpu.hpp"
#include "io/machine_memory.hpp"
#include "llm/llm_session.hpp"
#include "loom/engine.hpp"
#include "loom/language_model.hpp"

namespace loom {

struct Engine::Impl {
  Impl(int threads, bool exact_threads) : pool(threads, exact_threads) {}
  core::ThreadPool pool;
  std::mutex turn;  // held by the session or trainer that computes
  core::Isa isa = core::Isa::scalar;
  std::unique_ptr<core::webgpu::Backend> gpu;  // null: the CPU computes
  std::string gpu_cache, gpu_cache_note;       // EngineOptions::gpu_cache, and why it is not used
  core::MemoryBudget memory;                   // EngineOptions::memory_limit, or a default
  // What reading files may take, all together.
  const core::MemoryBudget& budget() const { return memory; }
  const core::Ops* ops = nullptr;
  core::ActivationMode activations = core::ActivationMode::q8;
  EngineInfo info;
};

struct Model::Impl {
  std::shared_ptr<Engine::Impl> engine;
  core::LanguageModel model;
  ModelInfo info;
};

struct ModelSession::Impl {
  std::shared_ptr<const Model::Impl> model;
  core::LlmSession session;
};

}  // namespace loom

namespace loom::core {

// automatic: `otherwise`.
ActivationMode activation_mode(Activations wanted, ActivationMode otherwise);

// A session with options that the public interface does not have.
Result<LlmSession> make_session(const Model& model, const LlmSessionOptions& options);

}  // namespace loom::core
