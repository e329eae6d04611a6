// Pre-tokenizers of GGUF files: the pieces of a text, as HF `tokenizers` 0.23 splits it with the
// expressions of the models.
#include "formats/gguf/tokenizer/pre.hpp"

#include <gtest/gtest.h>

#include "text/splitting/pattern.hpp"

namespace loom::core {
namespace {

std::vector<std::string> pieces_of(const std::string& text, const GgufPre& pre) {
  std::vector<std::string> pieces = {text};
  for (const std::string_view regex : pre.splits) {
    const Result<text::Pattern> pattern = text::Pattern::make({std::string(regex), true, "pre"});
    if (!pattern.ok()) return {pattern.error().str()};
    std::vector<std::string> finer;
    for (const std::string& piece : pieces) {
      text::Budget budget = text::Budget::for_text(piece.size());
      std::vector<text::Span> spans;
      EXPECT_TRUE(pattern->find_all(piece, budget, spans).ok());
      for (const text::Span& span : spans)
        if (span.end > span.begin) finer.push_back(piece.substr(span.begin, span.end - span.begin));
    }
    pieces = std::move(finer);
  }
  return pieces;
}

TEST(GgufPreTest, TextsSplitAsInTheTokenizersOfTheModels) {
  constexpr const char* kText = "I'Ve 1234567 naïve\u0301 Ωmega 漢字かな!\r\n\n  x…y";
  struct Row {
    const char *name, *pieces;  // with | between them
  };
  const Row rows[] = {
      {"qwen35", "I|'Ve| |1|2|3|4|5|6|7| naïvé| Ωmega| 漢字かな|!\r\n\n| | x|…y"},
      {"deepseek-llm", "I|'|Ve| |1234567| na|ï|ve|́| Ω|mega| |漢字かな|!|\r|\n|\n| | x|…|y"},
      {"deepseek-coder", "I|'|Ve| |1|2|3|4|5|6|7| naïve|́| Ωmega| |漢字かな|!|\r|\n|\n| | x|…|y"},
      {"deepseek-v3", "I|'Ve| |123|456|7| naïvé| Ωmega| |漢字かな|!\r\n\n| | x|…|y"},
      {"bloom", "I'Ve| 1234567| naïvé| Ωmega| 漢字かな|!\r\n\n | x|…|y"},
      {"viking", "I'Ve| |1|2|3|4|5|6|7| naïvé| Ωmega| 漢字かな|!\r\n\n | x|…|y"},
      {"bailingmoe", "I|'Ve| |1|2|3|4|5|6|7| naïve|́| Ωmega| 漢字かな|!\r\n\n| | x|…y"},
      {"seed-coder", "I|'Ve| |1|2|3|4|5|6|7| naïve|́| Ωmega| 漢字かな|!|\r\n\n| | x|…y"},
      {"exaone-moe", "I|'Ve| |1|2|3|4|5|6|7| naïvé Ωmega 漢字かな|!\r|\n\n| | x|…y"},
      {"ufakzeka", "I|'Ve| |1|2|3|4|5|6|7| naïve|́| Ωmega| 漢字かな|!\r\n\n| | x|…y"},
      {"laguna", "I|'Ve| |1|2|3|4|5|6|7| naïve|́| Ωmega| 漢字かな|!\r|\n\n| | x|…y"},
      {"minicpm5", "I|'Ve| |123|456|7| naïve|́| Ωmega| 漢字かな|!\r\n\n| | x|…y"},
      {"jais-2", "I|'Ve| |123|456|7| naïve|́| Ωmega| 漢字かな|!\r\n\n| | x|…y"},
      {"tiny_aya", "I'Ve| |1|234|567| naïvé| Ωmega| 漢字かな|!\r\n\n| | x|…y"},
      {"chameleon", "I|'|Ve| |1|2|3|4|5|6|7| naïve|́| Ωmega| 漢字かな|!|\r|\n|\n|  |x|…|y"},
      {"glm4", "I|'Ve| |123|456|7| naïve|́| Ωmega| 漢字かな|!\r\n\n| | x|…y"},
      {"modern-bert", "I|'|Ve| 1234567| naïve|́| Ωmega| 漢字かな|!|\r\n\n | x|…|y"},
  };
  for (const Row& row : rows) {
    const GgufPre* pre = find_gguf_pre(row.name);
    ASSERT_NE(pre, nullptr) << row.name;
    std::string found;
    for (const std::string& piece : pieces_of(kText, *pre))
      found += (found.empty() ? "" : "|") + piece;
    EXPECT_EQ(found, row.pieces) << row.name;
  }
}

TEST(GgufPreTest, OtherNamesOfARowMeanTheSame) {
  constexpr std::pair<const char*, const char*> kSame[] = {{"hunyuan-dense", "deepseek-v3"},
                                                           {"kormo", "qwen2"},
                                                           {"mellum2", "smollm"},
                                                           {"jina-v5-nano", "llama-bpe"},
                                                           {"glm4", "dbrx"},
                                                           {"minimax-m2", "gpt-4o"},
                                                           {"exaone4", "gpt-2"},
                                                           {"hunyuan", "stablelm2"}};
  for (const auto& [name, same] : kSame)
    EXPECT_EQ(find_gguf_pre(name), find_gguf_pre(same)) << name;
  EXPECT_EQ(find_gguf_pre("mystery"), nullptr);
}

}  // namespace
}  // namespace loom::core
