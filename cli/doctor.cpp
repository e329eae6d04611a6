// loom doctor: what is built in, what this processor has, and a proof that it computes right.
#include <fmt/core.h>

#include <memory>

#include "engine/impl.hpp"
#include "engine/self_check.hpp"
#include "verbs.hpp"

namespace loom::cli {
namespace {

std::string compiler() {
#if defined(__clang__)
  return fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#elif defined(__GNUC__)
  return fmt::format("gcc {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#else
  return "unknown";
#endif
}

// Features that kernels use or may use.
std::vector<std::string> cpu_features() {
  std::vector<std::string> features;
#if defined(__x86_64__)
  __builtin_cpu_init();
#define LOOM_FEATURE(name) \
  if (__builtin_cpu_supports(name)) features.emplace_back(name)
  LOOM_FEATURE("sse4.2");
  LOOM_FEATURE("avx");
  LOOM_FEATURE("avx2");
  LOOM_FEATURE("fma");
  LOOM_FEATURE("avx512f");
  LOOM_FEATURE("avx512bw");
  LOOM_FEATURE("avx512dq");
  LOOM_FEATURE("avx512vl");
  LOOM_FEATURE("avx512vnni");
#undef LOOM_FEATURE
#endif
  return features;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text.empty() ? "none" : text;
}

void print_json(const EngineInfo& info, const std::vector<SelfCheck>& checks) {
  JsonValue list = JsonValue::array();
  for (const SelfCheck& check : checks) {
    list.push(JsonObject()
                  .set("isa", isa_name(check.isa))
                  .set("checked", check.checked)
                  .set("ok", check.failed.empty())
                  .set("failed", check.failed)
                  .value());
  }
  JsonObject()
      .set("version", info.version)
      .set("compiler", compiler())
      .set("cores", info.cores)
      .set("threads_built_in", info.threads_built_in)
      .set("cpu_features", cpu_features())
      .set("isas", info.isas)
      .set("best_isa", info.isas.back())
      .set("dtypes", dtype_names())
      .set("self_check", std::move(list))
      .print();
}

void print_text(const EngineInfo& info, const std::vector<SelfCheck>& checks) {
  const auto line = [](std::string_view name, const std::string& value) {
    write_out(fmt::format("{:<16} {}\n", name, value));
  };
  line("version", info.version);
  line("compiler", compiler());
  line("cores", fmt::format("{}", info.cores));
  line("threads", info.threads_built_in ? "built in" : "not built in");
  line("cpu features", joined(cpu_features()));
  line("instruction sets", fmt::format("{} (best: {})", joined(info.isas), info.isas.back()));
  line("number types", joined(dtype_names()));
  for (const SelfCheck& check : checks) {
    const std::string verdict = check.failed.empty() ? "OK" : "WRONG BITS: " + joined(check.failed);
    line(fmt::format("check {}", isa_name(check.isa)),
         fmt::format("{} ({} products against the reference)", verdict, check.checked));
  }
}

int run(bool json) {
  EngineOptions options;
  options.threads = 1;
  const Result<Engine> engine = Engine::create(options);
  if (!engine.ok()) return fail(engine.error());
  const Result<std::vector<SelfCheck>> checks = self_check();
  if (!checks.ok()) return fail(checks.error());
  if (json) {
    print_json(engine->info(), *checks);
  } else {
    print_text(engine->info(), *checks);
  }
  for (const SelfCheck& check : *checks) {
    if (!check.failed.empty()) {
      return fail(kMismatch, fmt::format("the kernels for {} give wrong bits here; use --isa with "
                                         "another and report it",
                                         isa_name(check.isa)));
    }
  }
  return kDone;
}

}  // namespace

Verb add_doctor(Command app) {
  auto json = std::make_shared<bool>(false);
  const Command verb = app.command("doctor", "Show what is built in and check that it works.");
  verb.examples(
      "  loom doctor\n"
      "  loom doctor --json");
  verb.flag("--json", *json, "One JSON object instead of text");
  return {verb, [json] { return run(*json); }};
}

}  // namespace loom::cli
