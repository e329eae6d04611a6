// The only file that includes CLI11. parse() handles CLI11's exceptions about a wrong line. The
// help texts are those of CLI11. The errors are worded here, because those of CLI11 name its types
// instead of a solution.
#include "flags.hpp"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <optional>
#include <type_traits>

#include "../hub/resolve.hpp"
#include "console.hpp"
#include "guess.hpp"

namespace loom::cli {
namespace {

// The help of a command starts with its examples, which are stored as its footer.
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

// ---- numbers ------------------------------------------------------------------------------------

// The fault of a text that must be a number; empty if it is one.
template <typename T>
std::string number_error(const std::string& text, T& value) {
  if (!CLI::detail::lexical_cast(text, value)) {
    double real = 0;
    const bool number = CLI::detail::lexical_cast(text, real) && real == std::floor(real);
    if (std::is_integral_v<T> && number) return fmt::format("{} is too large", printable(text));
    return fmt::format("must be {}, not '{}'", std::is_integral_v<T> ? "an integer" : "a number",
                       printable(text));
  }
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(value)) return fmt::format("must be a finite number, not {}", text);
  }
  return {};
}

template <typename T>
CLI::Validator number() {
  return {[](std::string& text) {
            T value{};
            return number_error(text, value);
          },
          std::string()};
}

// "1 to 64"; a high bound that only prevents overflow is not shown.
template <typename T>
std::string range_text(T low, T high) {
  constexpr double kNoBound = 1e12;
  if (static_cast<double>(high) >= kNoBound) return fmt::format("{} or more", low);
  return fmt::format("{} to {}", low, high);
}

// Both bounds are inclusive.
template <typename T>
CLI::Validator between(T low, T high) {
  const std::string range = range_text(low, high);
  return {[low, high, range](std::string& text) -> std::string {
            T value{};
            const std::string error = number_error(text, value);
            if (!error.empty() || (value >= low && value <= high)) return error;
            if (value > high && range.ends_with("more")) return printable(text) + " is too large";
            const char* from = range.ends_with("more") ? "" : "from ";
            return fmt::format("must be {}{}, not {}", from, range, printable(text));
          },
          range};
}

template <typename T>
struct element {
  using type = T;
};
template <typename T>
struct element<std::vector<T>> {
  using type = T;
};

// ---- names --------------------------------------------------------------------------------------

// The called command, the innermost one.
const CLI::App* innermost(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? &app : innermost(*parsed.front());
}

// With the names above it: "loom bench llm".
std::string full_name(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : full_name(*parent) + " " + app.get_name();
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// ---- errors of a line ---------------------------------------------------------------------------

std::string with_help(const std::string& what, const CLI::App& app) {
  return fmt::format("{}; see {} --help", what, full_name(app));
}

// The error of an unknown or missing command; empty if there is none.
std::string command_error(const CLI::App& root, const std::vector<std::string>& words) {
  const CLI::App* app = &root;
  for (const std::string& word : words) {
    const std::vector<std::string> names = command_names(*app);
    if (names.empty() || word.starts_with("-")) return {};
    if (std::find(names.begin(), names.end(), word) == names.end()) {
      return with_help(
          fmt::format("there is no command '{}'{}", printable(full_name(*app) + " " + word),
                      did_you_mean(word, names)),
          *app);
    }
    app = app->get_subcommand(word);
  }
  const std::vector<std::string> names = command_names(*app);
  if (names.empty()) return {};
  return with_help(
      fmt::format("{}: a command has to follow, one of {}", full_name(*app), list_of(names)), *app);
}

// The words of the line that no option or argument took. Options come before arguments, because an
// unknown option leaves its value over. Empty if there are none.
std::string extra_error(const CLI::App& root, const CLI::App& app) {
  const std::vector<std::string> extras = root.remaining(true);
  for (const std::string& word : extras) {
    if (!word.starts_with("-") || word == "--") continue;
    const std::string name = word.substr(0, word.find('='));
    return fmt::format("there is no option {}{}", printable(name),
                       did_you_mean(name, option_names(app)));
  }
  if (extras.empty()) return {};
  return fmt::format("'{}' is one argument too many", printable(extras.front()));
}

template <class Kind>
bool is(const CLI::ParseError& error) {
  return dynamic_cast<const Kind*>(&error) != nullptr;
}

// The first missing required argument or option; may be empty.
std::string required_error(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_required() && option->count() == 0)
      return option->get_name(option->get_positional()) + " is required";
  }
  return {};
}

std::string line_error(const CLI::App& root, const CLI::App& app, const CLI::ParseError& error) {
  const std::string says = error.what();
  const std::string name = says.substr(0, says.find(':'));
  const bool required = is<CLI::RequiredError>(error);
  if (required || is<CLI::ExtrasError>(error)) {
    const std::string extra = extra_error(root, app);
    if (!extra.empty()) return extra;
  }
  if (required) return required_error(app);
  if (is<CLI::ExcludesError>(error)) return says + ": give one of them";
  if (is<CLI::RequiresError>(error)) return says + "; give both";
  if (is<CLI::ArgumentMismatch>(error)) {
    return name + (says.ends_with("missing") ? ": a value has to follow" : ": is given twice");
  }
  // Numbers are checked before conversion, so only flags remain: --json=maybe.
  if (is<CLI::ConversionError>(error)) {
    const size_t begin = says.find("--");
    return says.substr(begin, says.find(' ', begin) - begin) + ": takes no value";
  }
  return says;
}

}  // namespace

namespace {
// The first error of resolve_model_path() during parsing. It is reported only if the rest of the
// line is right, because a wrong option is easier to see.
std::optional<Error>& no_such_model() {
  static std::optional<Error> first;
  return first;
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
Option Option::names_model() const {
  return Option(option_->transform([](const std::string& text) {
    Result<std::string> path = resolve_model_path(text);
    if (path.ok()) return *path;
    if (!no_such_model()) no_such_model() = path.error();
    return text;
  }));
}
Option Option::group(std::string_view title) const {
  return Option(option_->group(std::string(title)));
}
Option Option::takes(std::string_view what) const {
  return Option(option_->type_name(std::string(what)));
}
Option Option::hidden() const {
  return Option(option_->group({}));
}
bool Option::given() const {
  return option_ != nullptr && option_->count() > 0;
}

Option IntOption::range(int64_t low, int64_t high) const {
  return Option(option_->check(between(low, high)));
}
Option UintOption::range(uint64_t low, uint64_t high) const {
  return Option(option_->check(between(low, high)));
}
Option RealOption::range(double low, double high) const {
  return Option(option_->check(between(low, high)));
}

Option ListOption::split_at(char delimiter) const {
  return Option(option_->delimiter(delimiter));
}
Option ListOption::one_at_a_time() const {
  return Option(option_->type_size(1)->allow_extra_args(false));
}

// ---- commands -----------------------------------------------------------------------------------

Command Command::command(std::string_view name, std::string_view doc) const {
  CLI::App* added = app_->add_subcommand(std::string(name), std::string(doc));
  if (!group_.empty()) added->group(group_);
  return Command(added);
}
Command Command::find(std::string_view name) const {
  return Command(app_->get_subcommand(std::string(name)));
}
Command Command::group(std::string_view title) const {
  Command same = *this;
  same.group_ = title;
  return same;
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
bool Command::given(std::string_view option) const {
  return app_->count(std::string(option)) > 0;
}

template <class T>
CLI::Option* Command::add(std::string_view names, T& to, std::string_view doc) const {
  using Element = typename element<T>::type;
  CLI::Option* option = nullptr;
  if constexpr (std::is_same_v<T, bool>)
    option = app_->add_flag(std::string(names), to, std::string(doc));
  else
    option = app_->add_option(std::string(names), to, std::string(doc));
  if constexpr (std::is_arithmetic_v<Element> && !std::is_same_v<T, bool>)
    option->check(number<Element>());
  return group_.empty() ? option : option->group(group_);
}

Option Command::flag(std::string_view names, bool& to, std::string_view doc) const {
  return Option(add(names, to, doc));
}
Option Command::option(std::string_view names, std::string& to, std::string_view doc) const {
  return Option(add(names, to, doc));
}
IntOption Command::option(std::string_view names, int& to, std::string_view doc) const {
  return IntOption(add(names, to, doc));
}
IntOption Command::option(std::string_view names, int64_t& to, std::string_view doc) const {
  return IntOption(add(names, to, doc));
}
UintOption Command::option(std::string_view names, uint64_t& to, std::string_view doc) const {
  return UintOption(add(names, to, doc));
}
RealOption Command::option(std::string_view names, float& to, std::string_view doc) const {
  return RealOption(add(names, to, doc));
}
RealOption Command::option(std::string_view names, double& to, std::string_view doc) const {
  return RealOption(add(names, to, doc));
}
ListOption Command::option(std::string_view names, std::vector<std::string>& to,
                           std::string_view doc) const {
  return ListOption(add(names, to, doc));
}
ListOption Command::option(std::string_view names, std::vector<int64_t>& to,
                           std::string_view doc) const {
  return ListOption(add(names, to, doc));
}

// ---- the line -----------------------------------------------------------------------------------

CommandLine::CommandLine(std::string_view name, std::string_view version, std::string_view doc,
                         std::string_view notes, std::string_view absent)
    : app_(std::make_unique<CLI::App>(std::string(doc), std::string(name))), absent_(absent) {
  app_->set_version_flag("--version", fmt::format("{} {}", name, version));
  app_->footer(std::string(notes));
  app_->formatter(std::make_shared<HelpFormatter>());
}

CommandLine::~CommandLine() = default;

std::string CommandLine::help() const {
  return app_->help();
}

std::optional<int> CommandLine::parse(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  // `loom help [COMMAND...]` and `loom version`, as other programs have them.
  if (!words.empty() && words.front() == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  } else if (words.size() == 1 && words.front() == "version") {
    words = {"--version"};
  }
  const std::string wrong = command_error(*app_, words);
  if (!wrong.empty()) return fail(kUsage, absent_.empty() ? wrong : wrong + ". " + absent_);
  try {
    app_->parse(std::vector<std::string>(words.rbegin(), words.rend()));  // last one first
  } catch (const CLI::Success& success) {
    return app_->exit(success);  // --help, --version
  } catch (const CLI::ParseError& error) {
    const CLI::App& app = *innermost(*app_);
    return fail(kUsage, with_help(line_error(*app_, app, error), app));
  }
  if (no_such_model()) return fail(*no_such_model());
  return std::nullopt;
}

}  // namespace loom::cli
