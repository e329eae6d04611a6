// Checking and laying out ids.
#include "text/postprocessor.hpp"

#include "base/text.hpp"

namespace loom::core::text {

Result<std::vector<PostProcessor::Part>> PostProcessor::make_parts(
    const std::vector<TemplatePart>& parts, const std::function<bool(int32_t)>& is_token) {
  std::vector<Part> made;
  for (const TemplatePart& spec : parts) {
    const int text = !spec.is_text ? -1 : spec.name == "B" ? 1 : 0;
    Part part{text, spec.type, {}};
    for (const TemplateId& id : spec.ids) {
      if (!is_token(id.id)) return bad_file(cat("no token has id ", id.id), id.where);
      part.ids.push_back(id.id);
    }
    made.push_back(std::move(part));
  }
  return made;
}

Result<PostProcessor> PostProcessor::make(const TokenizerSpec& spec,
                                          const std::function<bool(int32_t)>& is_token) {
  PostProcessor processor;
  if (spec.post_processor) {
    LOOM_ASSIGN(processor.single_, make_parts(*spec.post_processor, is_token));
  }
  if (!spec.pair_processor.empty()) {
    LOOM_ASSIGN(processor.pair_, make_parts(spec.pair_processor, is_token));
  }
  return processor;
}

std::vector<int32_t> PostProcessor::apply(std::vector<int32_t> text,
                                          bool add_special_tokens) const {
  if (single_.size() == 1 && single_[0].text == 0) return text;
  return apply(text, nullptr, add_special_tokens).ids;
}

PostProcessor::Typed PostProcessor::apply(const std::vector<int32_t>& first,
                                          const std::vector<int32_t>* second,
                                          bool add_special_tokens) const {
  const std::vector<Part>& parts = second != nullptr ? pair_ : single_;
  Typed typed;
  typed.ids.reserve(first.size() + (second != nullptr ? second->size() : 0) + parts.size());
  for (const Part& part : parts) {
    if (part.text < 0 && !add_special_tokens) continue;
    const std::vector<int32_t>& ids = part.text < 0 ? part.ids : part.text == 1 ? *second : first;
    typed.ids.insert(typed.ids.end(), ids.begin(), ids.end());
    typed.types.resize(typed.ids.size(), part.type);
  }
  return typed;
}

size_t PostProcessor::special_tokens(bool pair) const {
  size_t count = 0;
  for (const Part& part : pair ? pair_ : single_) count += part.ids.size();
  return count;
}

}  // namespace loom::core::text
