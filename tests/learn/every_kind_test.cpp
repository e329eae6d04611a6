// Every layer kind in every dtype trains. After 60 steps of Adam the loss is at most 0.9 of its
// start for floats and types of 8 bits and more. For lower types it is at most its start. Forward,
// backward and 50 steps of every kind have the same bits on all instruction sets and threads.
#include "learn/every_kind.hpp"

#include <fstream>

#include "base/text.hpp"
#include "support/paths.hpp"

namespace loom::core::test {
namespace {

TEST(EveryKind, HasACase) {
  EXPECT_EQ(every_kind().size(), layer_table().size());
}

// hash_matrix.sh holds those kinds to their hashes that the file names.
TEST(EveryKind, HasGoldenHashesWhenItIsReleased) {
  std::ifstream file(loom_test::source_path("tests/golden/training.txt"));
  std::vector<std::string> named, released_kinds;
  for (std::string line; std::getline(file, line);) named.push_back(line.substr(0, line.find(' ')));
  for (const LayerDef* def : layer_table()) {
    if (released(def->kind)) released_kinds.emplace_back(def->name);
  }
  EXPECT_EQ(named, released_kinds);
}

struct TypedCase {
  KindCase kind;
  DType dtype;
};

std::ostream& operator<<(std::ostream& out, const TypedCase& c) {
  return out << c.kind.name << " in " << dtype_name(c.dtype);
}

std::vector<TypedCase> every_type() {
  std::vector<TypedCase> all;
  for (const KindCase& kind : every_kind()) {
    for (const DTypeInfo& info : dtype_table()) all.push_back({kind, info.dtype});
  }
  return all;
}

class EveryKindAndType : public ::testing::TestWithParam<TypedCase> {};

TEST_P(EveryKindAndType, Trains) {
  const auto& [kind, dtype] = GetParam();
  TrainStepOptions options;
  options.clip = {Clip::norm, 1.0f};
  TrainRig rig(kind.grid, kind.input, DType::f32, options, cpu_ops(best_isa()), 1, dtype);
  ASSERT_TRUE(rig.ready());
  const std::vector<double> losses = rig.run(60, 0.01);
  const bool fine = dtype_info(dtype).bits >= 8;
  EXPECT_LE(losses.back(), (fine ? 0.9 : 1.0) * losses.front());
}
INSTANTIATE_TEST_SUITE_P(Types, EveryKindAndType, ::testing::ValuesIn(every_type()),
                         [](const auto& c) {
                           return cat(c.param.kind.name, "_", dtype_name(c.param.dtype));
                         });

class EveryKindBits : public ::testing::TestWithParam<KindCase> {};

TEST_P(EveryKindBits, AreTheSameOnAnyInstructionsAndThreads) {
  const KindCase& kind = GetParam();
  const auto hash = [&](const Ops& ops, int threads, int steps) {
    TrainStepOptions options;
    options.clip = {Clip::norm, 1.0f};
    TrainRig rig(kind.grid, kind.input, DType::f32, options, ops, threads);
    if (!rig.ready()) return uint64_t{0};
    rig.run(steps, 0.01);
    return rig.hash();
  };
  const uint64_t one = hash(reference_ops(), 1, 1), fifty = hash(reference_ops(), 1, 50);
  EXPECT_NE(one, fifty);
  for (const Isa isa : available_isas()) {
    EXPECT_EQ(hash(cpu_ops(isa), 1, 1), one) << isa_name(isa);
    for (int threads : {1, 2, 3, 7}) {
      EXPECT_EQ(hash(cpu_ops(isa), threads, 50), fifty) << isa_name(isa) << ", " << threads;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Kinds, EveryKindBits, ::testing::ValuesIn(every_kind()),
                         [](const auto& c) { return c.param.name; });

}  // namespace
}  // namespace loom::core::test
