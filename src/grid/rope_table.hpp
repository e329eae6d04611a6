// Cosine and sine tables of the rotary embedding (Su et al., 2021), half-split form: angle(p, j) =
// p * theta^(-2j/width), with the frequency changes of RopeSpec::scaling. Frequencies
// and angles are rounded to f32 like the reference implementation of the models, so trained models
// get the angles of their training. Slopes of ALiBi are next to them. For RopeSpec::numbers the
// table holds position numbers instead: ids for a table of learned positions.
#pragma once

#include "layers/core/layer.hpp"
#include "tensor/tensor.hpp"

namespace loom::core {

// The numbers of RopeSpec::short_factors or long_factors. Errors: one is not a positive number.
Result<std::vector<double>> rope_factors(std::string_view text);

class RopeTable {
 public:
  // length: of the longest text, which chooses the frequencies of dynamic and longrope scaling; 0
  // means positions.
  static Result<RopeTable> make(const RopeSpec& spec, int64_t positions, int64_t length = 0);
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
