// What computes the jobs: a language model, on as many engines as there are workers, because one
// engine serves one computation at a time. Greedy, so that the same job has the same answer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "donate/upload.hpp"
#include "loom/language_model.hpp"

namespace loom::core {

// False: nobody needs the answer any more.
using DonateGoOn = std::function<bool()>;

// Called on the thread of a worker, with its number; one call at a time for each.
class DonateModel {
 public:
  virtual ~DonateModel() = default;
  // `ids` and, after them, at most `most` ids that go on from there, fewer where the model ends the
  // text or its context is full. Errors: those of ModelSession::generate(); cancelled.
  virtual Result<std::vector<TokenId>> infer(size_t worker, std::span<const TokenId> ids,
                                             int64_t most, const DonateGoOn& go_on) = 0;
  // The text that goes on from `text`, at most `most` tokens. Errors: likewise; not_found (a model
  // without a tokenizer).
  virtual Result<std::string> prompt(size_t worker, std::string_view text, int64_t most,
                                     const DonateGoOn& go_on) = 0;
};

// Makes a model of what was pushed. Called on the thread of a worker.
using DonateMount =
    std::function<Result<std::shared_ptr<DonateModel>>(std::shared_ptr<const DonatedModel> pushed)>;

// One handle for each worker, each on an engine of its own; sessions of `context` positions are
// made at once, and each reads a token, which compares weights with their hashes. `keep` lives as
// long as the model. Errors: those of Model::session() and of feed().
Result<std::shared_ptr<DonateModel>> donate_model(std::vector<Model> models, int64_t context,
                                                  std::shared_ptr<const DonatedModel> keep = {});
// Pushed bytes are an .entity or GGUF file; their weights are used where they lie, by all engines.
DonateMount donate_mount(std::vector<Engine> engines, int64_t context);

}  // namespace loom::core
