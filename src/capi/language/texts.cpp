// Vectors and ranks of texts, and parsed replies.
#include "capi/options/read_options.hpp"
#include "capi/support.hpp"

static_assert(LOOM_REPLY_ARGUMENTS == static_cast<int>(loom::ReplyPiece::Kind::arguments));

namespace {

using namespace loom;
using namespace loom::capi;

Result<EmbedOptions> embed_options(const loom_embed_options* given) {
  LOOM_ASSIGN(const loom_embed_options from, options_of(given, "loom_embed_options"));
  LOOM_ASSIGN(EmbedOptions to, read_options(from));
  to.progress = progress_of(from.progress, from.user);
  return to;
}

// The vectors as one array [texts, width]; of one text with a vector per token [tokens, width].
Status give_vectors(loom_array** out, const std::vector<TextEmbedding>& found, bool per_token) {
  if (per_token && found.size() > 1)
    return invalid("pooling none makes a vector per token; embed one text per call");
  const auto width = static_cast<int64_t>(found.front().values.size());
  if (per_token) {
    const int64_t rows = std::max<int64_t>(found.front().rows, 1);
    LOOM_ASSIGN(Tensor made, Tensor::zeros({rows, width / rows}));
    LOOM_ASSIGN(const std::span<float> to, made.mutable_values<float>());
    std::ranges::copy(found.front().values, to.begin());
    return give(out, std::move(made));
  }
  LOOM_ASSIGN(Tensor made, Tensor::zeros({static_cast<int64_t>(found.size()), width}));
  LOOM_ASSIGN(const std::span<float> to, made.mutable_values<float>());
  for (size_t i = 0; i < found.size(); ++i)
    std::copy_n(found[i].values.data(), width, to.data() + static_cast<int64_t>(i) * width);
  return give(out, std::move(made));
}

Status send_pieces(const std::vector<ReplyPiece>& pieces, loom_reply_fn sink, void* user) {
  for (const ReplyPiece& piece : pieces) {
    const auto kind = static_cast<loom_reply_kind>(piece.kind);
    if (sink(user, kind, piece.text.c_str(), piece.call) != 0)
      return Error{Code::cancelled, "the callback stopped the call", {}};
  }
  return {};
}

}  // namespace

extern "C" {

loom_status loom_model_embed_tokens(const loom_model* model, const int32_t* ids,
                                    const int64_t* lengths, int64_t count,
                                    const loom_embed_options* options, loom_array** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Model* object, object_of(model));
    LOOM_ASSIGN(const auto sizes, list_of(lengths, count, "lengths"));
    if (sizes.empty()) return invalid("'lengths' has none; give at least one text");
    std::vector<std::vector<TokenId>> from;
    for (const int64_t size : sizes) {
      LOOM_ASSIGN(const auto one, list_of(ids, size, "ids"));
      from.emplace_back(one.begin(), one.end());
      ids += size;
    }
    LOOM_ASSIGN(const EmbedOptions how, embed_options(options));
    LOOM_ASSIGN(const std::vector<TextEmbedding> found, object->embed_tokens(from, how));
    return give_vectors(out, found, how.pooling == TextPooling::none);
  });
}

loom_status loom_cosine(const float* a, const float* b, int64_t count, float* out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const auto first, list_of(a, count, "a"));
    LOOM_ASSIGN(const auto second, list_of(b, count, "b"));
    *out = cosine(first, second);
    return {};
  });
}

loom_status loom_model_embed(const loom_model* model, const char* const* texts, int64_t count,
                             const loom_embed_options* options, loom_array** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Model* object, object_of(model));
    LOOM_ASSIGN(const std::vector<std::string> from, texts_of(texts, count, "texts"));
    if (from.empty()) return invalid("'texts' has none; give at least one");
    LOOM_ASSIGN(const EmbedOptions how, embed_options(options));
    LOOM_ASSIGN(const std::vector<TextEmbedding> found, object->embed(from, how));
    return give_vectors(out, found, how.pooling == TextPooling::none);
  });
}

loom_status loom_model_rerank(const loom_model* model, const char* query,
                              const char* const* documents, int64_t count,
                              const loom_rerank_options* options, loom_ranked* out) {
  return guarded([&]() -> Status {
    if (out == nullptr) return invalid("'out' is null; give a place to write");
    LOOM_ASSIGN(const Model* object, object_of(model));
    LOOM_ASSIGN(const std::string asked, text_of(query, "query"));
    LOOM_ASSIGN(const std::vector<std::string> from, texts_of(documents, count, "documents"));
    LOOM_ASSIGN(const loom_rerank_options given, options_of(options, "loom_rerank_options"));
    LOOM_ASSIGN(RerankOptions how, read_options(given));
    how.progress = progress_of(given.progress, given.user);
    LOOM_ASSIGN(const std::vector<Ranked> found, object->rerank(asked, from, how));
    for (size_t i = 0; i < found.size(); ++i)
      out[i] = {found[i].index, found[i].logit, found[i].score, found[i].tokens};
    return {};
  });
}

loom_status loom_model_tool_format(const loom_model* model, char** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Model* object, object_of(model));
    return give_text(out, object->tool_format());
  });
}

loom_status loom_model_read_reply(const loom_model* model, const char* text, const char* prompt,
                                  const char* tools, char** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Model* object, object_of(model));
    LOOM_ASSIGN(const std::string words, text_of(text, "text"));
    LOOM_ASSIGN(const std::string before, text_of(prompt, "prompt"));
    LOOM_ASSIGN(const std::string message, object->read_reply(words, before, text_or(tools, "")));
    return give_text(out, message);
  });
}

loom_status loom_model_call_grammar(const loom_model* model, const char* prompt, const char* tools,
                                    const loom_call_rules* rules, char** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Model* object, object_of(model));
    LOOM_ASSIGN(const std::string before, text_of(prompt, "prompt"));
    LOOM_ASSIGN(const loom_call_rules from, options_of(rules, "loom_call_rules"));
    CallRules how;
    how.required = from.required != 0;
    how.parallel = from.single == 0;
    LOOM_ASSIGN(how.allowed, texts_of(from.allowed, from.allowed_count, "allowed"));
    how.otherwise = text_or(from.otherwise, "");
    LOOM_ASSIGN(const std::string grammar, object->call_grammar(before, text_or(tools, ""), how));
    return give_text(out, grammar);
  });
}

loom_status loom_model_reply_parser(const loom_model* model, const char* prompt, const char* tools,
                                    loom_reply_parser** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const Model* object, object_of(model));
    LOOM_ASSIGN(const std::string before, text_of(prompt, "prompt"));
    LOOM_ASSIGN(ReplyParser parser, object->reply_parser(before, text_or(tools, "")));
    return give(out, std::move(parser));
  });
}

loom_status loom_reply_parser_feed(loom_reply_parser* parser, const char* text, loom_reply_fn sink,
                                   void* user) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(ReplyParser * object, object_of(parser));
    LOOM_ASSIGN(const std::string more, text_of(text, "text"));
    if (sink == nullptr) return invalid("'sink' is null; give a callback");
    return send_pieces(object->feed(more), sink, user);
  });
}

loom_status loom_reply_parser_finish(loom_reply_parser* parser, loom_reply_fn sink, void* user) {
  return guarded([&]() -> Status {
    LOOM_ASSIGN(ReplyParser * object, object_of(parser));
    if (sink == nullptr) return invalid("'sink' is null; give a callback");
    return send_pieces(object->finish(), sink, user);
  });
}

loom_status loom_reply_parser_problem(const loom_reply_parser* parser, int32_t call, char** out) {
  return guarded([&]() -> Status {
    LOOM_TRY(clear(out, "out"));
    LOOM_ASSIGN(const ReplyParser* object, object_of(parser));
    const std::vector<ToolCall>& calls = object->reply().calls;
    if (call < 0 || static_cast<size_t>(call) >= calls.size()) {
      return Error{Code::out_of_range,
                   "call " + std::to_string(call) + " of " + std::to_string(calls.size()),
                   {}};
    }
    return give_text(out, calls[static_cast<size_t>(call)].problem);
  });
}

void loom_reply_parser_free(loom_reply_parser* parser) {
  free_handle(parser);
}

}  // extern "C"
