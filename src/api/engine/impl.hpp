// The state of the public handles. For this room, the program and the tests; not installed.
#pragma once

#include <mutex>

#include "api/engine/books.hpp"
#include "backend/cpu/cpu.hpp"
#include "base/threads/thread_pool.hpp"
#include "io/files/file_ref.hpp"
#include "io/machine_memory.hpp"
#include "llm/sessions/generate.hpp"
#include "llm/sessions/llm_session.hpp"
#include "loom/engine.hpp"
#include "loom/files.hpp"
#include "loom/language_model.hpp"
#include "loom/tokenizer.hpp"

#ifndef LOOM_WITHOUT_WEBGPU
#include "backend/webgpu/webgpu.hpp"
#endif

namespace loom::core::webgpu {
class Backend;
}

namespace loom {

struct Engine::Impl {
  Impl(int threads, bool exact_threads) : pool(threads, exact_threads) {}
  core::ThreadPool pool;
  std::mutex turn;  // held by the session or trainer that computes
  core::Isa isa = core::Isa::scalar;
  // Null if the CPU computes. Shared, so that destroying an engine does not need the backend. It
  // exists in every build, because rooms with and without LOOM_WITHOUT_WEBGPU share this class.
  std::shared_ptr<core::webgpu::Backend> gpu;
  std::string gpu_cache, gpu_cache_note;  // EngineOptions::gpu_cache, and why it is unused
  core::MemoryBudget memory;              // EngineOptions::memory_limit, or a default
  // Memory for reading files, in total.
  const core::MemoryBudget& budget() const { return memory; }
  const core::Ops* ops = nullptr;
  core::ActivationMode activations = core::ActivationMode::q8;
  EngineInfo info;
  LogSink log;
  std::shared_ptr<core::MemoryTracker> memory_tracker = std::make_shared<core::MemoryTracker>();
  void log_line(LogLevel level, const std::string& line) const {
    if (log) log(level, line);
  }
};

struct Model::Impl {
  std::shared_ptr<Engine::Impl> engine;
  core::LanguageModel model;
  ModelInfo info;
  core::ScopedMemoryUse weights, mapped;
};

struct ModelSession::Impl {
  std::shared_ptr<const Model::Impl> model;
  core::LlmSession session;
  core::ScopedMemoryUse held;
};

struct Tokenizer::Impl {
  std::shared_ptr<const core::Tokenizer> tokenizer;
  core::MemoryBudget budget;
};

struct Generator::Impl {
  core::Generator generator;
};

}  // namespace loom

namespace loom::core {

// The caller's engine, or Engine::shared().
Result<Engine> engine_or_shared(const std::optional<loom::Engine>& engine);

// automatic means `otherwise`.
ActivationMode activation_mode(Activations requested, ActivationMode otherwise);

// Bytes of parameters in their own memory, and in files or borrowed bytes.
int64_t owned_bytes(const Network& network);
int64_t mapped_bytes(const Network& network);

// A file in memory for readers. lasting: the result keeps reading it, so the bytes are copied
// unless they are borrowed, and `memory` is charged for the copy. Errors: invalid_argument
// (borrowed bytes that are not aligned to 64), out_of_memory.
Result<FileRef> file_ref(const FileBytes& file, bool lasting, const MemoryBudget& memory);

// Options of the core session. Errors: invalid_argument.
Result<LlmSessionOptions> session_options(const Model& model, const ModelSessionOptions& options);

// A session with internal options.
Result<LlmSession> make_session(const Model& model, const LlmSessionOptions& options);

}  // namespace loom::core
