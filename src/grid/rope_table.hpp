// Cosine and sine tables of the rotary embedding (Su et al., 2021), half-split form: angle(p, j) =
// p * theta^(-2j/width), with the frequency changes of "linear" and "llama3" scaling. Frequencies
// and angles are rounded to f32 as the reference implementation of the models does, so trained
// models see the angles they were trained with.
#pragma once

#include "layers/layer.hpp"
#include "tensor/tensor.hpp"

namespace loom::core {

class RopeTable {
 public:
  static Result<RopeTable> make(const RopeSpec& spec, int64_t positions);
  const RopeSpec& spec() const { return spec_; }
  const Tensor& cos() const { return cos_; }  // [positions, width/2]
  const Tensor& sin() const { return sin_; }
  int64_t bytes() const { return memory_.size(); }

 private:
  RopeSpec spec_;
  Buffer memory_;
  Tensor cos_, sin_;
};

}  // namespace loom::core
