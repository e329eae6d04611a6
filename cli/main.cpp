// loom: the program. Declares the verbs of verb_list.hpp, parses the command line, runs one verb.
// The library throws no exceptions; those of the standard library are caught here.
#include <exception>
#include <new>
#include <optional>

#include <fmt/core.h>

#include "loom/files.hpp"
#include "verb_list.hpp"

namespace loom::cli {
namespace {

constexpr const char* kExitCodes =
    "Exit codes: 0 done, 1 failed, 2 wrong command line, 3 bad input file, 4 not supported here,\n"
    "5 a verification did not match, 130 interrupted (129, 143: ended by SIGHUP, SIGTERM).\n"
    "Data goes to stdout, notes and errors to stderr. `loom help COMMAND` lists its options.";

// Results from a file that another program changed meanwhile are invalid.
int checked(int code) {
  const std::string changed = loom::changed_file();
  if (changed.empty()) return code;
  const int now = code > kMismatch ? code : kBadFile;  // above: a signal
  return fail(static_cast<Exit>(now),
              fmt::format("{} was changed in place while it was read, so the results may be "
                          "wrong; replace files by a rename (mv)",
                          changed));
}

int run(int argc, char** argv) {
  const std::string_view absent = absent_verbs();
  CommandLine line(
      "loom", kVersion,
      "Loom trains networks and runs language models: the same bits on every processor.",
      absent.empty() ? kExitCodes : fmt::format("{}\n{}", kExitCodes, absent), absent);
  const Command app = line.root();
  app.require_command();
  const std::vector<Verb> verbs = add_verbs(app);
  if (argc == 1) {
    write_out(line.help());
    return kUsage;
  }
  remember_line(argc, argv);
  if (const std::optional<int> code = line.parse(argc, argv)) return *code;
  catch_signals();
  loom::guard_files();
  if (const std::optional<int> code = line.resolve_models()) return *code;
  for (const Verb& verb : verbs) {
    if (verb.command.called()) return checked(verb.run());
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
