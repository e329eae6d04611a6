#include "serve/dialects/infill.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "serve/dialects/fields.hpp"

namespace loom::core {
namespace {

// Names of tokens; empty if the family lacks one. A model belongs to the first family whose prefix,
// suffix and middle it has.
struct HoleTokens {
  std::string_view prefix, suffix, middle, project, file, pad, end;
  bool suffix_first = false;
};
constexpr HoleTokens kFamilies[] = {
    // Qwen 2.5 Coder (arXiv:2409.12186) and later, CodeGemma.
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|repo_name|>", "<|file_sep|>",
     "<|fim_pad|>", ""},
    {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "", "<|file_separator|>", "", ""},
    // StarCoder 2, Granite code, Stable Code; SantaCoder.
    {"<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<repo_name>", "<file_sep>", "<fim_pad>", ""},
    {"<fim-prefix>", "<fim-suffix>", "<fim-middle>", "", "", "<fim-pad>", ""},
    // DeepSeek Coder and V2, V3.
    {"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>", "", "", "", ""},
    // CodeLlama, as sentencepiece writes its tokens.
    {"▁<PRE>", "▁<SUF>", "▁<MID>", "", "", "", "▁<EOT>"},
    {"<PRE>", "<SUF>", "<MID>", "", "", "<PAD>", "<EOT>"},
    // GLM 4.
    {"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>", "", "", "", ""},
    // Codestral, which continues after the prefix and has no middle.
    {"[PREFIX]", "[SUFFIX]", "", "", "", "", "", true},
};

TokenId id_of(const loom::Tokenizer& tokenizer, std::string_view name) {
  return name.empty() ? -1 : tokenizer.token_id(name).value_or(-1);
}

const HoleTokens* family_of(const loom::Tokenizer& tokenizer) {
  const auto has = [&](std::string_view name) { return id_of(tokenizer, name) >= 0; };
  // If families differ only in the tokens of projects, the one with all tokens wins.
  const auto all = [&](const HoleTokens& f) {
    return has(f.prefix) && has(f.suffix) && (f.middle.empty() || has(f.middle)) &&
           (f.file.empty() || has(f.file));
  };
  const auto hole = [&](const HoleTokens& f) {
    return has(f.prefix) && has(f.suffix) && (f.middle.empty() || has(f.middle));
  };
  const auto* found = std::ranges::find_if(kFamilies, all);
  if (found == std::end(kFamilies)) found = std::ranges::find_if(kFamilies, hole);
  return found == std::end(kFamilies) ? nullptr : found;
}

// Tokenizes texts without special tokens, for the client of a reply.
struct Plain {
  const Service& service;
  const HttpReply& reply;
  Result<std::vector<TokenId>> operator()(std::string_view text) const {
    EncodeOptions options;
    options.add_special_tokens = options.parse_special_tokens = false;
    return service.encode(text, reply, std::move(options));
  }
};

void append(std::vector<TokenId>& to, std::span<const TokenId> more) {
  to.insert(to.end(), more.begin(), more.end());
}
void append(std::vector<TokenId>& to, TokenId id) {
  if (id >= 0) to.push_back(id);
}

// Each file as tokens, after its header.
Result<std::vector<std::vector<TokenId>>> files_of(const Plain& plain, TokenId mark,
                                                   const std::vector<InfillFile>& files) {
  std::vector<std::vector<TokenId>> out;
  for (const InfillFile& file : files) {
    std::vector<TokenId> ids;
    append(ids, mark);
    // Without such a token, a line of dashes separates files.
    const std::string head = cat(mark >= 0 ? "" : "\n\n--- ", file.name, mark >= 0 ? "\n" : "\n\n");
    LOOM_ASSIGN(const std::vector<TokenId> text, plain(head + file.text));
    append(ids, text);
    out.push_back(std::move(ids));
  }
  return out;
}

// How many tokens of prefix and suffix fit into `room`.
std::pair<size_t, size_t> shares(size_t prefix, size_t suffix, size_t room) {
  const size_t most = room - room / 4;
  const size_t after = std::min(suffix, room - std::min(prefix, most));
  return {std::min(prefix, room - after), after};
}

}  // namespace

Result<InfillPrompt> infill_prompt(const Service& service, const InfillParts& parts,
                                   const HttpReply& reply) {
  LOOM_TRY(service.writes());
  const Result<loom::Tokenizer> tokenizer = service.model().tokenizer();
  const HoleTokens* family = tokenizer.ok() ? family_of(*tokenizer) : nullptr;
  if (family == nullptr) {
    return unsupported(
        cat(service.name(),
            " was not made to fill holes: its tokenizer has no tokens such as <|fim_prefix|>; ask "
            "/completion to go on with a text"));
  }
  LOOM_TRY(service.check_text(parts.prefix, kMaxDocumentBytes));
  LOOM_TRY(service.check_text(parts.suffix, kMaxDocumentBytes));
  LOOM_TRY(service.check_text(parts.begin, kMaxDocumentBytes));
  for (const InfillFile& file : parts.files)
    LOOM_TRY(service.check_text(file.text, kMaxDocumentBytes));
  const auto id = [&](std::string_view name) { return id_of(*tokenizer, name); };
  const Plain plain{service, reply};
  LOOM_ASSIGN(std::vector<TokenId> prefix, plain(parts.prefix + parts.begin));
  LOOM_ASSIGN(std::vector<TokenId> suffix, plain(parts.suffix));
  LOOM_ASSIGN(const auto files, files_of(plain, id(family->file), parts.files));
  LOOM_ASSIGN(const std::vector<TokenId> around, tokenizer->encode(""));

  const int64_t context = service.scheduler().context();
  const int64_t text = parts.max_tokens < 0 ? context / 4 : std::min(parts.max_tokens, context / 2);
  constexpr int64_t kMarks = 8;  // beginning, project, file, prefix, suffix, middle; and a margin
  if (context - text <= kMarks) return too_long(context - text + kMarks, context);
  const auto room = static_cast<size_t>(context - text - kMarks);
  const auto [before, after] = shares(prefix.size(), suffix.size(), room);
  prefix.erase(prefix.begin(), prefix.end() - static_cast<std::ptrdiff_t>(before));
  suffix.resize(after);

  size_t left = room - before - after, first = files.size();
  while (first > 0 && files[first - 1].size() <= left) left -= files[--first].size();

  InfillPrompt out;
  if (!around.empty()) out.ids.push_back(around.front());
  if (first < files.size()) append(out.ids, id(family->project));
  for (; first < files.size(); ++first) {
    append(out.ids, files[first]);
    if (first + 1 == files.size()) append(out.ids, id(family->file));
  }
  const auto add = [&](std::string_view mark, std::span<const TokenId> ids) {
    append(out.ids, id(mark));
    append(out.ids, ids);
  };
  if (family->suffix_first) add(family->suffix, suffix);
  add(family->prefix, prefix);
  if (!family->suffix_first) add(family->suffix, suffix);
  append(out.ids, id(family->middle));

  out.ends = service.model().info().eos_ids;
  for (const std::string_view name : {family->pad, family->project, family->file, family->end})
    append(out.ends, id(name));
  return out;
}

Result<std::vector<InfillFile>> read_infill_files(const JsonValue& value, std::string_view name) {
  constexpr size_t kMax = 256;
  if (!value.is_array() || value.elements().size() > kMax) {
    return invalid(cat(name, " must be a list of at most ", kMax,
                       " files, each {\"filename\", \"text\"}; got ", value.describe()));
  }
  std::vector<InfillFile> out;
  for (const JsonValue& one : value.elements()) {
    const std::string where = cat(name, "[", out.size(), "]");
    const JsonValue *text = one.find("text"), *called = one.find("filename");
    if (text == nullptr) return invalid(cat(where, ".text is missing: what is in the file"));
    InfillFile file;
    LOOM_TRY(take_text(*text, cat(where, ".text"), file.text));
    if (called != nullptr) LOOM_TRY(take_text(*called, cat(where, ".filename"), file.name));
    out.push_back(std::move(file));
  }
  return out;
}

}  // namespace loom::core
