// Which verbs a program has. verb_list.cpp has all; verb_list_starter.cpp has those of the starter
// program, which is linked without the rest of Loom (cmake/starter.cmake).
#pragma once

#include <string_view>
#include <vector>

#include "shared/verbs.hpp"

namespace loom::cli {

// Declares each verb, in the order of the help.
std::vector<Verb> add_verbs(const Command& app);

// How to get the other verbs, for the help and for the error about an unknown verb. Empty if there
// are none.
std::string_view absent_verbs();

}  // namespace loom::cli
