// The command line as verbs declare it: commands, options, flags, and their constraints. It wraps
// CLI11, which only flags.cpp includes, because its templates cost seconds of compile time per
// file. It has only what the verbs use. Commands and options are handles: copyable, valid while
// their CommandLine exists. The variables of options must outlive parsing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../help/command_text.hpp"
#include "loom/result.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace loom::cli {

// An option, a flag or a positional argument. Constraints can be chained.
class Option {
 public:
  Option() = default;  // of no command
  explicit Option(CLI::Option* option) : option_(option) {}

  Option required(bool yes = true) const;
  Option excludes(Option other) const;  // not both on one line
  Option needs(Option other) const;     // only together with the other
  Option show_default() const;          // in the help: the current value of the variable
  // The value is a model: CommandLine::resolve_models() makes a name a path. With `or_modelfile` it
  // may be a Modelfile too.
  Option names_model(bool or_modelfile = false) const;
  Option group(std::string_view title) const;  // its heading in the help
  Option takes(std::string_view what) const;   // in the help: INT, NUMBER, NAME
  Option hidden() const;                       // not in the help
  bool given() const;                          // whether it was on the parsed line

 protected:
  CLI::Option* option_ = nullptr;
};

// Numbers have a range, bounds included; a value outside is a usage error.
class IntOption : public Option {
 public:
  using Option::Option;
  Option range(int64_t low, int64_t high) const;
};

class UintOption : public Option {
 public:
  using Option::Option;
  Option range(uint64_t low, uint64_t high) const;
};

class RealOption : public Option {
 public:
  using Option::Option;
  Option range(double low, double high) const;
};

// Takes the following values, up to the next option.
class ListOption : public Option {
 public:
  using Option::Option;
  Option split_at(char delimiter) const;  // "a,b" is two values too
  Option one_at_a_time() const;           // one value per use of the option
};

class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  // A subcommand: "llm" of "bench".
  Command command(std::string_view name, std::string_view doc) const;
  // A subcommand that was declared before.
  Command find(std::string_view name) const;
  // All of it as text, with its subcommands.
  CommandText text() const;
  // Requires one of the subcommands.
  void require_command() const;
  // The same command. Options and commands that are added to the result are listed in the help
  // under this heading.
  Command group(std::string_view title) const;
  // The same, unless it has a heading already.
  Command default_group(std::string_view title) const;
  // Examples come first in the help.
  void examples(std::string_view text) const;

  // `names`: "-o,--output", or "MODEL" for a positional argument. The default is the value of `to`.
  Option flag(std::string_view names, bool& to, std::string_view doc) const;
  Option option(std::string_view names, std::string& to, std::string_view doc) const;
  IntOption option(std::string_view names, int& to, std::string_view doc) const;
  IntOption option(std::string_view names, int64_t& to, std::string_view doc) const;
  UintOption option(std::string_view names, uint64_t& to, std::string_view doc) const;
  RealOption option(std::string_view names, float& to, std::string_view doc) const;
  RealOption option(std::string_view names, double& to, std::string_view doc) const;
  ListOption option(std::string_view names, std::vector<std::string>& to,
                    std::string_view doc) const;
  ListOption option(std::string_view names, std::vector<int64_t>& to, std::string_view doc) const;

  // Whether it is on the parsed line.
  bool called() const;
  // Whether the line has that option: "--seed".
  bool given(std::string_view option) const;
  // Sets an option as if the line had it, unless the line has it. Errors: invalid_argument (a value
  // that the option does not take).
  Status set_default(std::string_view option, const std::vector<std::string>& values) const;

 private:
  template <class T>
  CLI::Option* add(std::string_view names, T& to, std::string_view doc) const;

  CLI::App* app_;
  std::string group_;
};

// The whole line, with --help for every command and --version.
class CommandLine {
 public:
  // `notes` end the program's help; `absent` ends the error about an unknown command.
  CommandLine(std::string_view name, std::string_view version, std::string_view doc,
              std::string_view notes, std::string_view absent = {});
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  Command root() const { return Command(app_.get()); }
  std::string help() const;
  // Sets the variables. Returns an exit code if there is nothing to run: help or the version was
  // printed on stdout, or a usage error on stderr.
  std::optional<int> parse(int argc, char** argv);
  // Sets the variables of names_model() to paths, and downloads missing models. Returns an exit
  // code after an error, which is on stderr.
  std::optional<int> resolve_models();

 private:
  std::unique_ptr<CLI::App> app_;
  std::string absent_, version_;
};

}  // namespace loom::cli
