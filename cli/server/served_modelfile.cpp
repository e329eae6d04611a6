#include "served_modelfile.hpp"

#include <cstdlib>

namespace loom::cli {
namespace {

int64_t integer_of(std::string_view text) {
  return std::atoll(std::string(text).c_str());
}

}  // namespace

Result<core::ModelSettings> settings_of(const Modelfile& file, const std::string& defaults) {
  if (!file.value("num_thread").empty())
    return Error{Code::invalid_argument,
                 "PARAMETER num_thread is of the whole server; it is called --threads here",
                 file.path, -1};
  core::ModelSettings out;
  out.modelfile = file.text;
  out.parameters = file.parameter_text();
  out.license = file.license;
  out.system = file.system;
  out.messages = file.messages;
  out.context = integer_of(file.value("num_ctx"));
  out.chunk = integer_of(file.value("num_batch"));
  out.defaults = completion_fields(file);
  if (out.defaults.empty() || defaults.empty()) return out;
  LOOM_ASSIGN(core::JsonValue line, core::parse_json(defaults, "the defaults"));
  LOOM_ASSIGN(const core::JsonValue own, core::parse_json(out.defaults, "the parameters"));
  if (!line.is_object())
    return Error{Code::invalid_argument, "--defaults must be a JSON object", {}, -1};
  for (const auto& [name, value] : own.members())
    if (line.find(name) == nullptr) line.add(name, value);
  out.defaults = core::dump_json(line);
  return out;
}

}  // namespace loom::cli
