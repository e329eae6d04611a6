#include "remote/model.hpp"

#include <utility>

#include "base/text.hpp"

namespace loom::core {
namespace {

class DonatedLanguageModel final : public DonateModel {
 public:
  struct Worker {
    Model model;
    ModelSession session;
  };
  DonatedLanguageModel(std::shared_ptr<const DonatedModel> keep, std::vector<Worker> workers)
      : keep_(std::move(keep)), workers_(std::move(workers)) {}

  Result<std::vector<TokenId>> infer(size_t worker, std::span<const TokenId> ids, int64_t most,
                                     const DonateGoOn& go_on) override {
    if (ids.empty()) return invalid("input_ids is empty");
    const int64_t vocab = workers_[worker].model.info().vocab;
    for (const TokenId id : ids) {
      if (id >= vocab)
        return make_error(Code::out_of_range, cat("id ", id, "; the model has ", vocab));
    }
    LOOM_ASSIGN(const Generation text, generate(worker, ids, most, go_on));
    std::vector<TokenId> out(ids.begin(), ids.end());
    out.insert(out.end(), text.token_ids.begin(), text.token_ids.end());
    return out;
  }

  Result<std::string> prompt(size_t worker, std::string_view text, int64_t most,
                             const DonateGoOn& go_on) override {
    LOOM_ASSIGN(const std::vector<TokenId> ids, workers_[worker].model.tokenize(text));
    LOOM_ASSIGN(Generation written, generate(worker, ids, most, go_on));
    return std::move(written.text);
  }

 private:
  Result<Generation> generate(size_t worker, std::span<const TokenId> ids, int64_t most,
                              const DonateGoOn& go_on) {
    ModelSession& session = workers_[worker].session;
    session.rewind(0);
    GenerateOptions options;
    options.max_tokens = most;
    options.on_token = [&](const Token&) { return go_on(); };
    options.prefill_progress = [&](int64_t, int64_t) { return go_on(); };
    LOOM_ASSIGN(Generation text, session.generate(ids, options));
    if (text.stop == StopReason::cancelled) return make_error(Code::cancelled, "stopped");
    return text;
  }

  const std::shared_ptr<const DonatedModel> keep_;  // outlives the models
  std::vector<Worker> workers_;
};

}  // namespace

Result<std::shared_ptr<DonateModel>> donate_model(std::vector<Model> models, int64_t context,
                                                  std::shared_ptr<const DonatedModel> keep) {
  std::vector<DonatedLanguageModel::Worker> workers;
  for (Model& model : models) {
    LOOM_ASSIGN(ModelSession session, model.session({.context = context}));
    // The first use of weights checks their hashes. Do it now, so that a damaged model replaces no
    // other.
    constexpr TokenId kAny[] = {0};
    LOOM_TRY(session.feed(kAny));
    workers.push_back({std::move(model), std::move(session)});
  }
  return std::shared_ptr<DonateModel>(
      std::make_shared<DonatedLanguageModel>(std::move(keep), std::move(workers)));
}

DonateMount donate_mount(std::vector<Engine> engines, int64_t context) {
  return [engines = std::move(engines), context](
             std::shared_ptr<const DonatedModel> pushed) -> Result<std::shared_ptr<DonateModel>> {
    std::vector<Model> models;
    for (const Engine& engine : engines) {
      const FileBytes file{pushed->bytes.view(), "the pushed model", true};
      LOOM_ASSIGN(Model model, Model::load(engine, file));
      models.push_back(std::move(model));
    }
    return donate_model(std::move(models), context, std::move(pushed));
  };
}

}  // namespace loom::core
