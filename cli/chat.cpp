#include "chat.hpp"

#include <algorithm>

namespace loom::cli {

Chat::Chat(const Model& model, ModelSession& session, const std::string& system,
           ChatOptions options)
    : model_(&model), session_(&session), options_(std::move(options)) {
  if (!system.empty()) turns_.push_back({"system", system});
}

Result<Chat::Piece> Chat::ask(const std::string& question) {
  turns_.push_back({"user", question});
  Piece piece;
  LOOM_ASSIGN(piece.all, model_->tokenize_chat(turns_, options_));
  const auto [fed, all] =
      std::mismatch(fed_.begin(), fed_.end(), piece.all.begin(), piece.all.end());
  auto same = static_cast<size_t>(all - piece.all.begin());
  // The logits of the last token are needed, so it is always fed.
  if (same == piece.all.size() && same > 0) --same;
  session_->rewind(static_cast<int64_t>(same));
  piece.fresh.assign(piece.all.begin() + static_cast<std::ptrdiff_t>(same), piece.all.end());
  fed_ = piece.all;
  return piece;
}

Result<ReplyParser> Chat::reply_parser() const {
  LOOM_ASSIGN(const std::string prompt, model_->render_chat(turns_, options_));
  return model_->reply_parser(prompt, options_.tools);
}

void Chat::add_reply(const Generation& reply) {
  turns_.push_back({"assistant", reply.text});
  fed_.insert(fed_.end(), reply.token_ids.begin(),
              reply.token_ids.begin() + static_cast<std::ptrdiff_t>(reply.decode_steps));
}

}  // namespace loom::cli
