// Cosine and sine tables of the rotary embedding (Su et al., 2021), half-split form: angle(p, j) =
// p * theta^(-2j/width), with the frequency changes of "linear" and "llama3" scaling. Frequencies
// and angles are rounded to f32 like the reference implementation of the models, so trained models
// get the angles of their training. Slopes of ALiBi are next to them. For RopeSpec::numbers the
// table holds position numbers instead: ids for a table of learned positions.
#pragma once

#include "layers/core/layer.hpp"
#include "tensor/tensor.hpp"

namespace loom::core {

class RopeTable {
 public:
  static Result<RopeTable> make(const RopeSpec& spec, int64_t positions);
  const RopeSpec& spec() const { return spec_; }
  const PositionTable& table() const { return table_; }  // numbers: limited by the spec
  const Buffer& memory() const { return memory_; }
  int64_t bytes() const { return memory_.size(); }

 private:
  Status count(int64_t positions);

  RopeSpec spec_;
  Buffer memory_;
  PositionTable table_;
};

}  // namespace loom::core
