#include "cli/verbs.hpp"
namespace loom::cli {
Verb add_doctor(CLI::App& app) {
  return {app.add_subcommand("doctor"), [] { return 0; }};
}
}  // namespace loom::cli
