// See tokenizer_limits.hpp. tests/outside/tokens_check.py compares with llama.cpp.
#include "formats/gguf/tokenizer/tokenizer_limits.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/text.hpp"
#include "formats/gguf/tokenizer/pre.hpp"
#include "text/normalizers/byte_alphabet.hpp"

namespace loom::core {
namespace {

using text::NormalizerKind;
using text::PreTokenizerKind;

Error refuse(const TokenizerSpec& spec, std::string_view field, std::string_view why) {
  return unsupported(cat(field, ": ", why, "; write an .entity file or a folder"), spec.where);
}

bool is_nfc(const text::NormalizerStep& step) {
  return step.kind == NormalizerKind::form && step.form == text::NormalForm::nfc;
}

// Whether spaces become U+2581, and whether one is added before a text.
bool marks_spaces(const text::NormalizerStep& step) {
  return step.kind == NormalizerKind::replace && step.content == kSpace && !step.find.regex &&
         step.find.text == " ";
}
bool prepends_mark(const text::NormalizerStep& step) {
  return step.kind == NormalizerKind::prepend && step.content == kSpace;
}

// Gemma's files split at spaces, but the normalizer leaves none.
bool splits_nothing(const text::PreTokenizerStep& step) {
  return step.kind == PreTokenizerKind::split && !step.find.regex && step.find.text == " " &&
         !step.invert;
}

const text::PreTokenizerStep* metaspace_of(const TokenizerSpec& spec) {
  for (const text::PreTokenizerStep& step : spec.pre_tokenizer)
    if (step.kind == PreTokenizerKind::metaspace) return &step;
  return nullptr;
}

Status check_space_steps(const TokenizerSpec& spec) {
  const text::PreTokenizerStep* meta = metaspace_of(spec);
  bool marks = meta != nullptr;
  for (const text::NormalizerStep& step : spec.normalizer) {
    if (!marks_spaces(step) && !prepends_mark(step))
      return refuse(spec, "normalizer", "GGUF has pieces without normalizers other than U+2581");
    marks = marks || marks_spaces(step);
  }
  if (!marks)
    return refuse(spec, "normalizer", "GGUF has pieces whose spaces are U+2581, and these are not");
  if (meta != nullptr && !spec.normalizer.empty())
    return refuse(spec, "normalizer", "GGUF has no normalizer before Metaspace");
  if (meta != nullptr && meta->replacement != kSpace)
    return refuse(spec, "pre_tokenizer.replacement", "GGUF writes spaces as U+2581");
  for (const text::PreTokenizerStep& step : spec.pre_tokenizer) {
    if (&step != meta && (meta != nullptr || !splits_nothing(step)))
      return refuse(spec, "pre_tokenizer", "GGUF has pieces without pre-tokenizers");
  }
  return {};
}

// The pieces that neighbours may merge into: not bytes, and not tokens that are matched earlier.
std::unordered_set<std::string_view> merging_pieces(const TokenizerSpec& spec) {
  std::unordered_set<std::string_view> pieces;
  for (const auto& [token, id] : spec.model.vocabulary) pieces.insert(token);
  for (const text::AddedTokenSpec& token : spec.added) {
    const bool run = !token.special && token.content.find(kSpace) != std::string::npos;
    if (!run) pieces.erase(token.content);
  }
  return pieces;
}

size_t rank_of(const TokenizerSpec& spec, size_t merge) {
  return spec.model.ranks.empty() ? merge : static_cast<size_t>(spec.model.ranks[merge]);
}

// Scores belong to pieces: every split of a piece into two pieces merges, at one rank. Returns an
// empty text if these merges do so too, else the difference.
std::string merges_differ(const TokenizerSpec& spec) {
  const std::unordered_set<std::string_view> pieces = merging_pieces(spec);
  std::unordered_map<std::string, std::pair<size_t, size_t>> ranks;  // smallest and largest
  std::unordered_map<std::string, size_t> cuts;
  for (size_t i = 0; i < spec.model.merges.size(); ++i) {
    const auto& [left, right] = spec.model.merges[i];
    const std::string whole = left + right;
    if (!pieces.contains(left) || !pieces.contains(right) || !pieces.contains(whole)) continue;
    const size_t rank = rank_of(spec, i);
    const auto [at, is_new] = ranks.emplace(whole, std::pair(rank, rank));
    at->second = {std::min(at->second.first, rank), std::max(at->second.second, rank)};
    ++cuts[whole];
  }
  for (const std::string_view whole : pieces) {
    size_t ways = 0;
    for (size_t cut = 1; cut < whole.size() && !is_gguf_byte(whole); ++cut)
      ways += pieces.contains(whole.substr(0, cut)) && pieces.contains(whole.substr(cut)) ? 1 : 0;
    const auto found = cuts.find(std::string(whole));
    if (ways != (found == cuts.end() ? 0 : found->second))
      return cat("it makes '", printable(whole), "' of other pieces too");
  }
  std::map<size_t, size_t> spans;
  for (const auto& [whole, span] : ranks) spans.emplace(span.first, span.second);
  size_t end = 0;
  bool first = true;
  for (const auto& [from, to] : spans) {
    if (!first && from <= end) return "it makes a piece of all its parts before the next one";
    first = false;
    end = to;
  }
  return {};
}

Status check_options(const TokenizerSpec& spec) {
  if (!spec.model.prefix.empty())
    return refuse(spec, "model.continuing_subword_prefix", "GGUF has no place for it");
  if (!spec.model.suffix.empty())
    return refuse(spec, "model.end_of_word_suffix", "GGUF has no place for it");
  return {};
}

bool has_all_bytes(const TokenizerSpec& spec) {
  std::unordered_set<std::string_view> tokens;
  for (const auto& [token, id] : spec.model.vocabulary) tokens.insert(token);
  for (int byte = 0; byte < 256; ++byte)
    if (!tokens.contains(text::ByteAlphabet::get().character(static_cast<unsigned char>(byte))))
      return false;
  return true;
}

// ---- the comparison after a round trip ----

// Tokens by id, with their relevant flags.
std::map<int32_t, text::AddedTokenSpec> added_of(const TokenizerSpec& spec) {
  const auto all = [&](bool normalized) {
    return std::ranges::all_of(spec.added, [=](const text::AddedTokenSpec& token) {
      return token.normalized == normalized;
    });
  };
  // Without a normalizer both kinds are matched alike, unless one kind comes first.
  const bool plain = spec.normalizer.empty() && metaspace_of(spec) == nullptr && all(true);
  std::map<int32_t, text::AddedTokenSpec> out;
  for (text::AddedTokenSpec token : spec.added) {
    if (plain) token.normalized = false;
    if (!token.content.empty()) out.emplace(token.id, std::move(token));
  }
  return out;
}

template <class Step>
std::vector<Step> without_where(std::vector<Step> steps) {
  for (Step& step : steps) step.where.clear();
  if constexpr (requires(Step & step) { step.find; }) {
    for (Step& step : steps) step.find.where.clear();
  }
  return steps;
}

// Merges in rank order; for pieces, the splits of each in any order.
bool same_merges(const TokenizerSpec& source, const TokenizerSpec& back) {
  if (back.model.ranks.empty())
    return source.model.ranks.empty() && source.model.merges == back.model.merges;
  const auto groups = [](const TokenizerSpec& spec,
                         const std::unordered_set<std::string_view>& pieces) {
    std::map<std::string, std::pair<size_t, std::vector<std::string>>> by_piece;
    for (size_t i = 0; i < spec.model.merges.size(); ++i) {
      const auto& [left, right] = spec.model.merges[i];
      const std::string whole = left + right;
      if (!pieces.contains(left) || !pieces.contains(right) || !pieces.contains(whole)) continue;
      auto& group = by_piece[whole];
      const size_t rank = rank_of(spec, i);
      group.first = group.second.empty() ? rank : std::min(group.first, rank);
      group.second.push_back(left);
    }
    std::vector<std::tuple<size_t, std::string, std::vector<std::string>>> out;
    for (auto& [whole, group] : by_piece) {
      std::ranges::sort(group.second);
      out.emplace_back(group.first, whole, group.second);
    }
    std::ranges::sort(out);
    for (size_t i = 0; i < out.size(); ++i) std::get<0>(out[i]) = i;
    return out;
  };
  const std::unordered_set<std::string_view> pieces = merging_pieces(source);
  return groups(source, pieces) == groups(back, pieces);
}

bool same_ends(const TokenizerSpec& a, const TokenizerSpec& b) {
  const Result<GgufEnds> x = gguf_ends(a), y = gguf_ends(b);
  return x.ok() && y.ok() && x->bos == y->bos && x->eos == y->eos;
}

}  // namespace

bool is_gguf_byte(std::string_view token) {
  return token.size() == 6 && token.substr(0, 3) == "<0x" && token[5] == '>' &&
         token.find_first_not_of("0123456789ABCDEF", 3) == 5;
}

Result<GgufEnds> gguf_ends(const TokenizerSpec& spec) {
  GgufEnds ends;
  if (!spec.post_processor) return ends;
  size_t texts = 0;
  for (const text::TemplatePart& part : *spec.post_processor) {
    if (part.is_text) {
      if (++texts > 1) return refuse(spec, "post_processor", "GGUF has a text once");
      continue;
    }
    for (const text::TemplateId& id : part.ids) {
      int32_t& end = texts == 0 ? ends.bos : ends.eos;
      if (end >= 0)
        return refuse(spec, "post_processor",
                      "GGUF has one token before a text and one after it, and there are more");
      end = id.id;
    }
  }
  return ends;
}

namespace {

// The field that keeps a tokenizer from matching a named one.
std::string_view unnamed_field(const TokenizerSpec& source) {
  TokenizerSpec spec;
  spec.model.ignore_merges = source.model.ignore_merges;
  spec.pre_tokenizer = source.pre_tokenizer;
  spec.normalizer = source.normalizer;
  spec.model.ignore_merges = !spec.model.ignore_merges;
  if (recognize_gguf_pre(spec) != nullptr) return "model.ignore_merges";
  for (const bool merges : {false, true}) {
    spec.model.ignore_merges = merges;
    spec.normalizer.clear();
    if (recognize_gguf_pre(spec) != nullptr) return "normalizer";
    spec.normalizer.emplace_back();  // NFC
    if (recognize_gguf_pre(spec) != nullptr) return "normalizer";
  }
  return "pre_tokenizer";
}

}  // namespace

Status check_gguf_bytes(const TokenizerSpec& spec) {
  LOOM_TRY(check_options(spec));
  size_t levels = 0;
  for (const text::PreTokenizerStep& step : spec.pre_tokenizer) {
    if (step.kind != PreTokenizerKind::byte_level) continue;
    ++levels;
    if (step.prefix_space)
      return refuse(spec, "pre_tokenizer.add_prefix_space", "GGUF has no place for true");
  }
  const bool last = levels == 1 && spec.pre_tokenizer.back().kind == PreTokenizerKind::byte_level;
  if (!last)
    return refuse(spec, "pre_tokenizer",
                  "GGUF has BPE of bytes, and ByteLevel is not its last step");
  if (recognize_gguf_pre(spec) == nullptr)
    return refuse(spec, unnamed_field(spec), "GGUF has no name for it with the rest");
  if (spec.model.unk_token && !has_all_bytes(spec))
    return refuse(spec, "model.unk_token",
                  "GGUF has no place for it, and some bytes have no token");
  std::unordered_set<std::string> lines;
  for (const auto& [left, right] : spec.model.merges) {
    if ((left + right).find(' ') != std::string::npos)
      return refuse(spec, "model.merges", "GGUF has no place for a space in a merge");
    if (!lines.insert(cat(left, " ", right)).second)
      return refuse(spec, "model.merges",
                    cat("'", printable(left), " ", printable(right), "' is there twice"));
  }
  return {};
}

Status check_gguf_pieces(const TokenizerSpec& spec) {
  LOOM_TRY(check_options(spec));
  LOOM_TRY(check_space_steps(spec));
  if (spec.model.ignore_merges)
    return refuse(spec, "model.ignore_merges", "GGUF has pieces without it");
  int64_t bytes = 0;
  for (const auto& [token, id] : spec.model.vocabulary) bytes += is_gguf_byte(token) ? 1 : 0;
  if (bytes < 256)
    return refuse(spec, "model.byte_fallback",
                  cat("only ", bytes, " of the 256 bytes have a token"));
  const text::PreTokenizerStep* meta = metaspace_of(spec);
  if (meta != nullptr && meta->splits) {
    for (const auto& [left, right] : spec.model.merges) {
      if ((left + right).find(kSpace, 1) != std::string::npos)
        return refuse(spec, "pre_tokenizer.split",
                      "GGUF has pieces over several words, and true keeps words apart");
    }
  }
  return {};
}

namespace {

// Whether one token ends as another begins; then llama.cpp may split a text at the longer one.
bool tokens_overlap(const TokenizerSpec& spec) {
  std::unordered_set<std::string_view> beginnings;
  for (const text::AddedTokenSpec& token : spec.added)
    for (size_t n = 1; n < token.content.size(); ++n)
      beginnings.insert(std::string_view(token.content).substr(0, n));
  for (const text::AddedTokenSpec& token : spec.added)
    for (size_t at = 1; at < token.content.size(); ++at)
      if (beginnings.contains(std::string_view(token.content).substr(at))) return true;
  return false;
}

}  // namespace

std::vector<std::string> gguf_tokenizer_notes(const TokenizerSpec& spec) {
  std::vector<std::string> notes;
  const auto add = [&](bool applies, std::string_view field, std::string_view why) {
    if (applies) notes.push_back(cat("llama.cpp may give other token ids: ", field, ": ", why));
  };
  const auto any = [&](bool text::AddedTokenSpec::*flag) {
    return std::ranges::any_of(spec.added, [=](const auto& token) { return token.*flag; });
  };
  add(std::ranges::any_of(spec.normalizer, is_nfc), "normalizer",
      "it does not apply NFC to a text");
  const text::PreTokenizerStep* meta = metaspace_of(spec);
  if (meta != nullptr && meta->prepend != text::PrependScheme::never) {
    add(true, "pre_tokenizer", "it puts a space before a text that begins with one too");
    add(meta->prepend == text::PrependScheme::first, "pre_tokenizer.prepend_scheme",
        "it puts a space after every special token too");
  }
  const std::string merges = spec.model.byte_fallback ? merges_differ(spec) : std::string();
  add(!merges.empty(), "model.merges", merges);
  add(any(&text::AddedTokenSpec::lstrip), "added_tokens.lstrip",
      "it leaves the white space before a token");
  add(any(&text::AddedTokenSpec::rstrip), "added_tokens.rstrip",
      "it leaves the white space after a token");
  add(any(&text::AddedTokenSpec::single_word), "added_tokens.single_word",
      "it finds a token inside of words too");
  add(any(&text::AddedTokenSpec::normalized) && (!spec.normalizer.empty() || meta != nullptr),
      "added_tokens.normalized", "it finds tokens in the text as it is written");
  add(tokens_overlap(spec), "added_tokens",
      "one token ends as another begins, and it prefers the longer one");
  return notes;
}

bool same_tokenizer(const TokenizerSpec& source, const TokenizerSpec& back) {
  return added_of(source) == added_of(back) &&
         without_where(source.normalizer) == without_where(back.normalizer) &&
         without_where(source.pre_tokenizer) == without_where(back.pre_tokenizer) &&
         without_where(source.decoder) == without_where(back.decoder) &&
         source.model.ignore_merges == back.model.ignore_merges && same_merges(source, back) &&
         same_ends(source, back);
}

}  // namespace loom::core
