// Losses of embeddings on a GPU: their ops have kernels, and none runs on the CPU.
#include "learn/data/pairs.hpp"
#include "gpu/training_rig.hpp"

namespace loom::core::test {
namespace {

// Two alternating labels; every third row has a third label.
void relate_rows(const Tensor& relation) {
  const auto label = [](int64_t row) { return row % 3 == 2 ? 2 : row % 2; };
  for (int64_t i = 0; i < relation.rows(); ++i) {
    for (int64_t j = 0; j < relation.cols(); ++j)
      relation.f32_row(i)[j] = i == j ? 0.0f : label(i) == label(j) ? 1.0f : -1.0f;
  }
}

TEST(GpuPairs, TrainAsOnTheCpu) {
  LOOM_NEEDS_GPU();
  for (const Loss kind : {Loss::triplet, Loss::contrastive, Loss::infonce}) {
    for (const bool all : {false, true}) {
      if (all && kind != Loss::triplet) continue;
      SCOPED_TRACE(std::string(loss_name(kind)) + (all ? " all" : ""));
      TrainingPlan plan;
      plan.options.loss.kind = kind;
      plan.options.loss.all_triplets = all;
      // Distances do not change if all rows move equally, so the gradient in that direction is only
      // rounding error. Adam would make full steps of it.
      plan.options.optimizer.kind = *parse_optimizer("momentum");
      plan.before = [](TrainStep& step, int number) -> Status {
        if (number == 0) relate_rows(step.target());
        return {};
      };
      expect_same_training(kind_network("Dense"), plan);
    }
  }
}

}  // namespace
}  // namespace loom::core::test
