#include "cli/verbs.hpp"
namespace loom::cli {
Verb add_info(CLI::App& app) {
  return {app.add_subcommand("info"), [] { return 0; }};
}
}  // namespace loom::cli
