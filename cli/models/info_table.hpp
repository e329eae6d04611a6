// The plan of a table in a model file, for people.
#pragma once

#include <string>

#include "../shared/json_value.hpp"

namespace loom::cli {

// A line for each column: its name, and how the network reads it.
void print_plan(const JsonValue& plan);

}  // namespace loom::cli
