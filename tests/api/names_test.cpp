// Every public enum has names in both directions, and the C interface has the same names and
// numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "loom/loom.hpp"
#include "support/paths.hpp"

namespace {

using namespace loom;
using testing::HasSubstr;

// Whether loom.h has that number for the value.
bool is_in_c(const std::string& value, int number) {
  static const std::string all = read_file(loom_test::source_path("include/loom.h")).or_exit();
  const std::string line = "  " + value + " = " + std::to_string(number);
  const size_t at = all.find(line);
  return at != std::string::npos && (all[at + line.size()] < '0' || all[at + line.size()] > '9');
}

std::string upper(std::string_view word) {
  std::string out(word);
  for (char& c : out) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return out;
}

// Checks values 0 to count - 1. prefix: of the values in C, which begin with c_first; may be empty.
template <class E>
void expect_names(int count, std::string_view (*name)(E), Result<E> (*parse)(std::string_view),
                  const std::string& prefix, int c_first = 0) {
  for (int i = 0; i < count; ++i) {
    const std::string_view word = name(static_cast<E>(i));
    ASSERT_TRUE(parse(word).ok()) << word;
    EXPECT_EQ(*parse(word), static_cast<E>(i)) << word;
    EXPECT_EQ(*parse(upper(word)), static_cast<E>(i)) << word;
    const std::string_view c_word = word == "softmax_ce" ? "cross_entropy" : word;
    if (!prefix.empty()) {
      EXPECT_TRUE(is_in_c(prefix + upper(c_word), i + c_first)) << word;
    }
  }
  const Result<E> wrong = parse("nosuchword");
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().code, Code::invalid_argument);
  for (int i = 0; i < count; ++i) {
    const std::string word(name(static_cast<E>(i)));
    EXPECT_THAT(wrong.error().message, HasSubstr(word));
  }
}

TEST(Names, GoBothWaysAndAreThoseOfC) {
  expect_names<Device>(2, device_name, parse_device, "LOOM_DEVICE_");
  expect_names<Activations>(3, activations_name, parse_activations, "LOOM_ACTIVATIONS_");
  expect_names<GpuTuning>(3, gpu_tuning_name, parse_gpu_tuning, "LOOM_GPU_TUNING_");
  expect_names<DType>(37, dtype_name, parse_dtype, "LOOM_");
  expect_names<Loss>(17, loss_name, parse_loss, "LOOM_LOSS_");
  expect_names<OptimizerKind>(18, optimizer_name, parse_optimizer, "LOOM_OPTIMIZER_", 1);
  expect_names<ScheduleKind>(10, schedule_name, parse_schedule, "LOOM_SCHEDULE_");
  expect_names<Clip>(4, clip_name, parse_clip, "LOOM_CLIP_");
  expect_names<Normalize>(4, normalize_name, parse_normalize, "");
  expect_names<Rule>(9, rule_name, parse_rule, "");
  expect_names<DatasetOptions::Header>(3, csv_header_name, parse_csv_header, "");
  expect_names<Activation>(13, activation_name, parse_activation, "");
  expect_names<RecurrentCell>(3, recurrent_cell_name, parse_recurrent_cell, "");
}

TEST(Names, OfAMistypedWordAreGuessed) {
  struct Case {
    std::string message, guess;
  };
  const std::vector<Case> cases = {
      {parse_device("gpuu").error().message,
       "unknown device 'gpuu'; choose from cpu, gpu; did "
       "you mean 'gpu'?"},
      {parse_activations("f23").error().message, "; did you mean 'f32'?"},
      {parse_gpu_tuning("froce").error().message, "; did you mean 'force'?"},
      {parse_optimizer("adm").error().message, "; did you mean 'adam'?"},
      {parse_dtype("bflaot16").error().message, "; did you mean 'bfloat16'?"},
      {parse_activation("sigmod").error().message, "; did you mean 'sigmoid'?"},
  };
  for (const Case& c : cases) EXPECT_THAT(c.message, HasSubstr(c.guess));
  EXPECT_THAT(parse_device("quantum").error().message, testing::Not(HasSubstr("did you mean")));
}

TEST(Names, OfSoftmaxVariantsAreThoseThatTheLayerKnows) {
  for (int i = 0; i < 10; ++i) {
    const Softmax layer{.variant = static_cast<SoftmaxVariant>(i)};
    const Result<Network> net = Network::sequential({layer}, {.input = {4}});
    const std::string message = net.ok() ? "" : net.error().message;
    EXPECT_THAT(message, testing::Not(HasSubstr("unknown variant")));
  }
}

}  // namespace
