#include "llm/sessions/guesser.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "loom/lookup.hpp"
#include "ops/fmath.hpp"

namespace loom::core {
namespace {

// The longest suffix of the text that is looked up in it.
constexpr size_t kLongestKey = 4;
constexpr size_t kLongestPause = 15;
// Tokens with a probability of less than exp(-this) times the best one's do not count.
constexpr float kFarBelow = 8.0f;

// The approximate probability of a token at temperature 1; good enough to accept drafts.
double chance_of(std::span<const float> logits, TokenId id) {
  float best = logits[0];
  for (const float v : logits) best = v > best ? v : best;
  double sum = 0;
  for (const float v : logits) {
    if (v >= best - kFarBelow) sum += static_cast<double>(fmath::exp<float>(v - best));
  }
  const float own = logits[static_cast<size_t>(id)] - best;
  return static_cast<double>(fmath::exp<float>(own)) / sum;
}

}  // namespace

Result<Drafter> Drafter::create(const GenerateOptions& options, TokenReader* draft, int64_t vocab) {
  const bool uses_drafts = draft != nullptr || options.lookup || options.lookup_text != nullptr;
  if (uses_drafts && options.guesses < 1)
    return invalid(cat("guesses is ", options.guesses, "; drafting needs 1 or more"));
  if (draft != nullptr && draft->vocab() != vocab) {
    return invalid(cat("the draft model has ", draft->vocab(), " tokens and the model ", vocab,
                       "; both need the same vocabulary"));
  }
  LOOM_ASSIGN(Sampler sampler,
              Sampler::create(draft != nullptr ? options.sampler : SamplerOptions(),
                              draft != nullptr ? vocab : 1));
  Drafter out(std::move(sampler));
  out.draft_ = draft;
  out.lookup_ = options.lookup;
  out.text_ = options.lookup_text;
  out.vocab_ = vocab;
  out.chance_ = static_cast<double>(options.guess_chance);
  out.most_ = out.length_ = static_cast<size_t>(std::max<int64_t>(options.guesses, 0));
  return out;
}

Status Drafter::guess(std::vector<TokenId>& history, size_t most, const Sampler& drawing,
                      std::vector<TokenId>& out) {
  out.clear();
  most = std::min(most, length_);
  if (waits_ > 0) {
    --waits_;
    return {};
  }
  if (most == 0) return {};
  if (text_ != nullptr) ask_text(history, most, out);
  if (out.empty() && lookup_) look_up(history, most, out);
  if (!out.empty() || draft_ == nullptr) return {};
  sampler_.follow(drawing);
  return ask_draft(history, most, out);
}

void Drafter::on_verified(size_t guessed, size_t right) {
  // A draft with a confidence limit has already bounded its length.
  if (draft_ != nullptr && chance_ > 0 && (right > 0 || length_ > 1)) {
    pause_ = 0;
    length_ = right == guessed ? most_ : std::max(length_ / 2, right + 1);
    return;
  }
  if (right > 0) pause_ = 0;
  if (right == guessed) {
    length_ = std::min(most_, 2 * std::max(length_, guessed));
  } else if (right > 0 || length_ > 1) {
    length_ = std::max<size_t>(right, 1);
  } else {
    waits_ = pause_ = std::min(2 * pause_ + 1, kLongestPause);
  }
}

// Takes one token after the other while the lookup text is confident.
void Drafter::ask_text(std::vector<TokenId>& history, size_t most,
                       std::vector<TokenId>& out) const {
  const size_t known = history.size();
  while (out.size() < most) {
    const TokenId id = text_->next(history);
    if (id < 0 || id >= vocab_) break;
    out.push_back(id);
    history.push_back(id);
  }
  history.resize(known);
}

// Copies what followed the last occurrence of the text's last four tokens, or three, two, one
// (Saxena, "Prompt lookup decoding", 2023).
void Drafter::look_up(std::span<const TokenId> history, size_t most, std::vector<TokenId>& out) {
  for (size_t key = std::min(kLongestKey, history.size()); key > 0; --key) {
    const std::span<const TokenId> end = history.last(key);
    for (size_t at = history.size() - key; at-- > 0;) {
      if (!std::ranges::equal(history.subspan(at, key), end)) continue;
      const auto rest = history.subspan(at + key);
      out.assign(rest.begin(),
                 rest.begin() + static_cast<std::ptrdiff_t>(std::min(most, rest.size())));
      return;
    }
  }
}

Status Drafter::ask_draft(std::vector<TokenId>& history, size_t most, std::vector<TokenId>& out) {
  const std::span<const TokenId> fed = draft_->fed();
  auto same = static_cast<size_t>(std::ranges::mismatch(fed, history).in1 - fed.begin());
  same = std::min(same, history.size() - 1);  // the last one is fed for its logits
  const size_t room = static_cast<size_t>(draft_->context());
  if (history.size() >= room) return {};
  most = std::min(most, room - history.size());
  draft_->rewind(static_cast<int64_t>(same));
  LOOM_TRY(draft_->feed(std::span<const TokenId>(history).subspan(same)));
  const size_t known = history.size();
  double chance = 1;
  while (out.size() < most) {
    const TokenId id = sampler_.next(draft_->logits(), history);
    if (id == Sampler::kNoToken) break;
    if (chance_ > 0) chance *= chance_of(draft_->logits(), id);
    if (chance < chance_) break;
    out.push_back(id);
    history.push_back(id);
    if (out.size() < most) LOOM_TRY(draft_->feed({&id, 1}));
  }
  history.resize(known);
  return {};
}

}  // namespace loom::core
