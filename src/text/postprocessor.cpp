// Checking and laying out ids.
#include "text/postprocessor.hpp"

#include "base/text.hpp"

namespace loom::core::text {

Result<PostProcessor> PostProcessor::make(const std::optional<std::vector<TemplatePart>>& parts,
                                          const std::function<bool(int32_t)>& is_token) {
  PostProcessor processor;
  processor.has_template_ = parts.has_value();
  if (!parts) return processor;
  for (const TemplatePart& spec : *parts) {
    Part part{spec.is_text, {}};
    for (const TemplateId& id : spec.ids) {
      if (!is_token(id.id)) return bad_file(cat("no token has id ", id.id), id.where);
      part.ids.push_back(id.id);
    }
    processor.parts_.push_back(std::move(part));
  }
  return processor;
}

std::vector<int32_t> PostProcessor::apply(std::vector<int32_t> text,
                                          bool add_special_tokens) const {
  if (!has_template_) return text;
  std::vector<int32_t> ids;
  ids.reserve(text.size() + parts_.size());
  for (const Part& part : parts_) {
    if (part.is_text) ids.insert(ids.end(), text.begin(), text.end());
    if (!part.is_text && add_special_tokens)
      ids.insert(ids.end(), part.ids.begin(), part.ids.end());
  }
  return ids;
}

}  // namespace loom::core::text
