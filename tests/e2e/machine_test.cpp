// loom bench machine, and --machine of the other benches, as a script meets them. Rates are only
// known to be positive: the machines that tests run on are busy.
#include <gmock/gmock.h>

#include "e2e/program.hpp"
#include "e2e/signalled.hpp"
#include "io/json/json.hpp"

namespace loom::core {
namespace {

using test::has_computed;
using test::Ran;
using test::run_loom;
using test::signalled_loom;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr const char* kQuickMachine = "bench machine --seconds 0.05 --rounds 2 --buffer 4M";

JsonValue machine_json(const std::string& text) {
  Result<JsonValue> value = parse_json(text, "stdout");
  EXPECT_TRUE(value.ok()) << text;
  return value.ok() ? std::move(*value) : JsonValue();
}

std::vector<std::string> member_names(const JsonValue& object) {
  std::vector<std::string> names;
  for (const auto& [name, value] : object.members()) names.push_back(name);
  return names;
}

double number_at(const JsonValue& object, const char* name) {
  const JsonValue* value = object.find(name);
  return value == nullptr ? -1 : value->as_double(name).value();
}

TEST(BenchMachine, GivesOneJsonObject) {
  const Ran ran = run_loom(std::string(kQuickMachine) + " --json");
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.err, IsEmpty());
  EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '\n'), 1);
  const JsonValue json = machine_json(ran.out);
  EXPECT_THAT(member_names(json), ElementsAre("name", "cores", "caches", "rounds", "rates"));
  EXPECT_THAT(json.find("name")->text(), Not(IsEmpty()));
  EXPECT_GE(number_at(json, "cores"), 1);
  EXPECT_EQ(number_at(json, "rounds"), 2);
  std::vector<std::string> whats;
  for (const JsonValue& rate : json.find("rates")->elements()) {
    SCOPED_TRACE(dump_json(rate, 0));
    EXPECT_GT(number_at(rate, "least"), 0);
    EXPECT_GE(number_at(rate, "median"), number_at(rate, "least"));
    EXPECT_GE(number_at(rate, "most"), number_at(rate, "median"));
    EXPECT_GE(number_at(rate, "threads"), 1);
    const std::string what = rate.find("what")->text();
    const bool memory = rate.find("place") != nullptr;
    EXPECT_EQ(memory, rate.find("unit")->text() == "GB/s");
    EXPECT_TRUE(!memory || number_at(rate, "bytes") > 0);
    if (whats.empty() || whats.back() != what) whats.push_back(what);
  }
  EXPECT_THAT(whats,
              ElementsAre("f32 fma", "f64 fma", "int8 dot", "read", "write", "copy", "read"));
}

TEST(BenchMachine, PrintsATableOfWhatIsAskedFor) {
  const Ran ran = run_loom(std::string(kQuickMachine) + " --isa Scalar --threads 1 --no-file");
  ASSERT_EQ(ran.code, 0) << ran.err;
  for (const char* text : {"core", "median", "f32 fma ", "int8 dot", "read memory, 4 MB", "GOP/s"})
    EXPECT_THAT(ran.out, HasSubstr(text));
  for (const char* text : {"avx", "neon", "mapped"}) EXPECT_THAT(ran.out, Not(HasSubstr(text)));
  EXPECT_THAT(run_loom("bench machine --help").out,
              StartsWith("Examples:\n  loom bench machine\n  loom bench machine --threads"));
}

TEST(BenchMachine, RefusesWhatItCannotMeasure) {
  struct Case {
    const char* arguments;
    int code;
    const char* says;
  };
  const Case cases[] = {
      {"bench machine --isa mmx", 4, "instruction set 'mmx' is not available here; choose from"},
      {"bench machine --buffer lots", 2, "lots"},
      {"bench machine --buffer 1K", 2, "--buffer: must be from 64 kB to 1 TB, not 1 kB"},
      {"bench machine --rounds 0", 2, "--rounds: must be from 1 to 1000000, not 0"},
      {"bench machine --round 3", 2,
       "there is no option --round; did you mean '--rounds'?; see loom bench machine --help"},
      {"bench machin", 2, "did you mean 'machine'?"},
      {"bench machine extra", 2, "'extra' is one argument too many"},
  };
  for (const Case& c : cases) {
    const Ran ran = run_loom(c.arguments);
    EXPECT_EQ(ran.code, c.code) << c.arguments;
    EXPECT_THAT(ran.out, IsEmpty());
    EXPECT_THAT(ran.err, HasSubstr(c.says)) << c.arguments;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  }
}

// An interrupt ends it early, and nothing of its file is left.
TEST(BenchMachine, CanBeInterrupted) {
  const test::TempFolder folder;
  const Ran ran = signalled_loom("bench machine --seconds 600 --buffer 1M", SIGINT, has_computed,
                                 "TMPDIR=" + folder.path());
  EXPECT_EQ(ran.code, 130);
  EXPECT_THAT(ran.err, HasSubstr("loom: interrupted\n"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(BenchMachine, GoesOnWithoutAFolderForItsFile) {
  const Ran ran = run_loom(kQuickMachine, "TMPDIR=/no/such/folder");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("reading from a mapped file is left out"));
  EXPECT_THAT(ran.out, Not(HasSubstr("mapped")));
  EXPECT_THAT(ran.out, HasSubstr("copy memory"));
}

TEST(BenchMachine, IsWhatOtherBenchesAreTheShareOf) {
  const std::string layers =
      "bench layers --filter 1x512x512 --seconds 0.01 --modes single,scalar --machine";
  EXPECT_THAT(run_loom(layers).out, HasSubstr("% of FMA peak"));
  const JsonValue rows = machine_json(run_loom(layers + " --json").out);
  ASSERT_EQ(rows.elements().size(), 2u);
  for (const JsonValue& row : rows.elements()) {
    EXPECT_GT(number_at(row, "machine_gflop_per_s"), 0);
    EXPECT_NEAR(number_at(row, "percent_of_fma_peak"),
                100 * number_at(row, "gflop_per_s") / number_at(row, "machine_gflop_per_s"), 0.01);
  }
  const std::string llm = "bench llm --shape tiny --prefill 2 --decode 3 --reps 2 --machine";
  EXPECT_THAT(run_loom(llm).out, HasSubstr("that memory gives"));
  const JsonValue json = machine_json(run_loom(llm + " --json").out);
  EXPECT_GT(number_at(json, "token_bytes"), 0);
  EXPECT_LE(number_at(json, "token_bytes"), number_at(json, "weight_bytes"));
  EXPECT_NEAR(number_at(json, "decode_gigabytes_per_s"),
              number_at(json, "token_bytes") * number_at(json, "decode_tokens_per_s") * 1e-9, 1e-6);
  EXPECT_GT(number_at(json, "decode_percent_of_read"), 0);
}

}  // namespace
}  // namespace loom::core
