// loom tokenize: text to token ids and back, with the tokenizer of a model folder.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <memory>

#include "../shared/verbs.hpp"
#include "../train/option_flags.hpp"

namespace loom::cli {
namespace {

struct TokenizeFlags {
  std::string model, text;
  MemoryFlags memory;
  OptionFlags encoding;  // EncodeOptions
  bool decode = false, json = false;
  Option text_option;
};

Result<Tokenizer> open(const TokenizeFlags& f) {
  EngineFlags engine;
  engine.threads = 1;
  LOOM_ASSIGN(const Engine on, engine.create(f.memory));
  return Tokenizer::load(f.model, on);
}

// Ids separated by white space and commas.
Result<std::vector<TokenId>> parse_ids(std::string_view text) {
  std::vector<TokenId> ids;
  constexpr std::string_view kBetween = " \t\r\n,[]";
  size_t at = 0;
  while ((at = text.find_first_not_of(kBetween, at)) != std::string_view::npos) {
    const size_t end = std::min(text.find_first_of(kBetween, at), text.size());
    TokenId id = 0;
    const auto [stop, error] = std::from_chars(text.data() + at, text.data() + end, id);
    if (error != std::errc() || stop != text.data() + end) {
      return Error{
          Code::invalid_argument,
          fmt::format("'{}' is not a token id; give numbers with blanks or commas between them",
                      text.substr(at, std::min(end - at, size_t{40}))),
          {},
          -1};
    }
    ids.push_back(id);
    at = end;
  }
  return ids;
}

int decode(const TokenizeFlags& f, const Tokenizer& tokenizer, const std::string& input) {
  const Result<std::vector<TokenId>> ids = parse_ids(input);
  if (!ids.ok()) return fail(ids.error());
  const Result<std::string> text = tokenizer.decode(*ids, false);
  if (!text.ok()) return fail(text.error());
  if (f.json) {
    JsonObject().set("text", *text).set("token_ids", *ids).print();
  } else {
    write_out(*text + "\n");
  }
  return kDone;
}

int encode(const TokenizeFlags& f, const Tokenizer& tokenizer, const std::string& input) {
  EncodeOptions how;
  const Status read = f.encoding.read(how);
  if (!read.ok()) return fail(read.error());
  const Result<std::vector<TokenId>> ids = tokenizer.encode(input, how);
  if (!ids.ok()) return fail(ids.error());
  if (f.json) {
    JsonObject().set("token_ids", *ids).print();
  } else {
    std::string line;
    for (const TokenId id : *ids) line += fmt::format("{}{}", line.empty() ? "" : " ", id);
    write_out(line + "\n");
  }
  return kDone;
}

Result<std::string> read_input(const TokenizeFlags& f) {
  if (f.text_option.given()) return f.text;
  LOOM_ASSIGN(const uint64_t limit, f.memory.text_limit());
  return read_stdin(limit);
}

int run(const TokenizeFlags& f) {
  if (!f.text_option.given() && stdin_is_terminal())
    return fail(kUsage, "no text; give it as an argument or on stdin");
  const Result<Tokenizer> tokenizer = open(f);
  if (!tokenizer.ok()) return fail(tokenizer.error());
  const Result<std::string> input = read_input(f);
  if (!input.ok()) return fail(input.error());
  return f.decode ? decode(f, *tokenizer, *input) : encode(f, *tokenizer, *input);
}

}  // namespace

Verb add_tokenize(Command app) {
  auto f = std::make_shared<TokenizeFlags>();
  const Command verb = app.command("tokenize", "Turn text into token ids, or ids into text.");
  verb.examples(
      "  loom tokenize models/stories.entity \"Once upon a time\"\n"
      "  loom tokenize models/stories.entity --decode \"540 541 261 446\"");
  verb.option("MODEL", f->model, "Model folder, or a tokenizer.json").names_model().required();
  f->text_option = verb.option("TEXT", f->text, "The text or ids (default: stdin)");
  verb.flag("--decode", f->decode, "TEXT is ids; print their text");
  f->encoding.add(verb, list_options(EncodeOptions()));
  f->memory.add(verb);
  verb.flag("--json", f->json, "One JSON object instead of text");
  return {verb, [f] { return run(*f); }};
}

}  // namespace loom::cli
