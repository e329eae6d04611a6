// Writes a TokenizerSpec as tokenizer.json. Fields that the format requires and a spec lacks
// (offsets) get their unused default.
#include "io/json/json.hpp"
#include "text/tokenizer_spec.hpp"

namespace loom::core {
namespace text {
namespace {

JsonValue words(std::string_view value) {
  return JsonValue::string(std::string(value));
}

JsonValue typed(std::string_view type) {
  return JsonValue::object({{"type", words(type)}});
}

JsonValue pattern_json(const PatternSpec& pattern) {
  return JsonValue::object({{pattern.regex ? "Regex" : "String", words(pattern.text)}});
}

JsonValue replace_json(const PatternSpec& find, const std::string& content) {
  JsonValue out = typed("Replace");
  out.add("pattern", pattern_json(find));
  out.add("content", words(content));
  return out;
}

JsonValue bert_json(const NormalizerStep& step) {
  JsonValue out = typed("BertNormalizer");
  out.add("clean_text", JsonValue::boolean(step.clean_text));
  out.add("handle_chinese_chars", JsonValue::boolean(step.spaces_ideographs));
  out.add("strip_accents",
          step.strips_accents ? JsonValue::boolean(*step.strips_accents) : JsonValue());
  out.add("lowercase", JsonValue::boolean(step.lowercases));
  return out;
}

JsonValue step_json(const NormalizerStep& step) {
  static constexpr std::string_view kForms[] = {"NFC", "NFD", "NFKC", "NFKD"};
  switch (step.kind) {
    case NormalizerKind::form: return typed(kForms[static_cast<size_t>(step.form)]);
    case NormalizerKind::lowercase: return typed("Lowercase");
    case NormalizerKind::replace: return replace_json(step.find, step.content);
    case NormalizerKind::prepend: {
      JsonValue out = typed("Prepend");
      out.add("prepend", words(step.content));
      return out;
    }
    case NormalizerKind::bert: return bert_json(step);
    case NormalizerKind::charsmap: {
      JsonValue out = typed("Precompiled");
      out.add("precompiled_charsmap", words(step.content));
      return out;
    }
    case NormalizerKind::strip: break;
  }
  JsonValue out = typed("Strip");
  out.add("strip_left", JsonValue::boolean(step.left));
  out.add("strip_right", JsonValue::boolean(step.right));
  return out;
}

JsonValue byte_level_json(bool prefix_space, bool use_regex) {
  JsonValue out = typed("ByteLevel");
  out.add("add_prefix_space", JsonValue::boolean(prefix_space));
  out.add("trim_offsets", JsonValue::boolean(true));
  out.add("use_regex", JsonValue::boolean(use_regex));
  return out;
}

JsonValue metaspace_json(std::string_view replacement, PrependScheme scheme, bool splits) {
  static constexpr std::string_view kSchemes[] = {"always", "first", "never"};
  JsonValue out = typed("Metaspace");
  out.add("replacement", words(replacement));
  out.add("prepend_scheme", words(kSchemes[static_cast<size_t>(scheme)]));
  out.add("split", JsonValue::boolean(splits));
  return out;
}

JsonValue step_json(const PreTokenizerStep& step) {
  static constexpr std::string_view kBehaviors[] = {"Removed", "Isolated", "MergedWithPrevious",
                                                    "MergedWithNext", "Contiguous"};
  const JsonValue behavior = words(kBehaviors[static_cast<size_t>(step.behavior)]);
  switch (step.kind) {
    case PreTokenizerKind::split: {
      JsonValue out = typed("Split");
      out.add("pattern", pattern_json(step.find));
      out.add("behavior", behavior);
      out.add("invert", JsonValue::boolean(step.invert));
      return out;
    }
    case PreTokenizerKind::byte_level: return byte_level_json(step.prefix_space, step.splits);
    case PreTokenizerKind::digits: {
      JsonValue out = typed("Digits");
      out.add("individual_digits", JsonValue::boolean(step.behavior == SplitBehavior::isolated));
      return out;
    }
    case PreTokenizerKind::punctuation: {
      JsonValue out = typed("Punctuation");
      out.add("behavior", behavior);
      return out;
    }
    case PreTokenizerKind::white_space: return typed("WhitespaceSplit");
    case PreTokenizerKind::words: return typed("Whitespace");
    case PreTokenizerKind::bert: return typed("BertPreTokenizer");
    case PreTokenizerKind::metaspace: break;
  }
  return metaspace_json(step.replacement, step.prepend, step.splits);
}

JsonValue step_json(const DecoderStep& step) {
  JsonValue out;
  switch (step.kind) {
    case DecoderKind::join_spaces: break;  // if it is the only step, the member is null
    case DecoderKind::byte_level: return byte_level_json(true, true);
    case DecoderKind::byte_fallback: return typed("ByteFallback");
    case DecoderKind::fuse: return typed("Fuse");
    case DecoderKind::replace: return replace_json(step.find, step.content);
    case DecoderKind::metaspace:
      return metaspace_json(utf8(step.character),
                            step.keeps_first ? PrependScheme::never : PrependScheme::always, true);
    case DecoderKind::strip:
      out = typed("Strip");
      out.add("content", words(utf8(step.character)));
      out.add("start", JsonValue::integer(static_cast<int64_t>(step.start)));
      out.add("stop", JsonValue::integer(static_cast<int64_t>(step.stop)));
      break;
    case DecoderKind::word_piece:
      out = typed("WordPiece");
      out.add("prefix", words(step.content));
      out.add("cleanup", JsonValue::boolean(step.cleanup));
      break;
    case DecoderKind::word_suffix:
      out = typed("BPEDecoder");
      out.add("suffix", words(step.content));
      break;
  }
  return out;
}

// null, a single step, or all in a Sequence.
template <class Step>
JsonValue steps_json(const std::vector<Step>& steps, const char* list) {
  if (steps.empty()) return {};
  if (steps.size() == 1) return step_json(steps[0]);
  JsonValue out = typed("Sequence"), parts = JsonValue::array();
  for (const Step& step : steps) parts.push(step_json(step));
  out.add(list, std::move(parts));
  return out;
}

JsonValue added_json(const AddedTokenSpec& token) {
  JsonValue out =
      JsonValue::object({{"id", JsonValue::integer(token.id)}, {"content", words(token.content)}});
  out.add("single_word", JsonValue::boolean(token.single_word));
  out.add("lstrip", JsonValue::boolean(token.lstrip));
  out.add("rstrip", JsonValue::boolean(token.rstrip));
  out.add("normalized", JsonValue::boolean(token.normalized));
  out.add("special", JsonValue::boolean(token.special));
  return out;
}

JsonValue vocabulary_json(const std::vector<std::pair<std::string, int32_t>>& vocabulary) {
  std::vector<JsonValue::Member> tokens;
  tokens.reserve(vocabulary.size());
  for (const auto& [token, id] : vocabulary) tokens.emplace_back(token, JsonValue::integer(id));
  return JsonValue::object(std::move(tokens));
}

JsonValue model_json(const WordPieceSpec& spec) {
  JsonValue out = typed("WordPiece");
  out.add("unk_token", words(spec.unk_token));
  out.add("continuing_subword_prefix", words(spec.prefix));
  out.add("max_input_chars_per_word",
          JsonValue::integer(static_cast<int64_t>(spec.max_characters)));
  out.add("vocab", vocabulary_json(spec.vocabulary));
  return out;
}

JsonValue model_json(const UnigramSpec& spec) {
  JsonValue out = typed("Unigram");
  out.add("unk_id", spec.unk_id ? JsonValue::integer(*spec.unk_id) : JsonValue());
  JsonValue list = JsonValue::array();
  for (const auto& [token, score] : spec.vocabulary)
    list.push(JsonValue::array({words(token), JsonValue::real(score)}));
  out.add("vocab", std::move(list));
  out.add("byte_fallback", JsonValue::boolean(spec.byte_fallback));
  return out;
}

JsonValue model_json(const BpeSpec& spec) {
  JsonValue out = typed("BPE");
  if (spec.unk_token) out.add("unk_token", words(*spec.unk_token));
  if (!spec.prefix.empty()) out.add("continuing_subword_prefix", words(spec.prefix));
  if (!spec.suffix.empty()) out.add("end_of_word_suffix", words(spec.suffix));
  out.add("fuse_unk", JsonValue::boolean(spec.fuse_unk));
  out.add("byte_fallback", JsonValue::boolean(spec.byte_fallback));
  out.add("ignore_merges", JsonValue::boolean(spec.ignore_merges));
  out.add("vocab", vocabulary_json(spec.vocabulary));
  JsonValue merges = JsonValue::array();
  for (const auto& [left, right] : spec.merges)
    merges.push(JsonValue::array({words(left), words(right)}));
  out.add("merges", std::move(merges));
  if (spec.ranks.empty()) return out;
  JsonValue ranks = JsonValue::array();
  for (const int32_t rank : spec.ranks) ranks.push(JsonValue::integer(rank));
  out.add("merge_ranks", std::move(ranks));
  return out;
}

JsonValue places_json(const std::vector<TemplatePart>& parts, JsonValue& specials) {
  JsonValue positions = JsonValue::array();
  for (const TemplatePart& part : parts) {
    JsonValue entry =
        JsonValue::object({{"id", words(part.name)}, {"type_id", JsonValue::integer(part.type)}});
    positions.push(
        JsonValue::object({{part.is_text ? "Sequence" : "SpecialToken", std::move(entry)}}));
    if (part.is_text || specials.find(part.name) != nullptr) continue;
    JsonValue ids = JsonValue::array(), tokens = JsonValue::array();
    for (const TemplateId& id : part.ids) {
      ids.push(JsonValue::integer(id.id));
      tokens.push(words(id.token));
    }
    specials.add(part.name, JsonValue::object({{"id", words(part.name)},
                                               {"ids", std::move(ids)},
                                               {"tokens", std::move(tokens)}}));
  }
  return positions;
}

JsonValue template_json(const TokenizerSpec& spec) {
  JsonValue specials = JsonValue::object();
  JsonValue out = typed("TemplateProcessing");
  out.add("single", places_json(*spec.post_processor, specials));
  out.add("pair", places_json(spec.pair_processor, specials));
  out.add("special_tokens", std::move(specials));
  return out;
}

}  // namespace
}  // namespace text

std::string tokenizer_json(const TokenizerSpec& spec) {
  JsonValue root = JsonValue::object({{"version", text::words("1.0")}});
  JsonValue added = JsonValue::array();
  for (const text::AddedTokenSpec& token : spec.added) added.push(text::added_json(token));
  root.add("added_tokens", std::move(added));
  root.add("normalizer", text::steps_json(spec.normalizer, "normalizers"));
  root.add("pre_tokenizer", text::steps_json(spec.pre_tokenizer, "pretokenizers"));
  const bool joins =
      spec.decoder.size() == 1 && spec.decoder[0].kind == text::DecoderKind::join_spaces;
  // No steps are an empty list: null would join tokens with spaces.
  JsonValue decoder = text::steps_json(spec.decoder, "decoders");
  if (spec.decoder.empty()) {
    decoder = text::typed("Sequence");
    decoder.add("decoders", JsonValue::array());
  }
  root.add("decoder", joins ? JsonValue() : std::move(decoder));
  root.add("model", spec.word_piece ? text::model_json(*spec.word_piece)
                    : spec.unigram  ? text::model_json(*spec.unigram)
                                    : text::model_json(spec.model));
  root.add("post_processor", spec.post_processor ? text::template_json(spec) : JsonValue());
  return dump_json(root);
}

}  // namespace loom::core
