// Einsum of one or two inputs, the general way. Letters that only one input has and the output
// lacks are summed. The rest is one product of matrices over the letters that both inputs and the
// output have. See general.hpp.
#include <algorithm>
#include <map>
#include <optional>

#include "layers/spatial/axes.hpp"
#include "onnx/import/general/general.hpp"

namespace loom::core {
namespace {

// "ab,bc->ac" without spaces, cut at its commas and its arrow.
struct Letters {
  std::vector<std::string> inputs;
  std::string output;
};

bool holds(std::string_view word, char letter) {
  return word.find(letter) != word.npos;
}

std::optional<Letters> letters_of(std::string text) {
  std::erase(text, ' ');
  Letters out;
  const size_t arrow = text.find("->");
  const std::string left = text.substr(0, arrow);
  for (size_t at = 0; at <= left.size();) {
    const size_t end = std::min(left.find(',', at), left.size());
    out.inputs.push_back(left.substr(at, end - at));
    at = end + 1;
  }
  for (std::string word : out.inputs) {
    const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    if (!std::ranges::all_of(word, is_letter)) return {};
    std::ranges::sort(word);
    if (std::ranges::adjacent_find(word) != word.end()) return {};
  }
  if (arrow != text.npos) {
    out.output = text.substr(arrow + 2);
  } else {  // letters that occur once, in the order of the alphabet
    for (const char c : left) {
      if (c != ',' && std::ranges::count(left, c) == 1) out.output += c;
    }
    std::ranges::sort(out.output);
  }
  for (size_t i = 0; i < out.output.size(); ++i) {
    if (!holds(left, out.output[i]) || out.output.find(out.output[i]) != i) return {};
  }
  return out;
}

int64_t extent_of_all(std::string_view word, const std::map<char, int64_t>& extents) {
  int64_t n = 1;
  for (const char c : word) n *= extents.at(c);
  return n;
}

}  // namespace

// x with axes `word` in the order of `to`, the same letters.
Result<GraphImport::Value> GraphImport::in_order(const OnnxNode& n, const Value& x,
                                                 std::string_view word, std::string_view to) {
  if (word == to) return x;
  std::vector<int64_t> order;
  for (const char c : to) order.push_back(static_cast<int64_t>(word.find(c)));
  return emit(n, LayerKind::transpose, {{"axes", order}}, {x});
}

// Sums over the letters of `word` that `kept` has not, which go from it.
Result<GraphImport::Value> GraphImport::summed(const OnnxNode& n, const Value& x, std::string& word,
                                               std::string_view kept) {
  std::vector<int64_t> axes;
  std::string left;
  for (size_t i = 0; i < word.size(); ++i) {
    if (holds(kept, word[i]))
      left += word[i];
    else
      axes.push_back(static_cast<int64_t>(i));
  }
  word = left;
  if (axes.empty()) return x;
  return emit(n, LayerKind::reduce, {{"function", "sum"}, {"axes", axes}}, {x});
}

Status GraphImport::einsum_node(const OnnxNode& n) {
  const std::optional<Letters> found = letters_of(attribute_text(n, "equation", ""));
  if (!found || found->inputs.size() != n.inputs.size() || n.inputs.size() > 2 ||
      found->output.empty())
    return refuse(n, "an equation other than of one or two inputs with letters that differ");
  std::vector<std::string> words = found->inputs;
  const std::string& output = found->output;
  std::vector<Value> x;
  std::map<char, int64_t> extents;
  for (size_t i = 0; i < words.size(); ++i) {
    LOOM_ASSIGN(x.emplace_back(), stream(n, i));
    if (words[i].empty() || x[i].scalar || x[i].shape.rank() != static_cast<int>(words[i].size()))
      return refuse(n, "an equation that does not fit its inputs");
    for (size_t a = 0; a < words[i].size(); ++a) {
      const int64_t extent = x[i].shape[static_cast<int>(a)];
      if (!extents.emplace(words[i][a], extent).second && extents[words[i][a]] != extent)
        return refuse(n, "a letter that stands for two extents");
    }
  }
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string kept = words.size() == 1 ? output : output + words[1 - i];
    LOOM_ASSIGN(x[i], summed(n, x[i], words[i], kept));
  }
  if (x.size() == 1) {
    LOOM_ASSIGN(Value y, in_order(n, x[0], words[0], output));
    return define(n, std::move(y));
  }
  // Each letter is of both and the output, of both alone, of the first or of the second.
  std::string batch, inner, rows, cols;
  for (const char c : words[0])
    (!holds(words[1], c) ? rows : holds(output, c) ? batch : inner) += c;
  for (const char c : words[1]) {
    if (!holds(words[0], c)) cols += c;
  }
  LOOM_ASSIGN(x[0], in_order(n, x[0], words[0], batch + rows + inner));
  LOOM_ASSIGN(x[1], in_order(n, x[1], words[1], batch + inner + cols));
  const auto matrix = [&](std::string_view first, std::string_view second) {
    std::vector<int64_t> dims;
    for (const char c : batch) dims.push_back(extents.at(c));
    dims.push_back(extent_of_all(first, extents));
    dims.push_back(extent_of_all(second, extents));
    return dims;
  };
  LOOM_ASSIGN(x[0], view(n, x[0], matrix(rows, inner)));
  LOOM_ASSIGN(x[1], view(n, x[1], matrix(inner, cols)));
  LOOM_ASSIGN(Value y, emit(n, LayerKind::matmul, {}, x));
  std::vector<int64_t> dims;
  for (const char c : batch + rows + cols) dims.push_back(extents.at(c));
  LOOM_ASSIGN(y, view(n, y, dims));
  LOOM_ASSIGN(y, in_order(n, y, batch + rows + cols, output));
  return define(n, std::move(y));
}

}  // namespace loom::core
