// Options and results of Model::embed() and Model::rerank(). embed() turns texts into comparable
// vectors; rerank() orders documents by how well they answer a query.
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

// How the states [T, width] of the T tokens of a text become one vector. cls takes the first one
// (CLS of an encoder); max takes the maximum of each value. weighted_mean weights by position (1,
// 2, ...); mean_sqrt_len is the sum over sqrt(T). none keeps one vector per token.
enum class TextPooling : uint8_t { mean, cls, last, max, weighted_mean, mean_sqrt_len, none };

struct EmbedOptions {
  // Unset means the setting of the model's sentence-transformers files, or else the mean.
  std::optional<TextPooling> pooling{};
  // Scales vectors to length 1. Unset means the setting of those files, or else true.
  std::optional<bool> normalize{};
  // Name of a model prompt ("query") to prepend to each text. Empty means the model's default
  // prompt, if it has one. Model::info().prompts lists them.
  std::string prompt_name{};
  // A prompt as text. It replaces the model's prompts.
  std::optional<std::string> prompt{};
  // Maximum tokens of a text, special ones included; 0 means the model's limit.
  int64_t max_tokens = 0;
  // true truncates longer texts at their end; false makes them an Error.
  bool truncate = true;
  // Number of leading values of each vector to keep, normalized again if `normalize`; 0 means all.
  // For models that were trained for it (Matryoshka representations).
  int64_t dimensions = 0;
  // Called after each text with texts done and total, and with 0 done while long texts are
  // tokenized. false stops with Code::cancelled.
  std::function<bool(int64_t done, int64_t total)> progress{};
};

struct TextEmbedding {
  std::vector<float> values;  // [rows, width]
  int64_t rows = 1;           // tokens for TextPooling::none
  int64_t tokens = 0;         // of the text, special ones included
  bool truncated = false;
};

// The cosine of the angle between two vectors of equal length; 0 if one of them is zero. Sums are
// in double precision, in order.
LOOM_API float cosine(std::span<const float> a, std::span<const float> b);

struct RerankOptions {
  int64_t max_tokens = 0;  // of query and document together; 0 means the model's limit
  bool truncate = true;    // cuts the end of the longer text; false makes it an Error
  std::function<bool(int64_t done, int64_t total)> progress{};  // as EmbedOptions::progress
};

struct Ranked {
  int64_t index = 0;   // of the document
  float logit = 0;     // output of the model's head
  float score = 0;     // 1 / (1 + exp(-logit)), from 0 to 1
  int64_t tokens = 0;  // of query and document, special ones included
};

}  // namespace loom
