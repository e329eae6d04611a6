// A language model whose matrices are quantized while they are read: any writer then copies the
// codes. Types come from a choice per parameter. Codes come from weighted squared errors, if there
// is an importance matrix or a text, and from GPTQ, if there is a text.
#pragma once

#include <functional>
#include <memory>

#include "convert/quantize/importance.hpp"
#include "convert/quantize/text_moments.hpp"
#include "llm/model_source.hpp"

namespace loom::core {

struct QuantizePlan {
  std::function<DType(const Param& param, DType stored)> dtype;  // of every matrix
  TextMoments* text = nullptr;
  const Importance* importance = nullptr;
  bool feedback = true;   // with `text`: GPTQ; false: only its weights of squared errors
  double damping = 0.01;  // share of the mean diagonal that is added to the moments
  ThreadPool* pool = nullptr;
};

// `source` and what the plan points to must outlive the result.
std::unique_ptr<ModelSource> quantized_source(const ModelSource& source, QuantizePlan plan);

// The codes of one matrix [rows][cols].
Result<std::vector<std::byte>> quantize_matrix(const SourceWeight& weight, const Param& param,
                                               DType dtype, const QuantizePlan& plan);

}  // namespace loom::core
