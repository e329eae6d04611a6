// lstm_cell with included products has the same bits as matmul, add and lstm_cell of the reference.
// This holds on every backend, for any number of lanes, and whether or not the recorder decomposes
// it.
#include "backend/cpu/cpu.hpp"
#include "backend/reference/reference.hpp"
#include "conformance/training.hpp"
#include "ops/recording/recorder.hpp"

namespace loom::core::test {
namespace {

struct Case {
  int64_t rows, width;
  DType dtype;
  ActivationMode mode;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.rows << " x " << c.width << " " << dtype_name(c.dtype)
             << (c.mode == ActivationMode::q8 ? " q8" : "");
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const int64_t rows : {1, 3, 5, 16, 29}) {
    for (const int64_t width : {11, 16, 48, 128}) {
      for (const DType dtype : {DType::f32, DType::bf16, DType::f8e4m3, DType::i8, DType::q4_0}) {
        for (const ActivationMode mode : {ActivationMode::f32, ActivationMode::q8}) {
          if (dtype == DType::q4_0 && width % 32 != 0) continue;
          all.push_back({rows, width, dtype, mode});
        }
      }
    }
  }
  return all;
}

class LstmProducts : public ::testing::TestWithParam<Case> {};

TEST_P(LstmProducts, HasTheBitsOfItsParts) {
  const Case& c = GetParam();
  const Rows gates(c.rows, 4 * c.width, 3, 1, Values::smooth);
  const Rows h_before(c.rows, c.width, 2, 2, Values::smooth);
  const Rows c_before(c.rows, c.width, 1, 3, Values::mixed);
  const Packed w(c.dtype, 4 * c.width, c.width, 4);
  const auto run = [&](const Ops& ops, int threads, bool apart) {
    ThreadPool pool(threads, true);
    Recorder recorder(ops, pool, c.mode);
    const Rows products = filled(c.rows, 4 * c.width, 0), sum = filled(c.rows, 4 * c.width, 0);
    const Rows acts = filled(c.rows, 4 * c.width, 5), cell = filled(c.rows, c.width, 1);
    const Rows h = filled(c.rows, c.width, 2);
    LstmCellArgs args{gates.tensor(), c_before.tensor(), acts.tensor(), cell.tensor(), h.tensor()};
    if (apart) {
      EXPECT_TRUE(recorder.matmul({h_before.tensor(), w.tensor(), {}, products.tensor()}).ok());
      EXPECT_TRUE(
          recorder.binary({gates.tensor(), products.tensor(), sum.tensor(), BinaryKind::add}).ok());
      args.gates = sum.tensor();
    } else {
      args.h_before = h_before.tensor();
      args.w = w.tensor();
    }
    const Status recorded = recorder.lstm_cell(args);
    EXPECT_TRUE(recorded.ok()) << recorded.error().str();
    EXPECT_TRUE(recorder.flush().ok());
    return image_of({&acts, &cell, &h}).words();
  };
  const auto expected = run(reference_ops(), 1, true);
  EXPECT_EQ(run(reference_ops(), 1, false), expected);
  for (const Isa isa : available_isas()) {
    for (const int threads : {1, 2, 3, 7}) {
      EXPECT_EQ(run(cpu_ops(isa), threads, false), expected) << isa_name(isa) << " " << threads;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Cases, LstmProducts, ::testing::ValuesIn(cases()));

}  // namespace
}  // namespace loom::core::test
