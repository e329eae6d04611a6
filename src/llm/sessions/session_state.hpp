// The state of a sequence in a file (session_state.cpp): what LlmSession and LlmBatch have in
// common.
#pragma once

#include <span>
#include <vector>

#include "io/files/file.hpp"
#include "llm/model.hpp"

namespace loom::core {

// The source or target of a state: a sequence of a model, and everything that its bits depend on.
struct StateTarget {
  const LanguageModel* model;
  DType cache;
  ActivationMode activations;
  int64_t context;                     // positions that there is room for
  const std::vector<KvCache>& caches;  // on the host
  std::span<const int32_t> pages{};    // of the sequence (ops/recording/pages.hpp); empty: in order
  bool device = false;                 // computed by one, whose bits are not those of the CPU
  // Recurrent states of the sequence, one row each, and the number of tokens that they have read.
  std::vector<Tensor> states{};
  int64_t state_position = 0;
};

// A file that was checked: counts, fingerprint, hash and ids.
struct StateFile {
  MappedFile file;
  std::vector<TokenId> fed;
  std::vector<float> logits;
  uint64_t caches_at = 0;
  int64_t state_position = 0;
};

// Errors of both: unsupported (recurrent states of a session that is not ragged), those of files;
// of read_state also bad_file and out_of_range (a context that is too small).
Status write_state(const FileRef& path, const StateTarget& from, std::span<const TokenId> fed,
                   std::span<const float> logits);
Result<StateFile> read_state(const FileRef& path, const StateTarget& to);
// Keys, values and recurrent states of a file that read_state() gave for the same target.
void restore_caches(const StateFile& file, const StateTarget& to);

}  // namespace loom::core
