// The command line as the verbs declare it: commands, options, flags, and what may stand beside
// what. A cover of CLI11, which flags.cpp alone includes, because its templates cost seconds in
// every file that sees them; only what the verbs use is here. Commands and options are handles:
// copied freely, good as long as their CommandLine. The variables that options set must outlive
// the parsing.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace loom::cli {

// An option, a flag or a positional argument. What narrows it can be chained.
class Option {
 public:
  Option() = default;  // of no command
  explicit Option(CLI::Option* option) : option_(option) {}

  Option required(bool yes = true) const;
  Option excludes(Option other) const;         // not both on one line
  Option needs(Option other) const;            // only beside the other
  Option show_default() const;                 // in the help: what the variable holds now
  Option names_model() const;                  // a name of a model that was pulled becomes its path
  Option group(std::string_view title) const;  // the heading of the help that it stands below
  Option takes(std::string_view what) const;   // in the help: INT, NUMBER, NAME
  Option hidden() const;                       // not in the help
  bool given() const;                          // on the line that was parsed

 protected:
  CLI::Option* option_ = nullptr;
};

// Numbers have a range, bounds included; a value outside is an error of the line.
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

// Takes the values that follow it, up to the next option.
class ListOption : public Option {
 public:
  using Option::Option;
  Option split_at(char delimiter) const;  // "a,b" is two values too
  Option one_at_a_time() const;           // one value each time the option is given
};

class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  // A command below this one: "llm" below "bench".
  Command command(std::string_view name, std::string_view doc) const;
  // One below that was declared before.
  Command find(std::string_view name) const;
  // One of the commands below has to follow.
  void require_command() const;
  // The same command. Options and commands that are added to the result are listed in the help
  // under this heading.
  Command group(std::string_view title) const;
  // They stand first in the help.
  void examples(std::string_view text) const;

  // `names`: "-o,--output", or "MODEL" for an argument by position. The default is what `to` holds.
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

  // Is it on the line that was parsed?
  bool called() const;
  // Is that option of it?
  bool given(std::string_view option) const;

 private:
  template <class T>
  CLI::Option* add(std::string_view names, T& to, std::string_view doc) const;

  CLI::App* app_;
  std::string group_;
};

// The whole line, with --help for every command and --version.
class CommandLine {
 public:
  // `notes` end the help of the program; `absent` ends the error about an unknown command.
  CommandLine(std::string_view name, std::string_view version, std::string_view doc,
              std::string_view notes, std::string_view absent = {});
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  Command root() const { return Command(app_.get()); }
  std::string help() const;
  // Sets the variables. Returns an exit code if there is nothing to run: help or the version is
  // printed on stdout, or the error of a wrong line on stderr.
  std::optional<int> parse(int argc, char** argv);

 private:
  std::unique_ptr<CLI::App> app_;
  std::string absent_;
};

}  // namespace loom::cli
