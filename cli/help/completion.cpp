// Scripts that complete a line of the program in bash, zsh and fish. Each has one table of the
// words that may follow a command; other words are files.
#include <fmt/ranges.h>

#include <memory>

#include "../shared/verbs.hpp"

namespace loom::cli {
namespace {

// Calls `each` for the program and all its commands.
template <class Each>
void walk(const CommandText& command, const Each& each) {
  each(command);
  for (const CommandText& child : command.commands) walk(child, each);
}

std::vector<std::string> words_after(const CommandText& command) {
  std::vector<std::string> words;
  for (const CommandText& child : command.commands) words.push_back(child.name);
  for (const OptionText& option : command.options) {
    if (option.positional) continue;
    for (const std::string& name : option.names) words.push_back(name);
  }
  return words;
}

// The lines of a `case` that sets `found` by the commands of the line so far.
std::string table(const CommandText& program) {
  std::string text;
  walk(program, [&](const CommandText& command) {
    text += fmt::format("    {}) found={} ;;\n", shell_quoted(command.path),
                        shell_quoted(fmt::format("{}", fmt::join(words_after(command), " "))));
  });
  return text;
}

constexpr const char* kBash = R"(# bash completion of loom: source <(loom completion bash)
_loom_words() {{
  case "$1" in
{0}    *) found= ;;
  esac
}}
_loom() {{
  local place=loom found word next
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    _loom_words "$place $word"
    if [[ -n "$found" ]]; then place="$place $word"; fi
  done
  _loom_words "$place"
  next="${{COMP_WORDS[COMP_CWORD]}}"
  COMPREPLY=($(compgen -W "$found" -- "$next"))
  if [[ "$next" != -* && "$place" != loom ]]; then COMPREPLY+=($(compgen -f -- "$next")); fi
}}
complete -o filenames -F _loom loom
)";

constexpr const char* kZsh = R"(#compdef loom
# zsh completion of loom: source <(loom completion zsh)
_loom_words() {{
  case "$1" in
{0}    *) found= ;;
  esac
}}
_loom() {{
  local place=loom found word
  for word in "${{(@)words[2,CURRENT-1]}}"; do
    _loom_words "$place $word"
    if [[ -n "$found" ]]; then place="$place $word"; fi
  done
  _loom_words "$place"
  compadd -- ${{=found}}
  if [[ "$place" != loom ]]; then _files; fi
}}
if [[ "${{funcstack[1]-}}" == _loom ]]; then  # a file of this name in $fpath
  _loom "$@"
else
  (( ${{+functions[compdef]}} )) || {{ autoload -Uz compinit && compinit; }}
  compdef _loom loom
fi
)";

// Whether the line so far names that command: "mesh run", and not "run" after "mesh".
std::string fish_condition(const CommandText& program, const CommandText& command) {
  const std::string words = command.path.size() > 4 ? command.path.substr(5) : "";
  if (words.empty()) return "__fish_use_subcommand";
  const size_t space = words.find(' ');
  std::string text = "__fish_seen_subcommand_from " + words.substr(0, space);
  if (space != std::string::npos)
    return text + "; and __fish_seen_subcommand_from " + words.substr(space + 1);
  for (const CommandText& other : program.commands) {
    for (const CommandText& child : other.commands) {
      if (child.name == words) text += "; and not __fish_seen_subcommand_from " + other.name;
    }
  }
  return text;
}

// A line for each word of each command, with its help.
std::string fish(const CommandText& program) {
  std::string text = "# fish completion of loom: loom completion fish | source\n";
  walk(program, [&](const CommandText& command) {
    const std::string at = fish_condition(program, command);
    for (const CommandText& child : command.commands)
      text += fmt::format("complete -c loom -f -n {} -a {} -d {}\n", shell_quoted(at),
                          shell_quoted(child.name), shell_quoted(child.doc));
    for (const OptionText& option : command.options) {
      if (option.positional) continue;
      text += fmt::format("complete -c loom -n {}", shell_quoted(at));
      for (const std::string& name : option.names)
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      text += fmt::format("{} -d {}\n", option.value.empty() ? "" : " -r",
                          shell_quoted(option.doc.substr(0, option.doc.find_first_of(".;\n"))));
    }
  });
  return text;
}

}  // namespace

std::string completion_script(const CommandText& program, std::string_view shell) {
  if (shell == "fish") return fish(program);
  if (shell == "bash") return fmt::format(kBash, table(program));
  if (shell == "zsh") return fmt::format(kZsh, table(program));
  return {};
}

Verb add_completion(Command app) {
  auto shell = std::make_shared<std::string>();
  const Command verb = app.command("completion", "Print a script that completes lines in a shell.");
  verb.examples(
      "  source <(loom completion bash)\n"
      "  source <(loom completion zsh)\n"
      "  loom completion fish | source\n"
      "  loom help --man train | man -l -");
  verb.option("SHELL", *shell, "bash, zsh or fish").required();
  return {verb, [app, shell] {
            const std::string script = completion_script(app.text(), lower(*shell));
            if (script.empty()) {
              return fail(kUsage, fmt::format("no completion for '{}'; choose from bash, zsh, fish",
                                              printable(*shell)));
            }
            write_out(script);
            return static_cast<int>(kDone);
          }};
}

}  // namespace loom::cli
