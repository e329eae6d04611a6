// loom bench llm: tokens per second of a shape with random weights. The first repetition is a
// warm-up and does not count.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>

#include "api/engine/gpu.hpp"
#include "api/engine/impl.hpp"
#include "bench_streams.hpp"
#include "lab.hpp"
#include "lab/logits_hash.hpp"
#include "lab/machine_bench.hpp"
#include "llm/sampling/sampler.hpp"
#include "profile.hpp"

namespace loom::core::cli {
namespace {

constexpr double kMachineSeconds = 1;  // for --machine

struct BenchFlags {
  EngineFlags engine;
  std::string shape = "smollm2-135m", dtype = "q4_0", cache_type = "float32";
  int64_t prefill = 113, decode = 57, chunk = 0, top_k = 0;
  int reps = 7;
  bool profile = false, json = false, machine = false;
  std::vector<int64_t> streams;
};

// Tokens per second of the repetitions.
struct Rates {
  std::vector<double> values;
  void add(int64_t tokens, double seconds) {
    values.push_back(seconds > 0 ? static_cast<double>(tokens) / seconds : 0.0);
  }
  double median() const {
    std::vector<double> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    return sorted.empty() ? 0.0 : sorted[sorted.size() / 2];
  }
  double max() const {
    return values.empty() ? 0.0 : *std::max_element(values.begin(), values.end());
  }
};

struct Bench {
  Rates prefill, decode;
  OpProfile prefill_profile, decode_profile;                        // of ops, on a CPU
  std::vector<webgpu::KernelTime> prefill_kernels, decode_kernels;  // on a GPU
  webgpu::Counts before_decode;
  int64_t recordings = 0;  // recorded decoding passes, over all repetitions
  int64_t dispatches = 0;  // of one token on a GPU
  double submits = 0;      // shared by tokens
  int64_t peak_memory = 0;
  double read_peak = 0;  // GB/s, of memory; 0 means not measured
  // GB/s: the weights read per token, times the token rate.
  double read_rate(int64_t token_bytes) const {
    return static_cast<double>(token_bytes) * decode.median() * 1e-9;
  }
};

double now() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

// A device draws tokens itself, and the host reads several at a time, if the sampling allows it;
// otherwise the host draws. A CPU draws tokens only with --top-k.
Status decode(LlmSession& session, const BenchFlags& f, int64_t vocab) {
  SamplerOptions options;
  options.top_k = f.top_k;
  if (f.top_k > 0) options.temperature = 1.0f;
  LOOM_ASSIGN(Sampler sampler, Sampler::create(options, vocab));
  TokenId id = decode_token(0, vocab);
  std::vector<TokenId> found;
  for (int64_t i = 0; i < f.decode;) {
    const int64_t count = std::min(session.sample_batch(), f.decode - i);
    const std::optional<DeviceSampling> how = sampler.on_device();
    if (session.sample_batch() > 1 && how.has_value()) {
      LOOM_TRY(session.feed_sampled(id, count, *how, found));
      sampler.advance(count);
      id = found.back();
      i += count;
    } else {
      LOOM_TRY(session.feed({&id, 1}));
      ++i;
      id = f.top_k > 0 ? sampler.next(session.logits(), {}) : decode_token(i, vocab);
    }
    if (interrupted()) return Error{Code::cancelled, "interrupted", {}, -1};
  }
  return {};
}

// `decoded` is called before and after the tokens that are fed one by one.
Status repeat(LlmSession& session, const BenchFlags& f, int64_t vocab, Bench* bench,
              const std::function<void(bool begin)>& decoded) {
  std::vector<TokenId> prompt;
  for (int64_t i = 0; i < f.prefill; ++i) prompt.push_back(prompt_token(i, vocab));
  session.rewind(0);
  session.set_profile(f.profile && bench != nullptr ? &bench->prefill_profile : nullptr);
  const double start = now();
  if (!prompt.empty()) LOOM_TRY(session.feed(prompt));
  const double middle = now();
  const int64_t recorded = session.recordings();
  decoded(true);
  session.set_profile(f.profile && bench != nullptr ? &bench->decode_profile : nullptr);
  LOOM_TRY(decode(session, f, vocab));
  const double end = now();
  decoded(false);
  if (bench == nullptr) return {};
  bench->prefill.add(f.prefill, middle - start);
  bench->decode.add(f.decode, end - middle);
  bench->recordings += session.recordings() - recorded;
  return {};
}

// A token reads one row of the embedding table if the head has separate weights.
int64_t token_bytes(const LanguageModel& model) {
  const Network& network = model.network();
  const int64_t table = model.config().tie_word_embeddings ? 0 : network.params()[0].bytes();
  return network.param_bytes() - table;
}

std::vector<ProfileRow> prefill_rows(const BenchFlags& f, const Bench& b) {
  return b.prefill_kernels.empty() ? profile_rows(b.prefill_profile, f.reps)
                                   : profile_rows(b.prefill_kernels, f.reps);
}
std::vector<ProfileRow> decode_rows(const BenchFlags& f, const Bench& b) {
  return b.decode_kernels.empty() ? profile_rows(b.decode_profile, f.reps)
                                  : profile_rows(b.decode_kernels, f.reps);
}

void print_json(const BenchFlags& f, const Engine& engine, const Model& model, const Bench& b) {
  JsonObject out;
  out.set("shape", f.shape)
      .set("dtype", dtype_name(model.info().dtype))
      .set("activations", activations_name(engine.info().activations))
      .set("isa", engine.info().isa)
      .set("threads", engine.info().threads)
      .set("reps", f.reps)
      .set("prefill_tokens", f.prefill)
      .set("prefill_tokens_per_s", b.prefill.median())
      .set("prefill_tokens_per_s_max", b.prefill.max())
      .set("decode_tokens", f.decode)
      .set("decode_tokens_per_s", b.decode.median())
      .set("decode_tokens_per_s_max", b.decode.max())
      .set("weight_bytes", model.info().bytes)
      .set("peak_rss_bytes", b.peak_memory);
  if (const webgpu::Backend* gpu = engine.impl().gpu.get()) {
    const webgpu::Counts& counts = gpu->counts();
    out.set("device", gpu->adapter().name)
        .set("device_weight_bytes", counts.memory[static_cast<int>(MemoryUse::weights)])
        .set("device_state_bytes", counts.memory[static_cast<int>(MemoryUse::state)])
        .set("device_scratch_bytes",
             counts.memory[static_cast<int>(MemoryUse::scratch)] + counts.own_memory)
        .set("dispatches_per_token", b.dispatches)
        .set("submits_per_token", b.submits)
        .set("cpu_fallbacks", num_cpu_fallbacks(engine.impl()));
  }
  if (b.read_peak > 0) {
    const double rate = b.read_rate(token_bytes(model.impl().model));
    out.set("token_bytes", token_bytes(model.impl().model))
        .set("decode_gigabytes_per_s", rate)
        .set("machine_read_gigabytes_per_s", b.read_peak)
        .set("decode_percent_of_read", 100 * rate / b.read_peak);
  }
  if (f.profile) {
    out.set("prefill_profile", profile_json(prefill_rows(f, b)));
    out.set("decode_profile", profile_json(decode_rows(f, b)));
    if (engine.impl().gpu == nullptr) out.set("decode_passes_recorded", b.recordings);
  }
  out.print();
}

void print_text(const BenchFlags& f, const Engine& engine, const Model& model, const Bench& b) {
  write_out(fmt::format(
      "{} {} {} t={}   pp{} median {:.1f} max {:.1f} tok/s   tg{} median {:.1f} max {:.1f} tok/s\n",
      f.shape, dtype_name(model.info().dtype), engine.info().isa, engine.info().threads, f.prefill,
      b.prefill.median(), b.prefill.max(), f.decode, b.decode.median(), b.decode.max()));
  write_out(fmt::format("weights {} ({} bytes), peak memory {} ({} bytes)\n",
                        human_bytes(model.info().bytes), model.info().bytes,
                        human_bytes(b.peak_memory), b.peak_memory));
  if (b.read_peak > 0) {
    const double rate = b.read_rate(token_bytes(model.impl().model));
    write_out(fmt::format(
        "decode reads {:.1f} GB/s of weights, {:.0f} % of the {:.1f} GB/s that memory gives\n",
        rate, 100 * rate / b.read_peak, b.read_peak));
  }
  if (const webgpu::Backend* gpu = engine.impl().gpu.get()) {
    const webgpu::Counts& counts = gpu->counts();
    int64_t total = counts.own_memory;
    for (const int64_t bytes : counts.memory) total += bytes;
    write_out(fmt::format(
        "{}: {} of GPU memory (weights {}, state {}), {} dispatches in {:.2f} submits per token, "
        "{} ops on the CPU\n",
        gpu->adapter().name, human_bytes(total), human_bytes(counts.memory[0]),
        human_bytes(counts.memory[1]), b.dispatches, b.submits, num_cpu_fallbacks(engine.impl())));
  }
  if (!f.profile) return;
  const char* seen = engine.impl().gpu != nullptr ? "per repetition, by timestamps of the GPU"
                                                  : "per repetition, as lane 0 sees it";
  print_profile(fmt::format("prefill {}, {}", f.prefill, seen), prefill_rows(f, b));
  print_profile(fmt::format("decode {}, {}", f.decode, seen), decode_rows(f, b));
  if (engine.impl().gpu == nullptr) {
    write_out(
        fmt::format("{} of {} passes of decoding were recorded, the others ran the commands "
                    "of the one before\n",
                    b.recordings, f.decode * f.reps));
  }
}

int run(const BenchFlags& f) {
  Result<Engine> engine = f.engine.create();
  if (!engine.ok()) return fail(engine.error());
  const Result<loom::DType> dtype = loom::parse_dtype(f.dtype);
  if (!dtype.ok()) return fail(dtype.error());
  const Result<loom::DType> cache = loom::parse_dtype(f.cache_type);
  if (!cache.ok()) return fail(cache.error());
  Result<Model> model = Model::random(*engine, f.shape, *dtype, 1);
  if (!model.ok()) return fail(model.error());
  if (!f.streams.empty()) {
    return bench_streams(*engine, *model,
                         {f.streams, f.prefill, f.decode, f.reps, f.profile, f.json, f.shape,
                          static_cast<DType>(*cache)});
  }
  LlmSessionOptions options;
  options.context = std::max<int64_t>(f.prefill + f.decode, 1);
  options.chunk = f.chunk;
  options.cache = static_cast<DType>(*cache);
  options.activations = engine->impl().activations;
  Result<LlmSession> session = make_session(*model, options);
  if (!session.ok()) return fail(session.error());
  Bench bench;
  webgpu::Backend* gpu = engine->impl().gpu.get();
  bool warm = false;
  if (f.machine && gpu != nullptr) {
    return fail(kUsage, "--machine is for the CPU; leave --device gpu out");
  }
  if (gpu != nullptr && f.profile) {
    if (const Status status = gpu->set_profile(true); !status.ok()) return fail(status.error());
  }
  const auto decoded = [&](bool begin) {
    if (gpu == nullptr) return;
    add_times(gpu->take_profile(),
              warm ? &(begin ? bench.prefill_kernels : bench.decode_kernels) : nullptr);
    if (f.decode == 0) return;
    if (begin) bench.before_decode = gpu->counts();
    bench.dispatches = (gpu->counts().dispatches - bench.before_decode.dispatches) / f.decode;
    const int64_t submits = gpu->counts().submits - bench.before_decode.submits;
    bench.submits = static_cast<double>(submits) / static_cast<double>(f.decode);
  };
  const double warm_until = now() + warm_up_seconds(gpu);
  for (int rep = -1; rep < f.reps; ++rep) {
    warm = rep >= 0;
    const Status status =
        repeat(*session, f, model->info().vocab, rep < 0 ? nullptr : &bench, decoded);
    if (!warm && now() < warm_until) --rep;
    if (!status.ok()) return fail(status.error());
  }
  bench.peak_memory = peak_rss_bytes();
  if (f.machine) {
    const Result<double> peak =
        measure_peak(PeakKind::read, engine->impl().isa, engine->info().threads, kMachineSeconds);
    if (!peak.ok()) return fail(peak.error());
    bench.read_peak = *peak;
  }
  if (f.json) {
    print_json(f, *engine, *model, bench);
  } else {
    print_text(f, *engine, *model, bench);
  }
  return kDone;
}

}  // namespace

Verb add_bench(Command app) {
  const Command bench = app.command("bench", "Measure speed.");
  bench.examples(
      "  loom bench llm --shape smollm2-135m --dtype q4_0 --threads 2\n"
      "  loom bench llm --dtype bf16 --prefill 512 --decode 128 --json");
  bench.require_command();
  auto f = std::make_shared<BenchFlags>();
  const Command verb = bench.command(
      "llm", "Tokens per second of a language model with random weights; needs no file.");
  verb.examples(
      "  loom bench llm --shape smollm2-135m --dtype q4_0 --threads 2\n"
      "  loom bench llm --dtype bf16 --prefill 512 --decode 128 --profile\n"
      "  loom bench llm --streams 1,8 --prefill 16");
  verb.option("--shape", f->shape, "A named shape; a wrong name lists them").show_default();
  verb.option("--dtype", f->dtype, "Number type of the weights").show_default();
  verb.option("--cache-type", f->cache_type,
              "Number type of keys and values: float32, float16, bfloat16, q8_0 or q4_0")
      .show_default();
  verb.option("--prefill", f->prefill, "Prompt tokens").range(0, 1 << 24).show_default();
  verb.option("--decode", f->decode, "Tokens fed one by one").range(0, 1 << 24).show_default();
  verb.option("--top-k", f->top_k,
              "Draw the tokens among the K most likely; 0: the most likely one")
      .range(0, 1 << 24)
      .show_default();
  verb.option("--chunk", f->chunk, "Prompt tokens per pass; 0: 256, on a GPU 2048")
      .range(0, 1 << 20)
      .show_default();
  verb.option("--streams", f->streams,
              "Texts that are written together, such as 1,8: their rates, and the ratios to the\n"
              "first of them")
      .split_at(',');
  verb.option("--reps", f->reps,
              "Repetitions, after one that warms up; on a GPU, after a second of them")
      .range(1, 1000000)
      .show_default();
  f->engine.add(verb);
  f->engine.add_device(verb);
  verb.flag("--profile", f->profile, "Time per op; on a GPU per kernel, by timestamps");
  verb.flag("--machine", f->machine,
            "Also what memory gives here, and the share of it that decoding reads; weights in the\n"
            "caches may come faster");
  verb.flag("--json", f->json, "One JSON object instead of text");
  return {verb, [f] { return run(*f); }};
}

}  // namespace loom::core::cli
