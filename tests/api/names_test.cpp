// Every public enum has a name both ways, and the C interface has the same names and numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "loom/loom.hpp"
#include "support/paths.hpp"

namespace {

using namespace loom;
using testing::HasSubstr;

// The section of api/loom_api.toml about an enum of C.
std::string c_enum(const std::string& name) {
  const std::string all = read_file(loom_test::source_path("api/loom_api.toml")).or_exit();
  const size_t begin = all.find("[[enum]]\nname = \"" + name + "\"");
  return begin == std::string::npos ? "" : all.substr(begin, all.find("\n[[", begin + 8) - begin);
}

std::string upper(std::string_view word) {
  std::string out(word);
  for (char& c : out) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return out;
}

// Of values 0 to count - 1. c_names: the enum of C that has them; "": none.
template <class E>
void expect_names(int count, std::string_view (*name)(E), Result<E> (*parse)(std::string_view),
                  const std::string& c_names, int c_first = 0) {
  const std::string in_c = c_names.empty() ? "" : c_enum(c_names);
  for (int i = 0; i < count; ++i) {
    const std::string_view word = name(static_cast<E>(i));
    if (word == "automatic" && !parse(word).ok()) continue;  // Loss: what is left out
    ASSERT_TRUE(parse(word).ok()) << word;
    EXPECT_EQ(*parse(word), static_cast<E>(i)) << word;
    EXPECT_EQ(*parse(upper(word)), static_cast<E>(i)) << word;
    if (in_c.empty()) continue;
    EXPECT_THAT(in_c, HasSubstr("[\"" + upper(word) + "\", " + std::to_string(i + c_first)));
  }
  EXPECT_EQ(in_c.empty(), c_names.empty()) << c_names;
  const Result<E> wrong = parse("nosuchword");
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().code, Code::invalid_argument);
  for (int i = 0; i < count; ++i) {
    const std::string word(name(static_cast<E>(i)));
    if (word == "automatic") continue;
    EXPECT_THAT(wrong.error().message, HasSubstr(word));
  }
}

TEST(Names, GoBothWaysAndAreThoseOfC) {
  expect_names<Device>(2, device_name, parse_device, "loom_device");
  expect_names<Activations>(3, activations_name, parse_activations, "loom_activations");
  expect_names<GpuTuning>(3, gpu_tuning_name, parse_gpu_tuning, "loom_gpu_tuning");
  expect_names<DType>(37, dtype_name, parse_dtype, "loom_dtype");
  expect_names<Loss>(13, loss_name, parse_loss, "");  // softmax_ce is CROSS_ENTROPY in C
  expect_names<OptimizerKind>(13, optimizer_name, parse_optimizer, "loom_optimizer", 1);
  expect_names<ScheduleKind>(10, schedule_name, parse_schedule, "loom_schedule");
  expect_names<Clip>(4, clip_name, parse_clip, "loom_clip");
  expect_names<Normalize>(4, normalize_name, parse_normalize, "");
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
