#include "cli/verbs.hpp"
namespace loom::cli {
Verb add_tokenize(CLI::App& app) {
  return {app.add_subcommand("tokenize"), [] { return 0; }};
}
}  // namespace loom::cli
