// What Model::embed() and Model::rerank() take and give: texts as vectors that can be compared, and
// documents ordered by how well they answer a query.
//
//   auto model = loom::Model::load(*engine, "all-MiniLM-L6-v2");
//   auto found = model->embed({"a cat", "a dog"});         // vectors of length 1
//   float alike = loom::cosine(found->at(0).values, found->at(1).values);
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "loom/export.hpp"
#include "loom/result.hpp"

namespace loom {

// How the states [T, width] of the T tokens of a text become one vector: their mean, the first one
// (of an encoder the one of its CLS token), the last one, the largest of each value, the mean
// weighted by place (1, 2, ...), their sum over sqrt(T). none: one vector per token.
enum class TextPooling : uint8_t { mean, cls, last, max, weighted_mean, mean_sqrt_len, none };

struct EmbedOptions {
  // Unset: what the model's sentence-transformers files say, or else the mean.
  std::optional<TextPooling> pooling{};
  // Vectors of length 1. Unset: what those files say, or else yes.
  std::optional<bool> normalize{};
  // A prompt of the model by its name ("query"), which stands before each text; "": the default
  // one of the model, if it has one. Model::info().prompts lists them.
  std::string prompt_name{};
  // A prompt as text; it comes in the place of those of the model.
  std::optional<std::string> prompt{};
  // Tokens of a text at most, special ones included; 0: what the model takes.
  int64_t max_tokens = 0;
  // Longer texts lose their end; false: they are an Error.
  bool truncate = true;
  // The first so many values of each vector, normalized again where vectors are; 0: all. For
  // models that were trained for it (Matryoshka representations).
  int64_t dimensions = 0;
  // Called after each text with texts done and in all, and with 0 texts done while long texts are
  // tokenized; false stops with Code::cancelled.
  std::function<bool(int64_t done, int64_t total)> progress{};
};

struct TextEmbedding {
  std::vector<float> values;  // [rows, width]
  int64_t rows = 1;           // of TextPooling::none: tokens
  int64_t tokens = 0;         // of the text, special ones included
  bool truncated = false;
};

// The cosine of the angle between two vectors of equal length; 0 where one of them is 0. Sums are
// made in double precision, in order.
LOOM_API float cosine(std::span<const float> a, std::span<const float> b);

struct RerankOptions {
  int64_t max_tokens = 0;  // of query and document together; 0: what the model takes
  bool truncate = true;    // longer ones lose the end of the longer text; false: an Error
  std::function<bool(int64_t done, int64_t total)> progress{};  // as EmbedOptions::progress
};

struct Ranked {
  int64_t index = 0;   // of the document
  float logit = 0;     // what the model's head says
  float score = 0;     // 1 / (1 + exp(-logit)), from 0 to 1
  int64_t tokens = 0;  // of query and document, special ones included
};

}  // namespace loom
