// Every repetition measures each number of streams in turn, so that a machine that is slower for a
// while is so for all of them, and the ratios stay what they are.
#include "bench_streams.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "llm/llm_batch.hpp"
#include "profile.hpp"
#include "train_io/bits_hash.hpp"

namespace loom::core::cli {
namespace {

struct StreamRates {
  std::vector<double> tokens_per_s;  // of all streams together, per repetition
  std::vector<double> ratios;        // to the first number of streams, likewise
  OpProfile profile;
};

double seconds_now() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

// Reads a prompt of its own in every sequence but those behind `count`.
Status read_prompts(LlmBatch& batch, const StreamsBench& b, int64_t count, int64_t vocab) {
  for (int64_t s = 0; s < count; ++s) {
    std::vector<TokenId> prompt;
    for (int64_t i = 0; i < b.prefill; ++i) prompt.push_back(prompt_token(i + s, vocab));
    batch.rewind(s, 0);
    if (!prompt.empty()) LOOM_TRY(batch.reader(s)->feed(prompt));
  }
  return {};
}

// Tokens per second of `count` streams, a token each in every pass.
Result<double> measure(LlmBatch& batch, const StreamsBench& b, int64_t count, int64_t vocab,
                       OpProfile* profile) {
  LOOM_TRY(read_prompts(batch, b, count, vocab));
  std::vector<TokenId> ids(static_cast<size_t>(count));
  std::vector<LlmBatch::Piece> pieces;
  for (int64_t s = 0; s < count; ++s)
    pieces.push_back({s, std::span(ids).subspan(static_cast<size_t>(s), 1)});
  batch.set_profile(profile);
  const double begin = seconds_now();
  for (int64_t i = 0; i < b.decode; ++i) {
    for (int64_t s = 0; s < count; ++s) ids[static_cast<size_t>(s)] = decode_token(i + s, vocab);
    LOOM_TRY(batch.feed(pieces));
    if (interrupted()) return Error{Code::cancelled, "interrupted", {}, -1};
  }
  const double seconds = seconds_now() - begin;
  batch.set_profile(nullptr);
  return static_cast<double>(b.decode * count) / std::max(seconds, 1e-9);
}

Status repeat_all(LlmBatch& batch, const StreamsBench& b, int64_t vocab,
                  std::vector<StreamRates>& rates) {
  for (int rep = -1; rep < b.reps; ++rep) {
    double first = 0;
    for (size_t i = 0; i < b.streams.size(); ++i) {
      StreamRates& r = rates[i];
      OpProfile* profile = b.profile && rep >= 0 ? &r.profile : nullptr;
      LOOM_ASSIGN(const double rate, measure(batch, b, b.streams[i], vocab, profile));
      if (i == 0) first = rate;
      if (rep < 0) continue;
      r.tokens_per_s.push_back(rate);
      r.ratios.push_back(rate / first);
    }
  }
  return {};
}

void print(const Engine& engine, const Model& model, const StreamsBench& b,
           const std::vector<StreamRates>& rates) {
  Json list = Json::array();
  std::string text =
      fmt::format("{} {} {} t={}, {} tokens after {}\n", b.shape, dtype_name(model.info().dtype),
                  engine.info().isa, engine.info().threads, b.decode, b.prefill);
  for (size_t i = 0; i < rates.size(); ++i) {
    const double rate = median(rates[i].tokens_per_s), ratio = median(rates[i].ratios);
    list.push(JsonObject()
                  .set("streams", b.streams[i])
                  .set("tokens_per_s", rate)
                  .set("ratio", ratio)
                  .value());
    text += fmt::format("{:4} streams   median {:.1f} tok/s   {:.2f} x {}\n", b.streams[i], rate,
                        ratio, b.streams[0]);
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
    return out.print();
  }
  write_out(text);
  for (size_t i = 0; b.profile && i < rates.size(); ++i)
    print_profile(fmt::format("{} streams, per repetition, as lane 0 sees it", b.streams[i]),
                  profile_rows(rates[i].profile, b.reps));
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
  const Status status = repeat_all(*batch, bench, model.info().vocab, rates);
  if (!status.ok()) return fail(status.error());
  print(engine, model, bench, rates);
  return kDone;
}

}  // namespace loom::core::cli
