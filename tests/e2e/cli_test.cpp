// The program as a person or a script uses it: stdout and stderr, exit codes, one-line errors, JSON
// that parses.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "e2e/program.hpp"
#include "e2e/reference.hpp"
#include "e2e/signalled.hpp"
#include "io/files/file.hpp"
#include "support/paths.hpp"

namespace loom::core {
namespace {

using test::Ran;
using test::signalled_loom;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

const std::string kStories = loom_test::source_path("tests/data/stories");

// Runs `loom ARGS` in a shell; S in the arguments is the story model.
Ran loom(std::string arguments, const std::string& input = "", const std::string& before = "") {
  for (size_t at = 0; (at = arguments.find(" S ", at)) != std::string::npos;)
    arguments.replace(at, 3, " " + kStories + " ");
  return test::run_loom(arguments, before, input);
}

JsonValue parse(const std::string& text) {
  Result<JsonValue> value = parse_json(text, "stdout");
  EXPECT_TRUE(value.ok()) << text;
  return value.ok() ? std::move(*value) : JsonValue();
}

std::vector<std::string> keys(const JsonValue& object) {
  std::vector<std::string> names;
  for (const auto& [name, value] : object.members()) names.push_back(name);
  return names;
}

TEST(Cli, RunPrintsThePromptAndItsContinuation) {
  const Ran ran = loom("run S -p 'Once upon a time' --max-tokens 11 --dtype f32");
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out, "Once upon a time, there was a brave boy named Jacob.\n");
  EXPECT_THAT(ran.err, IsEmpty());
  const Ran bare = loom("run S -p 'Once upon a time' --max-tokens 11 --dtype f32 --no-echo");
  EXPECT_EQ(bare.out, ", there was a brave boy named Jacob.\n");
}

TEST(Cli, RunReadsThePromptFromStdinOrAFile) {
  const std::string expected = "Once upon a time, there was a brave boy named Jacob.\n";
  EXPECT_EQ(loom("run S --max-tokens 11", "Once upon a time\n").out, expected);
  EXPECT_EQ(loom("run S --max-tokens 11 -f -", "Once upon a time\n").out, expected);
  const test::TempFolder folder;
  const std::string path = folder.write("prompt.txt", "Once upon a time\n");
  EXPECT_EQ(loom("run S --max-tokens 11 -f " + path).out, expected);
}

TEST(Cli, RunGivesOneJsonObject) {
  const Ran ran = loom("run S -p 'Tom had a red ball.' --max-tokens 5 --json --seed 3 --threads 1");
  ASSERT_EQ(ran.code, 0);
  EXPECT_THAT(ran.err, IsEmpty());
  EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '\n'), 1);
  const JsonValue json = parse(ran.out);
  EXPECT_THAT(keys(json),
              ElementsAre("text", "token_ids", "unknown_tokens", "prompt_token_ids", "stop_reason",
                          "prefill_tokens_per_s", "decode_tokens_per_s", "seed", "dtype",
                          "activations", "isa", "threads", "peak_rss_bytes"));
  EXPECT_EQ(json.find("text")->text(), " He loved it very much");
  EXPECT_EQ(json.find("token_ids")->elements().size(), 5u);
  EXPECT_EQ(json.find("prompt_token_ids")->elements().size(), 7u);
  EXPECT_EQ(json.find("stop_reason")->text(), "length");
  EXPECT_EQ(json.find("seed")->as_int("").value(), 3);
  EXPECT_EQ(json.find("threads")->as_int("").value(), 1);
  EXPECT_EQ(json.find("dtype")->text(), "bfloat16");
  EXPECT_GT(json.find("peak_rss_bytes")->as_int("").value(), 1 << 20);
}

TEST(Cli, RunStopsAtStopStrings) {
  const Ran ran = loom("run S -p 'Once upon a time' --no-echo --stop zzz --stop ' named'");
  EXPECT_EQ(ran.out, ", there was a brave boy\n");
  const Ran empty = loom("run S -p x --stop ''");
  EXPECT_EQ(empty.code, 2);
}

TEST(Cli, RunSamplesTheSameTextForTheSameSeedAnywhere) {
  const std::string common =
      "run S -p 'Once upon a time' --max-tokens 30 --temperature 0.9 --top-k 50 --top-p 0.95 "
      "--min-p 0.01 --repetition-penalty 1.1 --seed ";
  const Ran a = loom(common + "11");
  EXPECT_EQ(a.code, 0);
  EXPECT_EQ(loom(common + "11 --threads 1 --isa scalar --chunk 1").out, a.out);
  EXPECT_NE(loom(common + "12").out, a.out);
}

TEST(Cli, ChatAnswersOneQuestionOrMany) {
  const std::string question = "Tell me a story about a rabbit named Pip.";
  const Ran one = loom("run S --chat --max-tokens 20 -p '" + question + "'");
  EXPECT_EQ(one.code, 0);
  EXPECT_THAT(one.out, HasSubstr("Pip"));
  EXPECT_THAT(one.out, Not(HasSubstr(question)));
  const Ran large = loom("run S --chat --max-tokens 20", question + "\n\nAnother one?\n");
  EXPECT_EQ(large.code, 0);
  EXPECT_THAT(large.out, StartsWith(one.out));
  EXPECT_EQ(std::count(large.out.begin(), large.out.end(), '\n'), 2);
}

// The second answer of a conversation that reuses its cache is that of one read from the start.
TEST(Cli, ChatTurnsReuseTheCacheWithoutChangingTheAnswer) {
  const Ran ran = loom("run S --chat --max-tokens 30 --json", "Tell me a story.\nAnd then?\n");
  ASSERT_EQ(ran.code, 0);
  const size_t line = ran.out.find('\n');
  const JsonValue first = parse(ran.out.substr(0, line)), second = parse(ran.out.substr(line));
  const Model model = test::load(kStories, {});
  const std::vector<ChatTurn> turns = {{"user", "Tell me a story."},
                                       {"assistant", first.find("text")->text()},
                                       {"user", "And then?"}};
  Result<ModelSession> session = model.session();
  GenerateOptions options;
  options.max_tokens = 30;
  const Result<Generation> expected = session->generate(*model.tokenize_chat(turns), options);
  ASSERT_TRUE(expected.ok());
  EXPECT_EQ(second.find("text")->text(), expected->text);
}

TEST(Cli, PerplexityOfAText) {
  std::string story;
  for (int i = 0; i < 40; ++i) story += "Once upon a time there was a little rabbit named Pip. ";
  const Ran ran = loom("perplexity S - --window 64", story);
  EXPECT_EQ(ran.code, 0);
  EXPECT_GT(std::stod(ran.out), 1.0);
  const Ran json = loom("perplexity S - --window 64 --dtypes q8_0,q4_0 --json", story);
  const JsonValue rows = parse(json.out);
  ASSERT_EQ(rows.elements().size(), 3u);
  EXPECT_EQ(rows.elements()[0].find("dtype")->text(), "float32");
  EXPECT_EQ(rows.elements()[2].find("dtype")->text(), "q4_0");
  EXPECT_THAT(keys(rows.elements()[1]),
              ElementsAre("dtype", "perplexity", "nats_per_token", "predictions", "window",
                          "weight_bytes", "bits_per_weight", "tokens_per_second", "kl_divergence",
                          "top_agreement", "ratio_to_f32"));
  EXPECT_EQ(rows.elements()[0].find("kl_divergence")->as_double("").value(), 0.0);
  EXPECT_EQ(rows.elements()[0].find("top_agreement")->as_double("").value(), 1.0);
  EXPECT_EQ(loom("perplexity S - --window 64", "Too short.").code, 2);
  // Characters, not bytes, are skipped.
  const Ran skipped =
      loom("perplexity S - --window 64 --start-char 3", "\xC3\xA4\xE2\x82\xACx" + story);
  EXPECT_EQ(skipped.out, ran.out);
}

TEST(Cli, InfoListsWhatAFolderHolds) {
  const Ran ran = loom("info S --tensors");
  EXPECT_EQ(ran.code, 0);
  for (const char* part : {"LlamaForCausalLM", "4 of width 192", "1771200", "BF16", "1024 tokens",
                           "512 positions", "model.layers.3.mlp.up_proj.weight"})
    EXPECT_THAT(ran.out, HasSubstr(part));
  const JsonValue json = parse(loom("info S --tensors --json").out);
  EXPECT_EQ(json.find("parameters")->as_int("").value(), 1771200);
  EXPECT_EQ(json.find("tensors")->elements().size(), 38u);
}

TEST(Cli, TokenizeAndBack) {
  EXPECT_EQ(loom("tokenize S 'Once upon a time'").out, "540 541 261 446\n");
  EXPECT_EQ(loom("tokenize S ", "Once upon a time\n").out, "540 541 261 446\n");
  EXPECT_EQ(loom("tokenize S --decode '540, 541 [261] 446'").out, "Once upon a time\n");
  const JsonValue json = parse(loom("tokenize S --json 'a time'").out);
  EXPECT_GT(json.find("token_ids")->elements().size(), 0u);
  EXPECT_EQ(loom("tokenize S --decode 'abc'").code, 2);
  EXPECT_EQ(loom("tokenize S --decode 99999").code, 2);
}

// The cost on a busy host is measured by hand (docs/decisions/0018-lanes.md); this checks only that
// it runs.
TEST(Cli, BenchLoadComparesTheLanesThatAreChosen) {
  const std::string quick = "bench load --rounds 2 --seconds 0.01 --filter 'run mlp'";
  const Ran text = loom(quick + " --floor 0");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("2 of 2"));
  const Ran json = loom(quick + " --with-load 0 --floor 0 --json");
  ASSERT_EQ(json.code, 0) << json.err;
  const JsonValue rows = parse(json.out);
  ASSERT_EQ(rows.elements().size(), 1u);
  EXPECT_EQ(rows.elements()[0].find("shares")->elements().size(), 2u);
  EXPECT_EQ(loom(quick + " --floor 9 --with-load 0").code, 5);
  EXPECT_EQ(loom("bench load --with-load 4096").code, 2);
}

TEST(Cli, BenchNeedsNoFile) {
  const Ran text = loom("bench llm --shape tiny --dtype q4_0 --prefill 5 --decode 3 --reps 2");
  EXPECT_EQ(text.code, 0);
  EXPECT_THAT(text.out, HasSubstr("pp5 median"));
  const Ran json = loom(
      "bench llm --shape tiny --dtype int8 --prefill 5 --decode 3 --reps 2 --threads 1 --profile "
      "--json");
  const JsonValue value = parse(json.out);
  EXPECT_THAT(
      keys(value),
      ElementsAre("shape", "dtype", "activations", "isa", "threads", "reps", "prefill_tokens",
                  "prefill_tokens_per_s", "prefill_tokens_per_s_max", "decode_tokens",
                  "decode_tokens_per_s", "decode_tokens_per_s_max", "weight_bytes",
                  "peak_rss_bytes", "prefill_profile", "decode_profile", "decode_passes_recorded"));
  EXPECT_GT(value.find("decode_tokens_per_s")->as_double("").value(), 0);
  EXPECT_GT(value.find("decode_profile")->elements().size(), 3u);
}

TEST(Cli, VerifyHashPrintsTheHashAlone) {
  const Ran ran = loom("verify hash S --prompt-tokens 20");
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out.size(), 33u);
  EXPECT_EQ(ran.out.find_first_not_of("0123456789abcdef"), 32u);
  for (const char* same :
       {"--isa scalar", "--threads 7", "--chunk 1", "--chunk 7 --threads 3", "--activations f32"}) {
    EXPECT_EQ(loom(std::string("verify hash S --prompt-tokens 20 ") + same).out, ran.out) << same;
  }
  EXPECT_NE(loom("verify hash S --prompt-tokens 21").out, ran.out);
  EXPECT_NE(loom("verify hash S --prompt-tokens 20 --dtype q8_0").out, ran.out);
  const Ran random = loom("verify hash --shape tiny --dtype ternary --seed 4 --prompt-tokens 20");
  EXPECT_EQ(random.code, 0);
  EXPECT_NE(loom("verify hash --shape tiny --dtype ternary --seed 5 --prompt-tokens 20").out,
            random.out);
}

TEST(Cli, DoctorChecksEveryInstructionSet) {
  const Ran ran = loom("doctor");
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.out, HasSubstr("check scalar"));
  EXPECT_THAT(ran.out, Not(HasSubstr("WRONG")));
  const JsonValue json = parse(loom("doctor --json").out);
  for (const JsonValue& check : json.find("self_check")->elements())
    EXPECT_TRUE(check.find("ok")->as_bool("").value());
}

TEST(Cli, HelpOpensWithTwoExamplesForEveryVerb) {
  for (const char* verb :
       {"run", "perplexity", "info", "tokenize", "bench", "bench llm", "bench machine", "verify",
        "verify hash", "doctor", "convert", "quantize", "diff", "verify files", "bench open", "dna",
        "merge", "cluster", "ensemble"}) {
    const Ran ran = loom(std::string(verb) + " --help");
    EXPECT_EQ(ran.code, 0) << verb;
    EXPECT_THAT(ran.err, IsEmpty());
    EXPECT_THAT(ran.out, StartsWith(std::string("Examples:\n  loom ") + verb)) << verb;
    const size_t second = ran.out.find("\n  loom ", 12);
    EXPECT_LT(second, ran.out.find("\n\n")) << verb;
  }
  EXPECT_THAT(loom("--help").out, HasSubstr("Exit codes: 0 done"));
  EXPECT_THAT(loom("--version").out, StartsWith("loom 0."));
}

TEST(Cli, ErrorsAreOneLineWithTheirExitCode) {
  struct Case {
    const char* arguments;
    int code;
    const char* says;
  };
  const Case cases[] = {
      {"run", 2, "MODEL"},
      {"fly", 2, "--help"},
      {"run S --flavour x -p x", 2, "--flavour"},
      {"run S --threads many -p x", 2, "--threads"},
      {"run S -p x -f y", 2, "excludes"},
      {"run S -p x --dtype q3", 2, "unknown dtype 'q3'"},
      {"run S -p x --temperature -1", 2, "temperature"},
      {"run S -p x --top-p 2", 2, "--top-p is 2, must be above 0, up to 1"},
      {"run S -p x --context 100000", 2, "512"},
      {"run S -p ''", 2, "prompt"},
      {"run S -p x --activations q7", 2, "q8, f32"},
      {"verify hash", 2, "--shape"},
      {"verify hash S --shape tiny ", 2, "--shape"},
      {"bench llm --shape huge", 2, "smollm2-135m"},
      {"run /no/such/folder -p x", 3, "no such file or folder"},
      {"run S/config.json -p x", 3, "folder"},
      {"run S -f /no/such/file", 3, "/no/such/file"},
      {"perplexity S /no/such/file ", 3, "/no/such/file"},
      {"tokenize /no/such/folder x", 3, "tokenizer.json"},
      {"info /no/such/folder", 3, "no such file or folder"},
      {"run S -p x --isa mmx", 4, "mmx"},
  };
  for (const Case& c : cases) {
    const Ran ran = loom(c.arguments);
    SCOPED_TRACE(std::string(c.arguments) + " -> " + ran.err);
    EXPECT_EQ(ran.code, c.code);
    EXPECT_THAT(ran.out, IsEmpty());
    EXPECT_THAT(ran.err, StartsWith("loom: "));
    EXPECT_THAT(ran.err, HasSubstr(c.says));
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1);
  }
}

TEST(Cli, CutCheckpointsAreRefused) {
  const test::TempFolder folder;
  std::filesystem::copy(kStories, folder.path(), std::filesystem::copy_options::recursive);
  const std::string weights = folder.path() + "/model.safetensors";
  const auto whole = std::filesystem::file_size(weights);
  for (const auto size : {whole - 1, whole / 2, uintmax_t{5000}, uintmax_t{100}, uintmax_t{8},
                          uintmax_t{7}, uintmax_t{0}}) {
    std::filesystem::resize_file(weights, size);
    const Ran ran = loom("run " + folder.path() + " -p x");
    EXPECT_EQ(ran.code, 3) << size;
    EXPECT_THAT(ran.err, HasSubstr("model.safetensors")) << size;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
    EXPECT_THAT(ran.out, IsEmpty());
  }
  const std::string tokenizer = folder.path() + "/tokenizer.json";
  std::filesystem::resize_file(tokenizer, std::filesystem::file_size(tokenizer) / 2);
  EXPECT_EQ(loom("tokenize " + folder.path() + " x").code, 3);
}

#if defined(__linux__)
// Whether the process has the file mapped.
bool has_mapped(pid_t pid, const std::string& path) {
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  const std::string all{std::istreambuf_iterator<char>(maps), {}};
  return all.find(path) != std::string::npos;
}

TEST(Cli, AModelThatIsCutOrOverwrittenWhileItIsUsedIsTold) {
  const test::TempFolder folder;
  const std::string model = folder.path() + "/m.entity";
  std::string text;
  for (int i = 0; i < 1500; ++i) text += "Once upon a time there was a girl named Lily. ";
  folder.write("t", text);
  for (const bool cut : {true, false}) {
    std::filesystem::remove(model);
    ASSERT_EQ(loom("convert S " + model).code, 0);
    bool changed = false;
    const Ran ran =
        signalled_loom("perplexity " + model + " " + folder.path() + "/t", 0, [&](pid_t pid) {
          if (!has_mapped(pid, model) || !test::has_computed(pid)) return false;
          if (cut) {
            changed = truncate(model.c_str(), 0) == 0;
          } else {
            std::fstream file(model, std::ios::in | std::ios::out | std::ios::binary);
            changed = static_cast<bool>(file.seekp(1000).write("another", 7).flush());
          }
          return true;
        });
    ASSERT_TRUE(changed);
    EXPECT_EQ(ran.code, 3) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("m.entity was changed in place while it was read"));
  }
}
#endif

TEST(Cli, AnInterruptEndsWithItsOwnCode) {
  const Ran ran =
      signalled_loom("bench llm --shape tiny --prefill 1 --decode 400 --reps 1000000", SIGINT);
  EXPECT_EQ(ran.code, 130);
  EXPECT_EQ(ran.err, "loom: interrupted\n");
  EXPECT_THAT(ran.out, IsEmpty());
}

TEST(Cli, AFullDiskIsAnError) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "/dev/full is not here";
  const Ran ran = loom("tokenize S x >/dev/full");
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("stdout"));
}

}  // namespace
}  // namespace loom::core
