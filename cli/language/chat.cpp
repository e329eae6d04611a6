#include "chat.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "../shared/console.hpp"
#include "../shared/progress.hpp"
#include "chat_line.hpp"
#include "line_editor.hpp"

namespace loom::cli {
namespace {

constexpr std::string_view kBlock = "\"\"\"";
constexpr const char* kDim = "\x1b[2m";
constexpr const char* kPlain = "\x1b[0m";

double per_second(int64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0.0;
}

// A full context is not a usage error, although a length is out of range. Nor is a template that
// fails on plain turns: that is the model's fault.
int fail_reply(const Error& error) {
  if (error.code == Code::out_of_range) return fail(kFailed, error.str());
  const bool by_template = error.where == "its chat template cannot be used";
  if (by_template && error.code == Code::invalid_argument) return fail(kBadFile, error.str());
  return fail(error);
}

// Prints a reply while it arrives. Thinking is dim on a terminal; a pipe gets it between its tags.
class ReplyPrinter {
 public:
  ReplyPrinter(bool hide, bool silent)
      : hide_(hide), silent_(silent), terminal_(isatty(STDOUT_FILENO) != 0) {}

  void print(std::string_view text, bool thinking) {
    if (silent_ || (thinking && hide_)) return;
    if (thinking != thinking_) change(thinking);
    write_out(text);
  }
  void finish() {
    if (silent_) return;
    if (thinking_) change(false);
    write_out("\n");
  }

 private:
  void change(bool thinking) {
    thinking_ = thinking;
    if (terminal_)
      write_out(thinking ? kDim : kPlain);
    else
      write_out(thinking ? "<think>" : "</think>");
    if (!thinking) write_out("\n\n");
  }
  bool hide_, silent_, terminal_, thinking_ = false;
};

class ChatFace {
 public:
  ChatFace(const Model& model, const ChatFlags& flags, Chat chat, bool person)
      : model_(model),
        flags_(flags),
        chat_(std::move(chat)),
        options_(flags.generate),
        hide_(flags.hide_thinking),
        person_(person) {}

  int ask(const std::string& question) {
    results_.clear();
    return reply([&](const GenerateOptions& options, const ReplySink& sink) {
      return chat_.say(question, options, sink);
    });
  }

  int loop() {
    if (person_) interrupts_stop_replies();
    const std::unique_ptr<LineEditor> lines =
        person_ ? LineEditor::for_terminal(flags_.no_history ? "" : chat_history_file())
                : LineEditor::for_pipe();
    greet();
    bool asked_to_end = false;
    while (!ended_) {
      std::string line;
      switch (read(*lines, line)) {
        case LineEditor::Came::end: ended_ = true; break;
        case LineEditor::Came::interrupted:
          if (!person_ || !take_interrupt()) return fail_interrupted();
          fmt::print(stderr, "\n");
          if (std::exchange(asked_to_end, true)) return kDone;
          note("Ctrl-C once more ends, and so does Ctrl-D");
          break;
        case LineEditor::Came::line:
          asked_to_end = false;
          if (const int code = take(line); code != kDone && !person_) return code;
          if (interrupted() && !take_interrupt()) return fail_interrupted();
          break;
      }
    }
    if (person_) fmt::print(stderr, "\n");
    return kDone;
  }

  int load(const std::string& path) {
    const Result<std::string> text = read_file(path);
    if (!text.ok()) return fail(text.error());
    const Status status = chat_.restore(*text, path);
    if (!status.ok()) return fail(status.error());
    results_.clear();
    if (!chat_.turns().empty()) options_ = chat_.turns().back().options;
    if (!flags_.quiet) note(fmt::format("{}: {} turns", path, chat_.turns().size()));
    return kDone;
  }

  int replay(const std::string& path) {
    if (const int code = load(path); code != kDone) return code;
    const auto is_reply = [](const ConversationTurn& turn) { return turn.role == "assistant"; };
    const auto replies = std::ranges::count_if(chat_.turns(), is_reply);
    const Result<int64_t> differs = chat_.replay();
    if (!differs.ok()) return fail_reply(differs.error());
    if (*differs >= 0)
      return fail(kMismatch, fmt::format("{}: turn {} came out otherwise", path, *differs + 1));
    write_line(fmt::format("{} replies, all the same", replies));
    return kDone;
  }

 private:
  void greet() const {
    if (!person_ || flags_.quiet) return;
    note(chat_.has_template()
             ? std::string("/help lists commands; Ctrl-C stops a reply, Ctrl-D ends")
             : std::string("this model continues texts; /clear begins a new one, /help lists "
                           "commands, Ctrl-D ends"));
  }

  // A line, or several between """.
  LineEditor::Came read(LineEditor& lines, std::string& text) const {
    LineEditor::Came came = lines.read("> ", text);
    if (came != LineEditor::Came::line) return came;
    if (text.starts_with(kBlock)) {
      text.erase(0, kBlock.size());
      while (!text.ends_with(kBlock)) {
        std::string more;
        came = lines.read(". ", more);
        if (came == LineEditor::Came::interrupted) return came;
        if (came == LineEditor::Came::end) break;
        text += "\n" + more;
      }
      if (text.ends_with(kBlock)) text.resize(text.size() - kBlock.size());
      if (text.starts_with('\n')) text.erase(0, 1);
      if (text.ends_with('\n')) text.pop_back();
      if (text.find_first_not_of(" \t\n") != text.npos) lines.remember(text);
      return LineEditor::Came::line;
    }
    if (text.find_first_not_of(" \t\r\n") != text.npos) lines.remember(text);
    return came;
  }

  int take(const std::string& line) {
    if (line.find_first_not_of(" \t\r\n") == line.npos) return kDone;
    const ChatLine parsed = parse_chat_line(line, person_);
    if (parsed.command.empty()) return ask(parsed.rest);
    const Result<std::string> command = chat_command(parsed.command);
    return command.ok() ? obey(*command, parsed.rest) : fail(command.error());
  }

  int obey(const std::string& command, const std::string& rest) {
    if (command == "help") fmt::print(stderr, "{}", chat_help());
    if (command == "bye") ended_ = true;
    if (command == "show") show();
    if (command == "set") return set(rest);
    if (command == "system") return system(rest);
    if (command == "save") return save(rest);
    if (command == "load")
      return rest.empty() ? fail(kUsage, "/load needs the name of a file") : load(rest);
    if (command == "regenerate") return regenerate();
    if (command == "result") return give(rest);
    if (command == "clear") {
      chat_.clear();
      results_.clear();
      note("the chat begins anew");
    }
    return kDone;
  }

  int set(const std::string& rest) {
    const size_t cut = std::min(rest.find_first_of(" \t"), rest.size());
    const std::string name = rest.substr(0, cut);
    const size_t at = std::min(rest.find_first_not_of(" \t", cut), rest.size());
    const std::string value = rest.substr(at);
    if (name == "system") return system(value);
    if (name == "thinking") {
      if (value != "on" && value != "off") return fail(kUsage, "/set thinking on, or off");
      hide_ = value == "off";
    } else if (!name.empty()) {
      const Status status = set_chat_option(options_, name, value);
      if (!status.ok()) return fail(status.error());
    }
    note(chat_options_text(options_));
    return kDone;
  }

  int system(std::string text) {
    if (text == "\"\"")
      text = "";
    else if (text.empty()) {
      note(chat_.system().empty() ? "no system text" : "system: " + chat_.system());
      return kDone;
    }
    chat_.set_system(std::move(text));
    if (!flags_.quiet) note("the new system text applies from the next reply on");
    return kDone;
  }

  int save(const std::string& path) {
    if (path.empty()) return fail(kUsage, "/save needs the name of a file");
    const Status status = write_file(path, chat_.to_json());
    if (!status.ok()) return fail(status.error());
    if (!flags_.quiet) note(fmt::format("{}: {} turns", path, chat_.turns().size()));
    return kDone;
  }

  // Takes one result after the other; the reply follows the last one.
  int give(const std::string& result) {
    const size_t calls = chat_.turns().empty() ? 0 : chat_.turns().back().tool_calls.size();
    if (calls == 0) return fail(kUsage, "the last reply asks for no call");
    results_.push_back({result});
    if (results_.size() < calls) {
      if (!flags_.quiet) note(fmt::format("{} of {} calls have a result", results_.size(), calls));
      return kDone;
    }
    const std::vector<ToolResult> all = std::exchange(results_, {});
    return reply([&](const GenerateOptions& options, const ReplySink& sink) {
      return chat_.give(all, options, sink);
    });
  }

  int regenerate() {
    if (!chat_.turns().empty()) {
      options_.sampler.seed = chat_.turns().back().options.sampler.seed + 1;
      if (options_.sampler.temperature == 0)
        note("at temperature 0 the reply stays the same; /set temperature 0.8");
    }
    return reply([&](const GenerateOptions& options, const ReplySink& sink) {
      return chat_.regenerate(options, sink);
    });
  }

  void show() const {
    const ModelInfo& info = model_.info();
    note(fmt::format("{}: {}, {} parameters in {}", info.source, info.architecture, info.parameters,
                     dtype_name(info.dtype)));
    note(chat_options_text(options_));
    if (!chat_.system().empty()) note("system: " + chat_.system());
    const auto hidden = chat_.first_turn();
    note(fmt::format("{} turns{}; context {} of {}", chat_.turns().size(),
                     hidden > 0 ? fmt::format(", the first {} are out of sight", hidden) : "",
                     chat_.used(), chat_.context()));
  }

  // Sends a question, prints the reply while it arrives, and reports statistics.
  template <class F>
  int reply(const F& ask_model) {
    GenerateOptions options = options_;
    Progress bar("reading", "tokens", flags_.quiet || flags_.json);
    options.prefill_progress = [&](int64_t done, int64_t total) {
      bar.update(done, total);
      if (done == total) bar.finish();
      return !interrupted();
    };
    ReplyPrinter printer(hide_, flags_.json);
    const Result<Reply> got = ask_model(options, [&](std::string_view text, bool thinking) {
      printer.print(text, thinking);
      return !interrupted();
    });
    bar.finish();
    if (!got.ok()) return fail_reply(got.error());
    printer.finish();
    if (flags_.json) flags_.print_json(*got);
    show_calls(got->tool_calls);
    report(*got);
    if (!flags_.save.empty()) {
      const Status status = write_file(flags_.save, chat_.to_json());
      if (!status.ok()) return fail(status.error());
    }
    return interrupted() && !person_ ? fail_interrupted() : kDone;
  }

  // Prints a line of JSON for each call; violations of the tool's schema go to stderr.
  void show_calls(const std::vector<ToolCall>& calls) const {
    for (const ToolCall& call : calls) {
      if (!call.problem.empty())
        note(fmt::format("a call of '{}': {}", printable(call.name), call.problem));
      if (!flags_.json)
        JsonObject().set("name", call.name).set("arguments", call.arguments).print();
    }
  }

  void report(const Reply& reply) const {
    if (flags_.quiet) return;
    if (reply.dropped_turns > 0)
      note(fmt::format("the context was full: the oldest {} turns are out of sight now",
                       reply.dropped_turns));
    if (flags_.json || !stderr_is_terminal()) return;
    const Generation& g = reply.generation;
    note(fmt::format("{} tokens read, {:.0f}/s; {} written, {:.0f}/s; stop: {}; context {} of {}",
                     g.prompt_tokens, per_second(g.prompt_tokens, g.prefill_seconds),
                     g.token_ids.size(), per_second(g.decode_steps, g.decode_seconds),
                     stop_reason_name(g.stop), chat_.used(), chat_.context()));
  }

  const Model& model_;
  const ChatFlags& flags_;
  Chat chat_;
  GenerateOptions options_;
  std::vector<ToolResult> results_;  // results for the calls of the last reply, until all have one
  bool hide_, person_, ended_ = false;
};

// The state of a chat with turns of a Modelfile, as JSON.
std::string with_messages(const Chat& chat, const ChatFlags& flags) {
  Json settings = Json::object();
  const SamplerOptions& s = flags.generate.sampler;
  settings.add("max_tokens", Json::integer(flags.generate.max_tokens))
      .add("temperature", Json::real(static_cast<double>(s.temperature)))
      .add("top_k", Json::integer(s.top_k))
      .add("top_p", Json::real(static_cast<double>(s.top_p)))
      .add("min_p", Json::real(static_cast<double>(s.min_p)))
      .add("repetition_penalty", Json::real(static_cast<double>(s.repetition_penalty)))
      .add("repetition_window", Json::integer(s.repetition_window))
      .add("seed", Json::string(std::to_string(s.seed)))
      .add("ignore_eos", Json::boolean(flags.generate.ignore_eos))
      .add("stop", Json::array());
  Json turns = Json::array();
  for (const ChatTurn& message : flags.messages) {
    Json turn = Json::object();
    turn.add("role", Json::string(message.role)).add("content", Json::string(message.content));
    if (message.role == "assistant")
      turn.add("tokens", Json::integer(0))
          .add("stop_reason", Json::string("eos"))
          .add("settings", settings);
    turns.push(turn);
  }
  std::string state = chat.to_json();
  return state.replace(state.rfind("[]"), 2, turns.text());  // its empty list of turns is last
}

}  // namespace

int talk(const Model& model, const ChatFlags& flags, const std::string* question) {
  Result<Chat> chat = model.chat(flags.conversation);
  if (!chat.ok()) return fail(chat.error());
  if (!flags.messages.empty()) {
    const Status restored = chat->restore(with_messages(*chat, flags));
    if (!restored.ok()) return fail(restored.error());
  }
  ChatFace face(model, flags, std::move(*chat), question == nullptr && stdin_is_terminal());
  if (!flags.replay.empty()) return face.replay(flags.replay);
  if (!flags.load.empty()) {
    if (const int code = face.load(flags.load); code != kDone) return code;
  }
  return question != nullptr ? face.ask(*question) : face.loop();
}

}  // namespace loom::cli
