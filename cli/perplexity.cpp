#include "cli/verbs.hpp"
namespace loom::cli {
Verb add_perplexity(CLI::App& app) {
  return {app.add_subcommand("perplexity"), [] { return 0; }};
}
}  // namespace loom::cli
