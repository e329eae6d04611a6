#include "api/train/trainer_options.hpp"

#include "base/text.hpp"
#include "learn/optimizer/optimizer.hpp"

namespace loom::core {

TrainerSpec options_of(const loom::TrainerOptions& from) {
  TrainerSpec o;
  fill_options(from, o.step);
  fill_options(from, o);
  o.augment = AugmentSpec{from.augment, {}, {}};
  return o;
}

Status check_trainer(const loom::TrainerOptions& o) {
  LOOM_TRY(loom::check_options(o));
  LOOM_TRY(check_metrics(o.metrics));
  if (!optimizer_def(o.optimizer.kind).all_samples) return {};
  const std::string_view name = optimizer_name(o.optimizer.kind);
  if (AugmentSpec{o.augment, {}, {}}.any())
    return invalid(cat(name, " needs the same samples in every update; leave augmentation out"));
  if (o.balance)
    return invalid(cat(name, " needs every sample in every update; leave balance out"));
  return {};
}

Error labels_need_classes() {
  return invalid(cat("class labels are trained with the loss ", loss_name(Loss::cross_entropy),
                     "; this loss takes numbers as targets"));
}

}  // namespace loom::core
