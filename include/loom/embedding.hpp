// Options and results of Model::embed() and Model::rerank(). embed() turns texts into comparable
// vectors; rerank() orders documents by how well they answer a query.
//
//   auto model = loom::Model::load(*engine, "all-MiniLM-L6-v2");
//   auto found = model->embed({"a cat", "a dog"});         // vectors of length 1
//   float alike = loom::cosine(found->at(0).values, found->at(1).values);
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "loom/export.hpp"
#include "loom/result.hpp"
#include "loom/text_options.hpp"

namespace loom {

struct TextEmbedding {
  std::vector<float> values;  // [rows, width]
  int64_t rows = 1;           // tokens for TextPooling::none
  int64_t tokens = 0;         // of the text, special ones included
  bool truncated = false;
};

// The cosine of the angle between two vectors of equal length; 0 if one of them is zero. Sums are
// in double precision, in order.
LOOM_API float cosine(std::span<const float> a, std::span<const float> b);

struct Ranked {
  int64_t index = 0;   // of the document
  float logit = 0;     // output of the model's head
  float score = 0;     // 1 / (1 + exp(-logit)), from 0 to 1
  int64_t tokens = 0;  // of query and document, special ones included
};

}  // namespace loom
