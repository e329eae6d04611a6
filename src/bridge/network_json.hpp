// Network descriptions as JSON:
//   {"loom": 1, "grid": [depth, rows, cols, layers], "input": [shape of one sample],
//    "cells": [{"at": [z, y, x, l], "type": "Dense", "disabled": false, "in": 784, ...,
//               "children": [...], "dtype": "int8", "shared_with": [z, y, x, l],
//               "link": {"from": [z, y, x, l], "feedback": false}}]}.
// "state_dict": {"fc.weight": "(0, 0, 0, 0)/weight"} may accompany "cells". "shared_with": all
// parameters of the cell are those of an earlier one. "layers": [{"type": ...}, ...] in place of
// "grid" and "cells" is a row of layers. "columns" (train_io) is the plan of a table; this reader
// skips it. Fields are those of the layer's table (or their older
// names); omitted fields have their defaults. The writer writes every field, in one order, so that
// equal networks are equal bytes.
#pragma once

#include <string>
#include <string_view>

#include "grid/builders.hpp"
#include "io/json/json.hpp"

namespace loom::core {

// Parses a description and checks it as a whole with Network::finalize. Errors name `where`, the
// byte, and the path: "cells[2].in: ...".
Result<NetworkSpec> parse_network(std::string_view text, const std::string& where);
Result<NetworkSpec> load_network(const std::string& path);
// sections: further members (description_sections()); a null value has none.
std::string write_network(const NetworkSpec& network, const JsonValue& sections = {});

// The same as a value, for descriptions inside other files.
Result<NetworkSpec> read_network(const JsonValue& json, const std::string& where);
// Frees the JSON value before building a second form of the network for the check.
Result<NetworkSpec> read_network(JsonValue&& json, const std::string& where);
JsonValue network_json(const NetworkSpec& network);
// The members of a description that are not the network: "columns", of a network for a table.
JsonValue description_sections(const JsonValue& description);

// NetworkSpec::state_dict as an object of texts, and back. Errors: bad_file.
using StateDictNames = std::vector<std::pair<std::string, std::string>>;
JsonValue state_dict_json(const StateDictNames& names);
Result<StateDictNames> read_state_dict(const JsonValue& json, const std::string& where);

}  // namespace loom::core
