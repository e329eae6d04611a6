// The only file that includes CLI11. parse() handles CLI11's exceptions about a wrong line. The
// errors are worded here, because those of CLI11 name its types instead of a solution.
#include "flags.hpp"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <optional>
#include <type_traits>

#include "../help/aliases.hpp"
#include "../help/guess.hpp"
#include "../hub/resolve.hpp"
#include "../models/modelfile.hpp"
#include "console.hpp"
#include "terminal.hpp"

namespace loom::cli {
namespace {

// ---- numbers ------------------------------------------------------------------------------------

// A hint for "128x64".
std::string commas_for(std::string list) {
  if (list.find_first_not_of("0123456789xX*; ") != std::string::npos) return {};
  if (list.empty() || list.front() < '0' || list.front() > '9') return {};
  for (char& c : list)
    if (c < '0' || c > '9') c = ',';
  return "; a list has commas: " + list;
}

// The fault of a text that must be a number; empty if it is one.
template <typename T>
std::string number_error(const std::string& text, T& value) {
  if (!CLI::detail::lexical_cast(text, value)) {
    double real = 0;
    const bool number = CLI::detail::lexical_cast(text, real) && real == std::floor(real);
    if (std::is_unsigned_v<T> && number && real < 0)
      return fmt::format("must be 0 or more, not {}", printable(text));
    if (std::is_integral_v<T> && number) return fmt::format("{} is too large", printable(text));
    return fmt::format("must be {}, not '{}'", std::is_integral_v<T> ? "an integer" : "a number",
                       printable(text));
  }
  if (std::is_unsigned_v<T> && text.starts_with('-'))  // the cast wraps around
    return fmt::format("must be 0 or more, not {}", printable(text));
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(value)) return fmt::format("must be a finite number, not {}", text);
  }
  return {};
}

template <typename T>
CLI::Validator number(bool list) {
  return {[list](std::string& text) {
            T value{};
            std::string error = number_error(text, value);
            if (list && !error.empty()) error += commas_for(text);
            return error;
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

// ---- texts --------------------------------------------------------------------------------------

std::vector<std::string> names_of(const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options)
    names.push_back(option->get_name(option->get_positional()));
  std::sort(names.begin(), names.end());
  return names;
}

OptionText text_of(const CLI::Option& option) {
  OptionText text;
  text.positional = option.get_positional();
  if (text.positional) text.names.push_back(option.get_name(true));
  for (const std::string& name : option.get_snames()) text.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) text.names.push_back("--" + name);
  // CLI11 has the type and the range in one: "INT:1 to 64".
  const std::string type = option.get_type_name();
  const size_t colon = type.find(':');
  text.value = type.substr(0, colon);
  if (colon != std::string::npos) text.range = type.substr(colon + 1);
  text.doc = option.get_description();
  text.standard = option.get_default_str();
  text.group = option.get_group() == "Options" ? "" : option.get_group();
  text.excludes = names_of(option.get_excludes());
  text.needs = names_of(option.get_needs());
  text.required = option.get_required();
  text.repeats = option.get_expected_max() > 1;
  return text;
}

CommandText text_of(const CLI::App& app) {
  CommandText text;
  text.name = app.get_name();
  text.path = full_name(app);
  text.doc = app.get_description();
  text.group = app.get_group() == "Subcommands" ? "" : app.get_group();
  (app.get_parent() == nullptr ? text.notes : text.examples) = app.get_footer();
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty()) text.options.push_back(text_of(*option));
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    text.commands.push_back(text_of(*command));
  return text;
}

class HelpFormatter : public CLI::FormatterBase {
 public:
  std::string make_help(const CLI::App* app, std::string /*name*/,
                        CLI::AppFormatMode /*mode*/) const override {
    return help_text(text_of(*app), terminal_width());
  }
};

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
      const std::string hint = app == &root ? command_hint(word) : std::string();
      std::vector<std::string> known = names;
      if (app == &root) known.emplace_back("ls");  // of command_alias()
      return with_help(
          fmt::format("there is no command '{}'{}", printable(full_name(*app) + " " + word),
                      hint.empty() ? did_you_mean(word, known) : hint),
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
    const std::string hint = option_hint(app.get_name(), name);
    return fmt::format("there is no option {}{}", printable(name),
                       hint.empty() ? did_you_mean(name, option_names(app)) : hint);
  }
  if (extras.empty()) return {};
  return fmt::format("'{}' is one argument too many{}", printable(extras.front()),
                     argument_hint(app.get_name()));
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
  if (required || is<CLI::ExtrasError>(error) || is<CLI::ExcludesError>(error)) {
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
struct ModelOption {
  CLI::Option* option;
  bool or_modelfile;
};
// The options of names_model(), in the order of their declaration.
std::vector<ModelOption>& model_options() {
  static std::vector<ModelOption> all;
  return all;
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
Option Option::names_model(bool or_modelfile) const {
  model_options().push_back({option_, or_modelfile});
  return *this;
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
CommandText Command::text() const {
  return text_of(*app_);
}
Command Command::find(std::string_view name) const {
  return Command(app_->get_subcommand(std::string(name)));
}
Command Command::group(std::string_view title) const {
  Command same = *this;
  same.group_ = title;
  return same;
}
Command Command::default_group(std::string_view title) const {
  return group_.empty() ? group(title) : *this;
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

Status Command::set_default(std::string_view option, const std::vector<std::string>& values) const {
  CLI::Option* const to = app_->get_option(std::string(option));
  if (to->count() > 0) return {};
  try {
    for (const std::string& value : values) to->add_result(value);
    to->run_callback();
  } catch (const CLI::ParseError& error) {
    return Error{Code::invalid_argument, error.what(), {}, -1};
  }
  return {};
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
    option->check(number<Element>(!std::is_same_v<T, Element>));
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
    : app_(std::make_unique<CLI::App>(std::string(doc), std::string(name))),
      absent_(absent),
      version_(fmt::format("{} {}", name, version)) {
  app_->set_help_flag("-h,--help", "Show this help");
  app_->set_version_flag("--version", version_, "Show the version");
  app_->footer(std::string(notes));
  app_->formatter(std::make_shared<HelpFormatter>());
}

CommandLine::~CommandLine() = default;

std::string CommandLine::help() const {
  return app_->help();
}

namespace {

// Replaces names that other programs have, and underscores, in the options of the called command.
void replace_aliases(const CLI::App& root, std::vector<std::string>& words) {
  const CLI::App* app = &root;
  size_t first = 0;
  while (first < words.size()) {
    const std::vector<std::string> names = command_names(*app);
    if (std::find(names.begin(), names.end(), words[first]) == names.end()) break;
    app = app->get_subcommand(words[first++]);
  }
  std::vector<std::string> known = option_names(*app);
  for (const CLI::Option* option : app->get_options()) {
    for (const std::string& name : option->get_snames()) known.push_back("-" + name);
    if (option->get_positional()) known.push_back(option->get_name(true));
  }
  replace_options(words, first, known);
}

// `loom help --man [COMMAND...]`.
int print_man_page(const CLI::App& root, const std::vector<std::string>& words,
                   const std::string& version) {
  const CLI::App* app = &root;
  for (const std::string& word : words) {
    const std::vector<std::string> names = command_names(*app);
    if (std::find(names.begin(), names.end(), word) == names.end())
      return fail(kUsage, fmt::format("{} has no command '{}'", full_name(*app), printable(word)));
    app = app->get_subcommand(word);
  }
  write_out(man_page(text_of(*app), version));
  return kDone;
}

}  // namespace

std::optional<int> CommandLine::parse(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  // `loom help [COMMAND...]` and `loom version`, as other programs have them.
  const bool manual = words.size() > 1 && words[0] == "help" && words[1] == "--man";
  if (manual) {
    words.erase(words.begin(), words.begin() + 2);
  } else if (!words.empty() && words.front() == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  } else if (words.size() == 1 && words.front() == "version") {
    words = {"--version"};
  }
  if (!words.empty()) words.front() = command_alias(words.front());
  std::vector<std::string> checked = words;
  if (manual) checked.emplace_back("--man");
  const std::string wrong = command_error(*app_, checked);
  if (!wrong.empty()) return fail(kUsage, absent_.empty() ? wrong : wrong + ". " + absent_);
  if (manual) return print_man_page(*app_, words, version_);
  replace_aliases(*app_, words);
  try {
    app_->parse(std::vector<std::string>(words.rbegin(), words.rend()));  // last one first
  } catch (const CLI::Success& success) {
    return app_->exit(success);  // --help, --version
  } catch (const CLI::ParseError& error) {
    const CLI::App& app = *innermost(*app_);
    return fail(kUsage, with_help(line_error(*app_, app, error), app));
  }
  return std::nullopt;
}

std::optional<int> CommandLine::resolve_models() {
  const CLI::App& app = *innermost(*app_);
  const auto has_flag = [&](const char* name) {
    const CLI::Option* flag = app.get_option_no_throw(name);
    return flag != nullptr && flag->count() > 0;
  };
  const bool quiet = has_flag("--quiet") || has_flag("--json");
  for (const auto& [option, or_modelfile] : model_options()) {
    const std::vector<std::string> words = option->results();
    if (words.empty()) continue;
    option->clear();
    for (const std::string& word : words) {
      const Result<std::string> path = resolve_model_path(word, quiet);
      if (!path.ok()) return fail(path.error());
      if (!or_modelfile && is_modelfile(*path))
        return fail(kUsage, printable(*path) +
                                " is a Modelfile, which loom run, serve and info "
                                "read; name the model of its FROM here");
      option->add_result(*path);
    }
    option->run_callback();
  }
  return std::nullopt;
}

}  // namespace loom::cli
