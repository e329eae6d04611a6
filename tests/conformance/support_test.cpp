// The one test per row of ops.def that runs its driver, on every CPU backend.
#include "conformance/support.hpp"
#include "backend/cpu/cpu.hpp"
#include "backend/reference/reference.hpp"
#include "base/numbers/bits.hpp"
#include "base/text.hpp"

namespace loom::core::test {

bool tame_values() {
  return false;
}
bool packs(DType) {
  return true;
}

const Runner& reference_runner() {
  static const Runner runner(reference_ops(), 1, "reference");
  return runner;
}

const std::vector<Runner>& other_runners() {
  static const std::vector<Runner> runners = [] {
    std::vector<Runner> all = {Runner(reference_ops(), 3, "reference x 3")};
    for (Isa isa : available_isas()) {
      for (int lanes : {1, 3})
        all.emplace_back(cpu_ops(isa), lanes, cat(isa_name(isa), " x ", lanes));
    }
    return all;
  }();
  return runners;
}

void expect_same_bits(const std::string& what, const std::function<Image(const Runner&)>& body) {
  const Image expected = body(reference_runner());
  for (const Runner& runner : other_runners()) {
    const Image got = body(runner);
    if (got.words() == expected.words()) continue;
    ASSERT_EQ(got.words().size(), expected.words().size()) << what << ", " << runner.name();
    size_t i = 0;
    while (got.words()[i] == expected.words()[i]) ++i;
    ADD_FAILURE() << what << ", " << runner.name() << ": word " << i << " of " << got.words().size()
                  << " is " << f32_from_bits(got.words()[i]) << " (" << std::hex << got.words()[i]
                  << "), reference has " << f32_from_bits(expected.words()[i]) << " ("
                  << expected.words()[i] << ")";
    return;
  }
}

namespace {

// Checks that the driver of `op` called it on every backend.
void expect_called_everywhere(OpId op) {
  const int runs = reference_runner().runs(op);
  EXPECT_GT(runs, 0);
  for (const Runner& runner : other_runners()) EXPECT_EQ(runner.runs(op), runs) << runner.name();
}

}  // namespace

#define LOOM_OP(op, Args)                                  \
  TEST(Conformance, op) {                                  \
    conform_##op();                                        \
    if (!HasFailure()) expect_called_everywhere(OpId::op); \
  }
#include "ops/ops.def"
#undef LOOM_OP

}  // namespace loom::core::test
