// The only file that includes CLI11; its exceptions about a wrong line end here, in parse().
// The texts of the help and of errors are those of CLI11.
#include "flags.hpp"

#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "console.hpp"

namespace loom::cli {
namespace {

// The help of a command opens with its examples, which are kept as its footer.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_description(const CLI::App* app) const override {
    const std::string description = CLI::Formatter::make_description(app);
    if (app->get_parent() == nullptr || app->get_footer().empty()) return description;
    return "Examples:\n" + app->get_footer() + "\n\n" + description;
  }
  std::string make_footer(const CLI::App* app) const override {
    if (app->get_parent() != nullptr) return {};
    return "\n" + app->get_footer() + "\n";
  }
};

template <typename T>
CLI::Option* add(CLI::App* app, std::string_view names, T& to, std::string_view doc) {
  return app->add_option(std::string(names), to, std::string(doc));
}

// The command that was called, the innermost one.
const CLI::App* innermost(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? &app : innermost(*parsed.front());
}

// With the names above it: "loom bench llm".
std::string full_name(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : full_name(*parent) + " " + app.get_name();
}

}  // namespace

// ---- options ------------------------------------------------------------------------------------

Option Option::required(bool yes) const {
  return Option(option_->required(yes));
}
Option Option::excludes(Option other) const {
  return Option(option_->excludes(other.option_));
}
Option Option::needs(Option other) const {
  return Option(option_->needs(other.option_));
}
Option Option::show_default() const {
  return Option(option_->capture_default_str());
}
bool Option::given() const {
  return option_ != nullptr && option_->count() > 0;
}

Option IntOption::range(int64_t low, int64_t high) const {
  return Option(option_->check(CLI::Range(low, high)));
}
Option UintOption::range(uint64_t low, uint64_t high) const {
  return Option(option_->check(CLI::Range(low, high)));
}
Option RealOption::range(double low, double high) const {
  return Option(option_->check(CLI::Range(low, high)));
}

Option ListOption::split_at(char delimiter) const {
  return Option(option_->delimiter(delimiter));
}
Option ListOption::one_at_a_time() const {
  return Option(option_->type_size(1)->allow_extra_args(false));
}

// ---- commands -----------------------------------------------------------------------------------

Command Command::command(std::string_view name, std::string_view doc) const {
  return Command(app_->add_subcommand(std::string(name), std::string(doc)));
}
Command Command::find(std::string_view name) const {
  return Command(app_->get_subcommand(std::string(name)));
}
void Command::require_command() const {
  app_->require_subcommand(1);
}
void Command::examples(std::string_view text) const {
  app_->footer(std::string(text));
}
bool Command::called() const {
  return app_->parsed();
}

Option Command::flag(std::string_view names, bool& to, std::string_view doc) const {
  return Option(app_->add_flag(std::string(names), to, std::string(doc)));
}
Option Command::option(std::string_view names, std::string& to, std::string_view doc) const {
  return Option(add(app_, names, to, doc));
}
IntOption Command::option(std::string_view names, int& to, std::string_view doc) const {
  return IntOption(add(app_, names, to, doc));
}
IntOption Command::option(std::string_view names, int64_t& to, std::string_view doc) const {
  return IntOption(add(app_, names, to, doc));
}
UintOption Command::option(std::string_view names, uint64_t& to, std::string_view doc) const {
  return UintOption(add(app_, names, to, doc));
}
RealOption Command::option(std::string_view names, float& to, std::string_view doc) const {
  return RealOption(add(app_, names, to, doc));
}
RealOption Command::option(std::string_view names, double& to, std::string_view doc) const {
  return RealOption(add(app_, names, to, doc));
}
ListOption Command::option(std::string_view names, std::vector<std::string>& to,
                           std::string_view doc) const {
  return ListOption(add(app_, names, to, doc));
}
ListOption Command::option(std::string_view names, std::vector<int64_t>& to,
                           std::string_view doc) const {
  return ListOption(add(app_, names, to, doc));
}

// ---- the line -----------------------------------------------------------------------------------

CommandLine::CommandLine(std::string_view name, std::string_view version, std::string_view doc,
                         std::string_view notes)
    : app_(std::make_unique<CLI::App>(std::string(doc), std::string(name))) {
  app_->set_version_flag("--version", fmt::format("{} {}", name, version));
  app_->footer(std::string(notes));
  app_->formatter(std::make_shared<HelpFormatter>());
}

CommandLine::~CommandLine() = default;

std::string CommandLine::help() const {
  return app_->help();
}

std::optional<int> CommandLine::parse(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app_->exit(success);  // --help, --version
  } catch (const CLI::ParseError& error) {
    const std::string name = full_name(*innermost(*app_));
    return fail(kUsage, fmt::format("{}; see {} --help", error.what(), name));
  }
  return std::nullopt;
}

}  // namespace loom::cli
