// The model that computes the jobs: a language model, with one engine per worker, because an engine
// serves one computation at a time. Sampling is greedy, so that the same job has the same answer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "loom/language_model.hpp"
#include "remote/upload.hpp"

namespace loom::core {

// Returns false if the answer is no longer needed.
using DonateGoOn = std::function<bool()>;

// Called on the thread of a worker, with its number; one call at a time for each.
class DonateModel {
 public:
  virtual ~DonateModel() = default;
  // Returns `ids` and at most `most` ids that continue them; fewer if the model ends the text or
  // its context is full. Errors: those of ModelSession::generate(); cancelled.
  virtual Result<std::vector<TokenId>> infer(size_t worker, std::span<const TokenId> ids,
                                             int64_t most, const DonateGoOn& go_on) = 0;
  // The text that continues `text`, at most `most` tokens. Errors: the same; not_found (a model
  // without a tokenizer).
  virtual Result<std::string> prompt(size_t worker, std::string_view text, int64_t most,
                                     const DonateGoOn& go_on) = 0;
};

// Makes a model of pushed bytes. Called on the thread of a worker.
using DonateMount =
    std::function<Result<std::shared_ptr<DonateModel>>(std::shared_ptr<const DonatedModel> pushed)>;

// One handle for each worker, each with its own engine. Sessions of `context` positions are created
// at once, and each reads a token, which checks the hashes of the weights. `keep` lives as long as
// the model. Errors: those of Model::session() and of feed().
Result<std::shared_ptr<DonateModel>> donate_model(std::vector<Model> models, int64_t context,
                                                  std::shared_ptr<const DonatedModel> keep = {});
// Pushed bytes are an .entity or GGUF file; all engines use their weights in place.
DonateMount donate_mount(std::vector<Engine> engines, int64_t context);

}  // namespace loom::core
