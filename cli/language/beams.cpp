#include "beams.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "../shared/json.hpp"
#include "../shared/progress.hpp"

namespace loom::cli {

int write_beams(const Model& model, const std::string& prompt, const std::vector<TokenId>& ids,
                BeamOptions options, const BeamOutput& how) {
  Progress bar("searching", "tokens", how.quiet || how.json);
  const int64_t most = options.max_tokens;
  options.progress = [&](int64_t tokens) {
    bar.update(tokens, most);
    return !interrupted();
  };
  const Result<std::vector<BeamText>> found = beam_search(model, ids, options);
  bar.finish();
  if (interrupted()) return fail_interrupted();
  if (!found.ok()) return fail(found.error());
  const auto count = std::min(found->size(), static_cast<size_t>(how.texts));
  for (size_t i = 0; i < count; ++i) {
    const BeamText& text = (*found)[i];
    if (how.json) {
      JsonObject()
          .set("text", text.text)
          .set("token_ids", text.token_ids)
          .set("prompt_token_ids", ids)
          .set("score", text.score)
          .set("stop_reason", stop_reason_name(text.stop))
          .print();
    } else {
      write_out((how.no_echo ? std::string() : prompt) + text.text + "\n");
    }
  }
  return kDone;
}

}  // namespace loom::cli
