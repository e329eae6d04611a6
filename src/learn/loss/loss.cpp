// Facts of the row of a loss.
#include "learn/loss/loss.hpp"

namespace loom::core {

void copy_options(const LossSpec& from, LossSpec& to) {
  for (const LossOption& option : loss_def(to.kind).options) {
    if (option.real != nullptr) to.*option.real = from.*option.real;
    if (option.integer != nullptr) to.*option.integer = from.*option.integer;
    if (option.flag != nullptr) to.*option.flag = from.*option.flag;
  }
}

bool LossSpec::sequence() const {
  return loss_def(kind).form == LossForm::sequence;
}

bool LossSpec::pairs() const {
  return loss_def(kind).form == LossForm::pairs;
}

bool LossSpec::has_classes() const {
  return loss_def(kind).prediction == Prediction::classes;
}

bool LossSpec::has_binary_targets() const {
  const Prediction prediction = loss_def(kind).prediction;
  return prediction == Prediction::binary_logits || prediction == Prediction::margins;
}

}  // namespace loom::core
