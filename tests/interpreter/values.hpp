// Values of a graph in a file: a model without nodes whose initializers are the values, "0", "1"
// and so on, those of a list "0/0", "0/1". The metadata "kinds" has a letter each: t tensor, s
// list, n none. tests/outside/onnx_standard.py writes and reads the same.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "onnx/interpreter/evaluator.hpp"

namespace loom::core::evaluate {

inline Result<std::vector<Slot>> parse_values(std::span<const std::byte> bytes,
                                              const std::string& where, Memory& memory) {
  LOOM_ASSIGN(const OnnxModel model, parse_onnx(bytes, where, OnnxReading::everything));
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
      if (kinds[i] == 's')
        list.push_back(Slot::of(std::move(v)));
      else
        slot = Slot::of(std::move(v));
    }
    out.push_back(kinds[i] == 's' ? Slot::of(std::move(list)) : slot);
  }
  return out;
}

}  // namespace loom::core::evaluate
