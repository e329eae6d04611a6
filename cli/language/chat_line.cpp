#include "chat_line.hpp"

#include <fmt/core.h>

#include <charconv>
#include <vector>

#include "../help/guess.hpp"
#include "../shared/console.hpp"

namespace loom::cli {
namespace {

struct ChatCommand {
  const char* name;
  const char* use;
  const char* doc;
};

constexpr ChatCommand kChatCommands[] = {
    {"help", "/help", "this list"},
    {"set", "/set NAME VALUE", "a setting, as temperature 0.8; without NAME: shows them all"},
    {"system", "/system TEXT", "the system text of the chat; without TEXT: shows it"},
    {"clear", "/clear", "begin anew; the system text stays"},
    {"regenerate", "/regenerate", "the last reply once more, with the next seed"},
    {"result", "/result TEXT", "what a call of the last reply gave; one line for each call"},
    {"save", "/save FILE", "write the chat as JSON"},
    {"load", "/load FILE", "go on with a chat that was saved"},
    {"show", "/show", "model, settings, turns and how full the context is"},
    {"bye", "/bye", "end; so do Ctrl-D, and Ctrl-C twice"},
};

std::string trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  const size_t last = text.find_last_not_of(" \t\r\n");
  return first == text.npos ? std::string() : std::string(text.substr(first, last - first + 1));
}

Error no_value(const std::string& name, const std::string& value, const std::string& range) {
  return Error{Code::invalid_argument,
               fmt::format("'{}' is not a {}; it is {}", value, name, range),
               {},
               -1};
}

template <class T>
Status set_number(T& to, T low, T high, const std::string& name, const std::string& value) {
  T number{};
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  const bool whole = error == std::errc() && end == value.data() + value.size();
  if (!whole || !(number >= low && number <= high))
    return no_value(name, value, fmt::format("a number from {} to {}", low, high));
  to = number;
  return {};
}

}  // namespace

ChatLine parse_chat_line(std::string_view line, bool person) {
  if (line.starts_with("//")) return {{}, std::string(line.substr(1))};
  if (!line.starts_with("/")) return {{}, std::string(line)};
  const size_t end = std::min(line.find_first_of(" \t\n"), line.size());
  const std::string word(line.substr(1, end - 1));
  if (!person && !chat_command(word).ok()) return {{}, std::string(line)};
  return {word.empty() ? "help" : word, trimmed(line.substr(end))};
}

std::string chat_help() {
  std::string text;
  for (const ChatCommand& command : kChatCommands)
    text += fmt::format("{:<17} {}\n", command.use, command.doc);
  return text +
         "\"\"\"               begins a text of several lines, which ends with \"\"\"\n"
         "//                begins a text with a slash\n";
}

Result<std::string> chat_command(const std::string& word) {
  if (word == "exit" || word == "quit") return std::string("bye");
  if (word == "?") return std::string("help");
  std::vector<std::string> names;
  for (const ChatCommand& command : kChatCommands) {
    if (word == command.name) return word;
    names.emplace_back(command.name);
  }
  return Error{Code::invalid_argument,
               fmt::format("no command '/{}'{}; /help lists them, // begins a text with a slash",
                           word, did_you_mean(word, names)),
               {},
               -1};
}

Status set_chat_option(GenerateOptions& options, const std::string& name,
                       const std::string& value) {
  SamplerOptions& s = options.sampler;
  std::string key = lower(name);
  for (char& c : key)
    if (c == '-') c = '_';
  if (key == "temperature") return set_number(s.temperature, 0.0f, 1e6f, key, value);
  if (key == "top_k") return set_number<int64_t>(s.top_k, 0, INT32_MAX, key, value);
  if (key == "top_p") return set_number(s.top_p, 1e-6f, 1.0f, key, value);
  if (key == "min_p") return set_number(s.min_p, 0.0f, 1.0f, key, value);
  if (key == "repetition_penalty" || key == "repeat_penalty")
    return set_number(s.repetition_penalty, 1e-3f, 1e6f, key, value);
  if (key == "repetition_window" || key == "repeat_last_n")
    return set_number<int64_t>(s.repetition_window, 0, INT32_MAX, key, value);
  if (key == "seed") return set_number<uint64_t>(s.seed, 0, UINT64_MAX, key, value);
  if (key == "max_tokens" || key == "num_predict")
    return set_number<int64_t>(options.max_tokens, 1, int64_t{1} << 40, key, value);
  const std::vector<std::string> known = {
      "temperature",       "top_k", "top_p",      "min_p",    "repetition_penalty",
      "repetition_window", "seed",  "max_tokens", "thinking", "system"};
  return Error{Code::invalid_argument,
               fmt::format("nothing is called '{}'{}; there are: {}", name,
                           did_you_mean(key, known), list_of(known)),
               {},
               -1};
}

std::string chat_options_text(const GenerateOptions& options) {
  const SamplerOptions& s = options.sampler;
  return fmt::format(
      "temperature {}, top_k {}, top_p {}, min_p {}, repetition_penalty {}, repetition_window {}, "
      "seed {}, max_tokens {}",
      s.temperature, s.top_k, s.top_p, s.min_p, s.repetition_penalty, s.repetition_window, s.seed,
      options.max_tokens);
}

}  // namespace loom::cli
