// Every repetition measures each number of streams in turn, so that a temporary slowdown affects
// all of them, and the ratios are stable.
#include "bench_streams.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "api/engine/gpu.hpp"
#include "llm/sessions/llm_batch.hpp"
#include "profile.hpp"
#include "train_io/bits_hash.hpp"

namespace loom::core::cli {
namespace {

struct StreamRates {
  std::vector<double> tokens_per_s;  // of all streams together, per repetition
  std::vector<double> ratios;        // to the first number of streams, likewise
  OpProfile profile;
  std::vector<webgpu::KernelTime> kernels;  // of a GPU, instead of ops
  double dispatches = 0;                    // of a GPU, per pass
};

double seconds_now() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

// Reads a separate prompt in each of the first `count` sequences.
Status read_prompts(LlmBatch& batch, const StreamsBench& b, int64_t count, int64_t vocab) {
  for (int64_t s = 0; s < count; ++s) {
    std::vector<TokenId> prompt;
    for (int64_t i = 0; i < b.prefill; ++i) prompt.push_back(prompt_token(i + s, vocab));
    batch.rewind(s, 0);
    if (!prompt.empty()) LOOM_TRY(batch.reader(s)->feed(prompt));
  }
  return {};
}

// Tokens per second of `count` streams, one token each per pass. On a GPU the host waits for the
// logits of each pass.
Result<double> measure(LlmBatch& batch, const StreamsBench& b, int64_t count, int64_t vocab,
                       OpProfile* profile, webgpu::Backend* gpu, StreamRates& rates) {
  LOOM_TRY(read_prompts(batch, b, count, vocab));
  std::vector<TokenId> ids(static_cast<size_t>(count));
  std::vector<LlmBatch::Piece> pieces;
  for (int64_t s = 0; s < count; ++s)
    pieces.push_back({s, std::span(ids).subspan(static_cast<size_t>(s), 1)});
  batch.set_profile(profile);
  if (gpu != nullptr) gpu->take_profile();  // of the prompts
  const int64_t dispatches = gpu != nullptr ? gpu->counts().dispatches : 0;
  const double begin = seconds_now();
  for (int64_t i = 0; i < b.decode; ++i) {
    for (int64_t s = 0; s < count; ++s) ids[static_cast<size_t>(s)] = decode_token(i + s, vocab);
    LOOM_TRY(batch.feed(pieces));
    if (interrupted()) return Error{Code::cancelled, "interrupted", {}, -1};
  }
  const double seconds = seconds_now() - begin;
  batch.set_profile(nullptr);
  if (gpu != nullptr) {
    add_times(gpu->take_profile(), profile != nullptr ? &rates.kernels : nullptr);
    rates.dispatches =
        static_cast<double>(gpu->counts().dispatches - dispatches) / static_cast<double>(b.decode);
  }
  return static_cast<double>(b.decode * count) / std::max(seconds, 1e-9);
}

Status repeat_all(LlmBatch& batch, const StreamsBench& b, int64_t vocab, webgpu::Backend* gpu,
                  std::vector<StreamRates>& rates) {
  const double warm_until = seconds_now() + warm_up_seconds(gpu);
  for (int rep = -1; rep < b.reps; ++rep) {
    double first = 0;
    for (size_t i = 0; i < b.streams.size(); ++i) {
      StreamRates& r = rates[i];
      OpProfile* profile = b.profile && rep >= 0 ? &r.profile : nullptr;
      LOOM_ASSIGN(const double rate, measure(batch, b, b.streams[i], vocab, profile, gpu, r));
      if (i == 0) first = rate;
      if (rep < 0) continue;
      r.tokens_per_s.push_back(rate);
      r.ratios.push_back(rate / first);
    }
    if (rep < 0 && seconds_now() < warm_until) --rep;
  }
  return {};
}

void print(const Engine& engine, const Model& model, const StreamsBench& b,
           const std::vector<StreamRates>& rates) {
  const webgpu::Backend* gpu = engine.impl().gpu.get();
  Json list = Json::array();
  std::string text =
      fmt::format("{} {} {} t={}, {} tokens after {}\n", b.shape, dtype_name(model.info().dtype),
                  engine.info().isa, engine.info().threads, b.decode, b.prefill);
  for (size_t i = 0; i < rates.size(); ++i) {
    const double rate = median(rates[i].tokens_per_s), ratio = median(rates[i].ratios);
    JsonObject one;
    one.set("streams", b.streams[i]).set("tokens_per_s", rate).set("ratio", ratio);
    text += fmt::format("{:4} streams   median {:.1f} tok/s   {:.2f} x {}", b.streams[i], rate,
                        ratio, b.streams[0]);
    if (gpu != nullptr) {
      one.set("dispatches_per_pass", rates[i].dispatches);
      text += fmt::format("   {:.0f} dispatches a pass", rates[i].dispatches);
    }
    list.push(one.value());
    text += "\n";
  }
  if (gpu != nullptr) {
    text += fmt::format("{}, {} ops on the CPU\n", gpu->adapter().name,
                        num_cpu_fallbacks(engine.impl()));
  }
  if (b.json) {
    JsonObject out;
    out.set("shape", b.shape)
        .set("dtype", dtype_name(model.info().dtype))
        .set("isa", engine.info().isa)
        .set("threads", engine.info().threads)
        .set("reps", b.reps)
        .set("decode_tokens", b.decode)
        .set("prefill_tokens", b.prefill)
        .set("streams", list);
    if (gpu != nullptr) {
      out.set("device", gpu->adapter().name).set("cpu_fallbacks", num_cpu_fallbacks(engine.impl()));
    }
    return out.print();
  }
  write_out(text);
  for (size_t i = 0; b.profile && i < rates.size(); ++i) {
    const StreamRates& r = rates[i];
    const char* seen = gpu != nullptr ? "by timestamps of the GPU" : "as lane 0 sees it";
    print_profile(
        fmt::format("{} streams, per repetition, {}", b.streams[i], seen),
        gpu != nullptr ? profile_rows(r.kernels, b.reps) : profile_rows(r.profile, b.reps));
  }
}

}  // namespace

int bench_streams(const Engine& engine, const Model& model, const StreamsBench& bench) {
  const bool counts = std::ranges::all_of(bench.streams, [](int64_t n) { return n >= 1; });
  if (!counts || bench.decode < 1) return fail(kUsage, "--streams and --decode count from 1");
  LlmBatchOptions options;
  options.sequences = *std::ranges::max_element(bench.streams);
  options.context = bench.prefill + bench.decode;
  options.activations = engine.impl().activations;
  options.cache = bench.cache;
  Result<LlmBatch> batch =
      LlmBatch::create(model.impl().model, *engine.impl().ops, model.impl().engine->pool, options);
  if (!batch.ok()) return fail(batch.error());
  std::vector<StreamRates> rates(bench.streams.size());
  webgpu::Backend* gpu = engine.impl().gpu.get();
  if (gpu != nullptr && bench.profile) {
    if (const Status timed = gpu->set_profile(true); !timed.ok()) return fail(timed.error());
  }
  const Status status = repeat_all(*batch, bench, model.info().vocab, gpu, rates);
  if (!status.ok()) return fail(status.error());
  print(engine, model, bench, rates);
  return kDone;
}

}  // namespace loom::core::cli
