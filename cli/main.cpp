// loom: the program. Declares the verbs, parses the command line, runs one verb.
// Exceptions of CLI11 end here; the library throws none.
#include <fmt/core.h>

#include <exception>

#include "verbs.hpp"

namespace loom::cli {
namespace {

constexpr const char* kExitCodes =
    "Exit codes: 0 done, 1 failed, 2 wrong command line, 3 bad input file, 4 not supported here,\n"
    "5 a verification did not match, 130 interrupted.\n"
    "Data goes to stdout, notes and errors to stderr. `loom VERB --help` lists a verb's options.";

// The help of a verb opens with its examples, which are kept as its footer.
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

// The verb that was called, the innermost one: "bench llm".
const CLI::App* called(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? &app : called(*parsed.front());
}

int usage_error(const CLI::App& app, const CLI::ParseError& error) {
  std::string name = "loom";
  for (const CLI::App* at = called(app); at->get_parent() != nullptr; at = at->get_parent())
    name = "loom " + at->get_name() + name.substr(4);
  return fail(kUsage, fmt::format("{}; see {} --help", error.what(), name));
}

int run(int argc, char** argv) {
  CLI::App app("Loom trains networks and runs language models: the same bits on every processor.",
               "loom");
  app.set_version_flag("--version", "loom " + std::string(kVersion));
  app.footer(kExitCodes);
  app.formatter(std::make_shared<HelpFormatter>());
  app.require_subcommand(1);
  const Verb verbs[] = {add_run(app),          add_new(app),    add_train(app),    add_eval(app),
                        add_perplexity(app),   add_info(app),   add_tokenize(app), add_bench(app),
                        add_bench_layers(app), add_verify(app), add_doctor(app)};
  if (argc == 1) {
    write_out(app.help());
    return kUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return app.exit(success);  // --help, --version
  } catch (const CLI::ParseError& error) {
    return usage_error(app, error);
  }
  catch_interrupts();
  for (const Verb& verb : verbs) {
    if (verb.app->parsed()) return verb.run();
  }
  return kUsage;
}

}  // namespace
}  // namespace loom::cli

int main(int argc, char** argv) {
  using namespace loom::cli;
  int code = kFailed;
  try {
    code = run(argc, argv);
    if (!flush_out() && code == kDone) code = fail(kFailed, "stdout could not be written");
  } catch (const std::bad_alloc&) {
    code = fail(kFailed, "out of memory");
  } catch (const std::exception& error) {
    code = fail(kFailed, error.what());
  }
  return code;
}
