// Modelfiles: a model with its system text, its chat template and its sampling options, in the
// syntax of Ollama. `loom run`, `loom serve` and `loom info` read them. Nothing here opens a model.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "loom/language_model.hpp"

namespace loom::cli {

struct Modelfile {
  struct Parameter {
    std::string name;                 // of Ollama: "num_ctx"
    std::vector<std::string> values;  // several only for "stop"
  };

  std::string path, text;  // of the file
  std::string from;        // a model: a path (relative to the file), or a name
  std::string system, chat_template, license;
  std::vector<Parameter> parameters;  // each name once, in the order of the file
  std::vector<ChatTurn> messages;     // turns of user and assistant, in this order

  // The first value of a parameter; empty if it is absent.
  std::string_view value(std::string_view name) const;
  // "NAME" for NAME.modelfile and Modelfile.NAME; for Modelfile the name of its folder.
  std::string name() const;
  // Lines of "temperature 0.8", as `ollama show --parameters` prints them.
  std::string parameter_text() const;
};

// Whether the file is a Modelfile by its name or its first instruction.
bool is_modelfile(const std::string& path);
// Errors: bad_file, with the line: an unknown instruction or parameter, a value outside its range,
// an instruction or parameter that Loom does not have, no FROM; those of read_text().
Result<Modelfile> read_modelfile(const std::string& path);

// The flags of `loom run` for the parameters, without dashes, each with its values. num_keep has
// none.
std::vector<std::pair<std::string, std::vector<std::string>>> run_flags(const Modelfile& file);
// A JSON object with the fields of /completion for the parameters; empty if it has none.
std::string completion_fields(const Modelfile& file);

}  // namespace loom::cli
