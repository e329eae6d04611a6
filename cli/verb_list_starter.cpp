// In place of verb_list.cpp: the verbs of the starter program.
#include "verb_list.hpp"

namespace loom::cli {

std::vector<Verb> add_verbs(const Command& app) {
  return {add_run(app),  add_list(app),     add_show(app),      add_rm(app),
          add_info(app), add_tokenize(app), add_completion(app)};
}

std::string_view absent_verbs() {
  return "This program has few commands. For all, run: cmake --build --preset release";
}

}  // namespace loom::cli
