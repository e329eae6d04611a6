// What tests/outside/onnx_standard.py drives: ONNX files run as they stand, one per line of stdin, an
// answer per line of stdout, so that a file that ends the process is known by its line.
//   MODEL.onnx INPUTS.onnx OUTPUTS.onnx
//   -> ok | refused MESSAGE (by name, before anything runs or by an operator) | failed MESSAGE
// Inputs and outputs are models without nodes: their initializers are the values, "0", "1" ..., those
// of a list "0/0", "0/1" ...; the metadata "kinds" has a letter each: t tensor, s list, n none. Types
// below 8 bits come out as int8 and uint8.
#include <iostream>
#include <sstream>
#include <string>

#include "backend/cpu/cpu.hpp"
#include "base/text.hpp"
#include "evaluate/evaluator.hpp"
#include "io/file.hpp"

namespace loom::core::evaluate {
namespace {

Result<std::vector<Slot>> read_values(const std::string& path, Memory& memory) {
  LOOM_ASSIGN(const MappedFile file, MappedFile::open(path));
  LOOM_ASSIGN(const OnnxModel model, parse_onnx(file.bytes(), path, OnnxReading::everything));
  std::string kinds;
  for (const auto& [key, value] : model.metadata) {
    if (key == "kinds") kinds = value;
  }
  std::vector<Slot> out;
  for (size_t i = 0; i < kinds.size(); ++i) {
    Slot slot;
    std::vector<Slot> list;
    if (kinds[i] == 'n') slot.kind = Slot::Kind::none;
    const std::string name = cat(i);
    for (const OnnxTensor& t : model.graph.initializers) {
      if (t.name != name && t.name.rfind(name + "/", 0) != 0) continue;
      LOOM_ASSIGN(Value v, value_of(memory, t));
      if (kinds[i] == 's') list.push_back(Slot::of(std::move(v)));
      else slot = Slot::of(std::move(v));
    }
    out.push_back(kinds[i] == 's' ? Slot::of(std::move(list)) : slot);
  }
  return out;
}

void append(OnnxModel& model, const Value& v, std::string name) {
  OnnxTensor t;
  t.name = std::move(name);
  t.type = v.type;
  if (onnx_type_bits(v.type) < 8)
    t.type = is_signed(v.type) ? OnnxType::i8 : OnnxType::u8;
  t.shape = v.dims;
  const auto* bytes = v.data<std::byte>();
  t.own.assign(bytes, bytes + v.bytes());
  model.graph.initializers.push_back(std::move(t));
}

Status write_values(const std::string& path, const std::vector<Slot>& values) {
  OnnxModel model;
  model.ir_version = 8;
  model.opsets = {{"", 20}};
  std::string kinds;
  for (size_t i = 0; i < values.size(); ++i) {
    const Slot& s = values[i];
    if (s.kind == Slot::Kind::tensor) append(model, s.tensor, cat(i));
    for (size_t k = 0; s.kind == Slot::Kind::sequence && k < s.items->size(); ++k)
      append(model, (*s.items)[k].tensor, cat(i, "/", k));
    kinds += s.kind == Slot::Kind::tensor ? 't' : s.kind == Slot::Kind::sequence ? 's' : 'n';
  }
  model.metadata = {{"kinds", kinds}};
  LOOM_ASSIGN(const std::string bytes, onnx_bytes(model));
  return write_file_atomic(path, std::as_bytes(std::span(bytes)));
}

Status run(const std::string& model, const std::string& inputs, const std::string& outputs,
           ThreadPool& pool) {
  LOOM_ASSIGN(Evaluator evaluator, Evaluator::load(model, cpu_ops(best_isa()), pool));
  LOOM_ASSIGN(std::vector<Slot> values, read_values(inputs, evaluator.memory()));
  LOOM_ASSIGN(const std::vector<Slot> made, evaluator.run(std::move(values)));
  return write_values(outputs, made);
}

}  // namespace
}  // namespace loom::core::evaluate

int main() {
  loom::core::ThreadPool pool(2);
  std::string line;
  while (std::getline(std::cin, line)) {
    std::string model, inputs, outputs;
    std::istringstream(line) >> model >> inputs >> outputs;
    const loom::Status done = loom::core::evaluate::run(model, inputs, outputs, pool);
    if (done.ok()) std::cout << "ok" << std::endl;
    else
      std::cout << (done.error().code == loom::Code::unsupported ? "refused " : "failed ")
                << done.error().str() << std::endl;
  }
}
