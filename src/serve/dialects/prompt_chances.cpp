#include "serve/dialects/prompt_chances.hpp"

#include <algorithm>

#include "base/result.hpp"
#include "llm/sampling/token_chances.hpp"
#include "serve/model_files.hpp"

namespace loom::core {
namespace {

// The last token predicts nothing of the prompt, so it is not read.
Result<std::vector<PromptToken>> chances_of(ModelSession& session, std::span<const TokenId> prompt,
                                            int64_t most, const std::function<bool()>& go_on) {
  std::vector<PromptToken> out(prompt.size());
  TokenChances chances;
  const auto sink = [&](int64_t at, std::span<const float> logits) -> Status {
    if (!go_on()) return make_error(Code::cancelled, "stopped");
    const size_t next = static_cast<size_t>(at) + 1;
    chances.look(logits, prompt[next], most);
    out[next] = {chances.logprob, chances.top};
    return {};
  };
  session.rewind(0);
  if (prompt.size() > 1) LOOM_TRY(session.feed_all(prompt.first(prompt.size() - 1), sink));
  return out;
}

}  // namespace

Result<std::vector<std::vector<PromptToken>>> prompt_chances(
    const Model& model, const std::vector<std::vector<TokenId>>& prompts, int64_t most,
    const ModelSessionOptions& options, const std::function<bool()>& go_on) {
  size_t longest = 1;
  for (const std::vector<TokenId>& prompt : prompts) longest = std::max(longest, prompt.size());
  ModelSessionOptions exact = options;
  exact.context = static_cast<int64_t>(longest);
  LOOM_ASSIGN(ModelSession session, model.session(exact));
  std::vector<std::vector<PromptToken>> out;
  for (const std::vector<TokenId>& prompt : prompts) {
    LOOM_ASSIGN(std::vector<PromptToken> one, chances_of(session, prompt, most, go_on));
    out.push_back(std::move(one));
  }
  LOOM_TRY(check_model_files());
  return out;
}

}  // namespace loom::core
