// The words for how a CSV begins: see names.cpp. Facts of losses.
#include "base/names.hpp"
#include "learn/loss/loss.hpp"
#include "loom/dataset.hpp"
#include "loom/trainer.hpp"

namespace loom {
namespace {

constexpr std::string_view kHeaders[] = {"auto", "yes", "no"};

// A value outside of its enum has no name.
template <class E>
std::string_view training_word(std::span<const std::string_view> words, E value) {
  const auto index = static_cast<size_t>(value);
  return index < words.size() ? words[index] : std::string_view("unknown");
}

}  // namespace

std::string_view csv_header_name(DatasetOptions::Header header) {
  return training_word(kHeaders, header);
}
Result<DatasetOptions::Header> parse_csv_header(std::string_view name) {
  return core::value_named<DatasetOptions::Header>("header", kHeaders, name);
}

LossInfo loss_info(Loss loss) {
  if (loss == Loss::automatic) return {.labels = true, .classes = true, .numbers = true};
  const core::LossDef& def = core::loss_def(loss);
  return {.labels = def.takes_labels(),
          .classes = def.prediction == core::Prediction::classes,
          .sequences = def.form == core::LossForm::sequence,
          .embeddings = def.form == core::LossForm::pairs,
          .numbers = def.prediction == core::Prediction::numbers && def.domain.must == nullptr &&
                     !def.takes_labels()};
}

}  // namespace loom
