// Tokenizer: combines the parts of a TokenizerSpec. Encoding runs added tokens (original text),
// normalizer, added tokens (normalized text), pre-tokenizer, model, post-processor, in the order of
// HF `tokenizers`.
#include "text/tokenizer.hpp"

#include <optional>
#include <unordered_map>

#include "base/text.hpp"
#include "text/decoder.hpp"
#include "text/models/bpe.hpp"
#include "text/models/unigram.hpp"
#include "text/models/word_piece.hpp"
#include "text/normalizers/normalizer.hpp"
#include "text/normalizers/unicode.hpp"
#include "text/postprocessor.hpp"
#include "text/splitting/added_tokens.hpp"
#include "text/splitting/pretokenizer.hpp"

namespace loom::core {

using text::AddedToken;
using text::Budget;
using text::PieceList;

struct Tokenizer::Impl {
  text::Normalizer normalizer;
  text::PreTokenizer pre_tokenizer;
  std::unique_ptr<text::WordModel> model;
  text::AddedTokens added;
  text::PostProcessor post_processor;
  text::Decoder decoder;
  int64_t vocab_size = 0;

  Status make(const TokenizerSpec& spec);
  std::optional<std::string_view> spelling(TokenId id) const;
  // The spelling for HF's is_special(): special tokens are identified by content, not by id.
  bool skipped(std::string_view spelling) const;
  Status encode_part(std::string_view part, bool at_zero, bool skip_special, Budget& budget,
                     std::vector<TokenId>& ids) const;
  Status encode_pieces(const PieceList& list, Budget& budget, std::vector<TokenId>& ids) const;
};

namespace {

// Words that were already encoded in this text, and the location of their ids in the output.
class WordCache {
 public:
  struct Entry {
    size_t begin = 0, count = 0;
  };
  const Entry* find(std::string_view word) const {
    const auto found = entries_.find(word);
    return found == entries_.end() ? nullptr : &found->second;
  }
  void add(std::string_view word, size_t begin, size_t count) {
    if (word.size() <= kMaxWord && entries_.size() < kMaxEntries) entries_[word] = {begin, count};
  }

 private:
  static constexpr size_t kMaxWord = 64, kMaxEntries = 65536;
  struct Hash {
    size_t operator()(std::string_view word) const { return text::hash_bytes(word); }
  };
  std::unordered_map<std::string_view, Entry, Hash> entries_;
};

}  // namespace

Status Tokenizer::Impl::make(const TokenizerSpec& spec) {
  const std::string where = spec.where + ": model";
  LOOM_ASSIGN(model, spec.word_piece ? text::WordPiece::make(*spec.word_piece, where)
                     : spec.unigram  ? text::Unigram::make(*spec.unigram, where)
                                     : text::Bpe::make(spec.model, where));
  LOOM_ASSIGN(normalizer, text::Normalizer::make(spec.normalizer));
  LOOM_ASSIGN(pre_tokenizer, text::PreTokenizer::make(spec.pre_tokenizer));
  LOOM_ASSIGN(added, text::AddedTokens::make(spec.added, *model, normalizer,
                                             spec.where + ": added_tokens"));
  const text::StringTable& vocabulary = model->vocabulary();
  for (size_t i = 0; i < vocabulary.size(); ++i) {
    vocab_size = std::max<int64_t>(vocab_size, vocabulary.value(i) + 1);
  }
  for (const AddedToken& token : added.tokens()) {
    vocab_size = std::max<int64_t>(vocab_size, token.id + 1);
  }
  const auto is_token = [this](int32_t id) { return spelling(id).has_value(); };
  LOOM_ASSIGN(post_processor, text::PostProcessor::make(spec, is_token));
  LOOM_ASSIGN(decoder, text::Decoder::make(spec.decoder));
  return {};
}

std::optional<std::string_view> Tokenizer::Impl::spelling(TokenId id) const {
  if (const AddedToken* token = added.find(id)) return token->spelling;
  return model->token(id);
}

bool Tokenizer::Impl::skipped(std::string_view spelling) const {
  const AddedToken* token = added.find(spelling);
  return token != nullptr && token->special;
}

Status Tokenizer::Impl::encode_pieces(const PieceList& list, Budget& budget,
                                      std::vector<TokenId>& ids) const {
  text::WordModel::Scratch scratch;
  WordCache cache;
  for (const text::Piece& piece : list.pieces) {
    if (budget.stopped(1)) return Budget::stop_error();
    if (piece.token >= 0) {
      ids.push_back(piece.token);
      continue;
    }
    const std::string_view word = list.view(piece);
    const size_t begin = ids.size();
    if (const WordCache::Entry* known = cache.find(word)) {
      for (size_t i = 0; i < known->count; ++i) ids.push_back(ids[known->begin + i]);
      continue;
    }
    LOOM_TRY(model->encode(word, budget, scratch, ids));
    cache.add(word, begin, ids.size() - begin);
  }
  return {};
}

// `part` has no token that is matched in the original text.
Status Tokenizer::Impl::encode_part(std::string_view part, bool at_zero, bool skip_special,
                                    Budget& budget, std::vector<TokenId>& ids) const {
  text::NormalText normal{std::string(part), 0, at_zero};
  if (at_zero) normal.from_zero = text::code_point_at(part, 0).length;
  LOOM_TRY(normalizer.apply(normal, budget));
  std::vector<text::TextPart> parts;
  LOOM_TRY(added.split(normal.text, true, skip_special, budget, parts));
  text::Piece all_text;
  all_text.from_zero = normal.from_zero;
  PieceList list;
  list.text = std::move(normal.text);
  for (const text::TextPart& found : parts) {
    text::Piece piece = text::slice(all_text, found.begin, found.end);
    if (found.token != nullptr) {
      piece.end = piece.begin;
      piece.token = found.token->id;
    }
    list.pieces.push_back(piece);
  }
  LOOM_TRY(pre_tokenizer.apply(list, budget));
  return encode_pieces(list, budget, ids);
}

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;
Tokenizer::~Tokenizer() = default;

Result<Tokenizer> Tokenizer::make(const TokenizerSpec& spec) {
  auto impl = std::make_unique<Impl>();
  LOOM_TRY(impl->make(spec));
  return Tokenizer(std::move(impl));
}

Result<Tokenizer> Tokenizer::parse(std::string_view json, const std::string& where) {
  LOOM_ASSIGN(const TokenizerSpec spec, parse_tokenizer_json(json, where));
  return make(spec);
}

Result<std::vector<TokenId>> Tokenizer::text_ids(std::string_view input,
                                                 const EncodeOptions& options) const {
  std::string repaired;
  if (!text::is_valid_utf8(input)) {
    repaired = text::to_valid_utf8(input);
    input = repaired;
  }
  Budget budget = Budget::for_text(input.size());
  if (options.should_stop) budget.should_stop = &options.should_stop;
  const bool skip_special = !options.parse_special_tokens;
  std::vector<text::TextPart> parts;
  LOOM_TRY(impl_->added.split(input, false, skip_special, budget, parts));
  std::vector<TokenId> ids;
  for (const text::TextPart& part : parts) {
    if (budget.stopped(1)) return Budget::stop_error();
    if (part.token != nullptr) {
      ids.push_back(part.token->id);
      continue;
    }
    const std::string_view piece = input.substr(part.begin, part.end - part.begin);
    LOOM_TRY(impl_->encode_part(piece, part.begin == 0, skip_special, budget, ids));
  }
  return ids;
}

Result<std::vector<TokenId>> Tokenizer::encode(std::string_view input,
                                               EncodeOptions options) const {
  LOOM_ASSIGN(std::vector<TokenId> ids, text_ids(input, options));
  return impl_->post_processor.apply(std::move(ids), options.add_special_tokens);
}

namespace {

// How many ids of each of two texts to keep if both together may have `most`. As in HF's
// "longest_first", the longer one is cut until both have equal length.
std::pair<size_t, size_t> truncated_lengths(size_t first, size_t second, size_t most) {
  if (first + second <= most) return {first, second};
  size_t shorter = std::min(first, second);
  size_t longer = shorter > most ? shorter : std::max(shorter, most - shorter);
  if (shorter + longer > most) {
    shorter = most / 2;
    longer = most - shorter;
  }
  return first > second ? std::pair(longer, shorter) : std::pair(shorter, longer);
}

}  // namespace

Result<Tokenizer::Encoding> Tokenizer::encode_texts(std::string_view input,
                                                    const std::string_view* second, size_t most,
                                                    EncodeOptions options) const {
  LOOM_ASSIGN(std::vector<TokenId> ids, text_ids(input, options));
  std::vector<TokenId> more;
  if (second != nullptr) {
    LOOM_ASSIGN(more, text_ids(*second, options));
  }
  const text::PostProcessor& around = impl_->post_processor;
  const size_t special = options.add_special_tokens ? around.special_tokens(second != nullptr) : 0;
  if (most > 0 && most <= special) {
    return invalid(cat("a limit of ", most, " tokens leaves no room for text beside ", special,
                       " special tokens"));
  }
  const size_t before = ids.size() + more.size();
  if (most > 0) {
    const auto [one, two] = truncated_lengths(ids.size(), more.size(), most - special);
    ids.resize(one);
    more.resize(two);
  }
  text::PostProcessor::Typed typed =
      around.apply(ids, second != nullptr ? &more : nullptr, options.add_special_tokens);
  return Encoding{std::move(typed.ids), std::move(typed.types), ids.size() + more.size() < before};
}

int64_t Tokenizer::vocab_size() const {
  return impl_->vocab_size;
}

TokenId Tokenizer::token_id(std::string_view token) const {
  if (const AddedToken* added = impl_->added.find(token)) return added->id;
  return impl_->model->vocabulary().find(token);
}

bool Tokenizer::is_special(TokenId id) const {
  const AddedToken* token = impl_->added.find(id);
  return token != nullptr && token->special;
}

std::string Tokenizer::token_bytes(TokenId id) const {
  const std::optional<std::string_view> spelling = impl_->spelling(id);
  if (!spelling || is_special(id)) return {};
  return impl_->decoder.token_bytes(*spelling);
}

bool Tokenizer::has_token(TokenId id) const {
  return impl_->spelling(id).has_value();
}

namespace {

// Bytes of the common prefix of `text` and `known`, in whole characters.
size_t common_front(std::string_view text, std::string_view known) {
  size_t at = 0;
  while (at < text.size() && at < known.size()) {
    const size_t length = text::code_point_at(text, at).length;
    if (text.substr(at, length) != known.substr(at, length)) break;
    at += length;
  }
  return at;
}

}  // namespace

// One decoding in progress.
struct StreamDecoder::State {
  State(const Tokenizer::Impl& owner, bool skip)
      : tokenizer(&owner), skip_special(skip), run(owner.decoder) {}

  Status push(TokenId id, std::string& out) {
    const std::optional<std::string_view> spelling = tokenizer->spelling(id);
    if (!spelling) {
      return make_error(Code::out_of_range, cat("no token has id ", id));
    }
    if (skip_special && tokenizer->skipped(*spelling)) return {};
    return run.push(*spelling, out);
  }

  // Removes what the reader has already.
  std::string fresh(std::string text) {
    if (emitted.empty()) return text;
    const size_t same = common_front(text, emitted);
    emitted = same == text.size() ? emitted.substr(same) : std::string();
    return text.substr(same);
  }

  const Tokenizer::Impl* tokenizer;
  bool skip_special;
  text::DecodeRun run;
  std::string emitted;  // the end of the previous text that `run` still buffers
};

Result<std::string> Tokenizer::decode(std::span<const TokenId> ids,
                                      bool skip_special_tokens) const {
  StreamDecoder::State state(*impl_, skip_special_tokens);
  std::string out;
  for (const TokenId id : ids) LOOM_TRY(state.push(id, out));
  LOOM_TRY(state.run.finish(out));
  return out;
}

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, bool skip_special_tokens)
    : state_(std::make_unique<State>(*tokenizer.impl_, skip_special_tokens)) {}
StreamDecoder::StreamDecoder(StreamDecoder&&) noexcept = default;
StreamDecoder& StreamDecoder::operator=(StreamDecoder&&) noexcept = default;
StreamDecoder::~StreamDecoder() = default;

Status StreamDecoder::continue_after(std::span<const TokenId> before) {
  State all_text(*state_->tokenizer, state_->skip_special);
  std::string certain;
  for (const TokenId id : before) {
    if (!state_->tokenizer->spelling(id)) continue;
    LOOM_TRY(state_->push(id, certain));
    LOOM_TRY(all_text.push(id, state_->emitted));
  }
  LOOM_TRY(all_text.run.finish(state_->emitted));
  state_->emitted.erase(0, certain.size());
  return {};
}

Result<std::string> StreamDecoder::push(TokenId id) {
  std::string out;
  LOOM_TRY(state_->push(id, out));
  return state_->fresh(std::move(out));
}

std::string StreamDecoder::finish() {
  std::string out;
  const Status status = state_->run.finish(out);
  return status.ok() ? state_->fresh(std::move(out)) : std::string();
}

}  // namespace loom::core
