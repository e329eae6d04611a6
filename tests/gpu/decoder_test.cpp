// A small decoder with random weights: prompts of many rows, then single tokens, on the GPU as on
// the CPU.
#include "gpu/support.hpp"
#include "loom/engine.hpp"
#include "loom/language_model.hpp"
#include "ops/ops.hpp"
#include "webgpu/sample.hpp"

namespace loom::core::test {
namespace {

Result<std::vector<float>> logits_of(loom::Device device, Activations activations,
                                     loom::DType dtype, int64_t prompt) {
  EngineOptions options;
  options.threads = 1;
  options.device = device;
  options.activations = activations;
  if (device == loom::Device::gpu) options.gpu_library = gpu()->adapter().library;
  LOOM_ASSIGN(const Engine engine, Engine::create(options));
  LOOM_ASSIGN(const Model model, Model::random(engine, "tiny", dtype, 1));
  LOOM_ASSIGN(ModelSession session, model.session());
  std::vector<TokenId> ids;
  for (int64_t i = 0; i < prompt; ++i) ids.push_back(static_cast<TokenId>(i * 37 % 256));
  LOOM_TRY(session.feed(ids));
  std::vector<float> all(session.logits().begin(), session.logits().end());
  const TokenId next = 11;
  LOOM_TRY(session.feed({&next, 1}));
  all.insert(all.end(), session.logits().begin(), session.logits().end());
  return all;
}

TEST(GpuDecoder, LogitsAreThoseOfTheCpu) {
  LOOM_NEEDS_GPU();
  struct Case {
    loom::DType dtype;
    Activations activations;
    double bound;  // rounding may turn single codes of quantized rows
  };
  const Case cases[] = {{loom::DType::q4_0, Activations::f32, 1e-5},
                        {loom::DType::q4_0, Activations::q8, 2e-2},
                        {loom::DType::float16, Activations::f32, 1e-5}};
  for (size_t i = 0; i < std::size(cases); ++i) {
    if (!has_turn("GpuDecoder", i, std::size(cases))) continue;
    const Case& c = cases[i];
    for (const int64_t prompt : {9, 70}) {
      const auto cpu = logits_of(loom::Device::cpu, c.activations, c.dtype, prompt);
      const auto got = logits_of(loom::Device::gpu, c.activations, c.dtype, prompt);
      ASSERT_TRUE(cpu.ok()) << cpu.error().str();
      ASSERT_TRUE(got.ok()) << got.error().str();
      EXPECT_LE(distance(*cpu, *got), c.bound)
          << loom::dtype_name(c.dtype) << " " << activations_name(c.activations) << ", " << prompt
          << " tokens";
    }
  }
}

}  // namespace
}  // namespace loom::core::test
