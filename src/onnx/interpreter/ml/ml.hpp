// Code that operators of the domain ai.onnx.ml share: rows of features, numeric attributes, and
// transforms of scores. Everything is computed in double precision and rounded once, to the float
// that the standard gives. Text is not a type of this room: labels that are text are refused, and
// maps come out as the tensor of their values, a column for each key.
#pragma once

#include "onnx/interpreter/families.hpp"

namespace loom::core::evaluate {

// Input 0 as `count` rows of `width` numbers; one axis is one row.
struct FeatureRows {
  Value values;  // f64
  int64_t count = 0, width = 0;
  const double* row(int64_t i) const { return values.data<double>() + i * width; }
};
Result<FeatureRows> feature_rows(const Call& c);

// Numbers of an attribute, or of the tensor NAME_as_tensor; empty: there are none.
Result<std::vector<double>> ml_numbers(const Call& c, std::string_view name);

// The attribute post_transform. PROBIT is refused: runtimes disagree on its value.
enum class PostTransform : uint8_t { none, softmax, logistic, softmax_zero };
Result<PostTransform> post_transform(const Call& c);
void transform_scores(PostTransform how, double* scores, int64_t n);

// The labels of classes; none: 0, 1, ... Errors: they are text, or not `classes` many.
Result<Dims> class_labels(const Call& c, std::string_view integers, std::string_view strings);

size_t best_score(const std::vector<double>& scores);  // the first of the largest

// Two scores of one, as ONNX Runtime writes them. They are the logistic function of -s and s if
// `post` is that. Else they are [1 - s, s] if `how`, its number of the case, is 0 or 1, and [-s, s]
// if not.
void second_score(std::vector<double>& scores, int how, PostTransform post);

}  // namespace loom::core::evaluate
