// Model files as a person meets them: convert, quantize, info, diff, verify files, and the same
// model in every format that holds it.
#include <gmock/gmock.h>

#include "e2e/program.hpp"
#include "io/json/json.hpp"
#include "support/paths.hpp"

namespace loom::core::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const std::string kFolder = loom_test::source_path("tests/data/stories");
const std::string kEntity = loom_test::source_path("models/stories.entity");

JsonValue parse(const std::string& text) {
  Result<JsonValue> value = parse_json(text, "stdout");
  EXPECT_TRUE(value.ok()) << text;
  return value.ok() ? std::move(*value) : JsonValue();
}

// Runs a command line that must succeed, and returns its output.
std::string ok(const std::string& arguments) {
  const Ran ran = run_loom(arguments);
  EXPECT_EQ(ran.code, 0) << arguments << "\n" << ran.err;
  return ran.out;
}

std::string hash(const std::string& model, const std::string& dtype = "") {
  return ok("verify hash " + model + " --prompt-tokens 20" +
            (dtype.empty() ? "" : " --dtype " + dtype));
}

// A network that learned the sum of its inputs for a while, as NAME.entity and NAME.safetensors.
struct Trained {
  TempFolder folder;
  std::string entity, weights, data;

  explicit Trained(const std::string& dtype) {
    std::string table;
    for (int i = 0; i < 40; ++i) {
      const int a = i % 7, b = i % 5;
      table += std::to_string(a) + "," + std::to_string(b) + "," + std::to_string(a + b) + ".5\n";
    }
    data = folder.write("data.csv", table);
    entity = folder.path() + "/net.entity";
    weights = folder.path() + "/net.safetensors";
    const std::string net = folder.path() + "/net.json";
    ok("new mlp --in 2 --hidden 9 --out 1 -o " + net);
    for (const std::string& out : {entity, weights}) {
      ok("train " + net + " " + data +
         " --epochs 3 --normalize standard --no-target-scale --quiet --dtype " + dtype + " -o " +
         out);
    }
  }
};

// loss, accuracy and samples: what eval prints, without the speed.
std::string measured(const std::string& model, const std::string& data) {
  const std::string line = ok("eval " + model + " " + data);
  return line.substr(0, line.find(" samples,"));
}

// Without normalization, inputs from 0 to 1000 are far from the training data.
TEST(Files, TheNormalizationOfInputsGoesWhereverTheWeightsGo) {
  const TempFolder folder;
  const std::string p = folder.path();
  std::string table;
  for (int i = 0; i < 60; ++i) {
    const int a = i * 37 % 1000, b = i * 11 % 7;
    table += std::to_string(a) + "," + std::to_string(b) + "," + (a > 500 ? "up" : "down") + "\n";
  }
  const std::string data = folder.write("data.csv", table);
  ok("new mlp --in 2 --hidden 8 --out 2 -o " + p + "/d.json");
  ok("train " + p + "/d.json " + data + " --epochs 20 --normalize standard --quiet -o " + p +
     "/net.entity");
  const std::string want = measured(p + "/net.entity", data);
  for (const std::string& step : {std::string("net.onnx"), std::string("net.safetensors"),
                                  std::string("net.json --with-weights")}) {
    SCOPED_TRACE(step);
    const std::string file = p + "/" + step.substr(0, step.find(' '));
    EXPECT_THAT(run_loom("convert " + p + "/net.entity " + p + "/" + step).err, IsEmpty());
    ok("convert " + file + " " + p + "/back.entity --force --quiet");
    EXPECT_EQ(measured(p + "/back.entity", data), want);
    EXPECT_EQ(run_loom("diff " + p + "/net.entity " + p + "/back.entity").code, 0);
  }
}

TEST(Files, DiffSeesAnotherNormalizationOfInputs) {
  const Trained t("float32");
  const std::string p = t.folder.path();
  ok("convert " + t.entity + " " + p + "/full.json --with-weights --quiet");
  EXPECT_EQ(run_loom("diff --parameters " + t.entity + " " + p + "/full.json").code, 0);
  std::string text = t.folder.read("full.json");
  const size_t from = text.find(",\n  \"normalization\""), to = text.find(",\n  \"params\"");
  ASSERT_LT(from, to);
  text.erase(from, to - from);
  const std::string without = t.folder.write("without.json", text);
  const Ran ran = run_loom("diff --parameters " + t.entity + " " + without);
  EXPECT_EQ(ran.code, 5);
  EXPECT_THAT(ran.out, HasSubstr("input/shift"));
}

// Equal shapes, other weights: nothing that a format keeps may make them equal.
TEST(Files, DiffTellsTwoNetworksApartInEveryPairOfFormats) {
  const Trained t("float32");
  const std::string p = t.folder.path();
  ok("train " + p + "/net.json " + t.data +
     " --seed 2 --epochs 3 --normalize standard --quiet -o " + p + "/other.entity");
  for (const std::string name : {"entity", "safetensors", "npz", "json", "onnx"}) {
    SCOPED_TRACE(name);
    ok("convert " + t.entity + " " + p + "/same." + name + " --with-weights --force --quiet");
    ok("convert " + p + "/other.entity " + p + "/apart." + name +
       " --with-weights --force --quiet");
    for (const char* how : {"", " --parameters"}) {
      EXPECT_EQ(run_loom("diff " + t.entity + " " + p + "/same." + name + how).code, 0);
      EXPECT_EQ(run_loom("diff " + t.entity + " " + p + "/apart." + name + how).code, 5);
      EXPECT_EQ(run_loom("diff " + p + "/apart." + name + " " + t.entity + how).code, 5);
    }
  }
}

// Each with its note about lost data, in one line.
TEST(Files, ConvertSaysWhatAFormatHasNoPlaceFor) {
  const Trained t("float32");
  const std::string p = t.folder.path();
  const auto notes = [&](const std::string& to) {
    return run_loom("convert " + t.entity + " " + p + "/" + to).err;
  };
  EXPECT_EQ(notes("net.npz"), "");
  EXPECT_EQ(notes("net.onnx"), "");
  EXPECT_EQ(notes("all.json --with-weights"), "");
  EXPECT_EQ(
      notes("bare.json"),
      "[left out, as .json without --with-weights has no place for it: the weights, the loss, "
      "the names of classes and of columns, the normalization of inputs]\n");
  const std::string run = p + "/run.entity";
  ok("train " + p + "/net.json " + t.data + " --epochs 1 --quiet --checkpoint " + run);
  EXPECT_EQ(run_loom("convert " + run + " " + p + "/run.onnx").err,
            "[left out, as .onnx has no place for it: the state of training]\n");
}

TEST(Files, TheStoryModelIsOneFileOfLessThanTwoMegabytes) {
  EXPECT_LT(std::filesystem::file_size(kEntity), 2'000'000u);
  const std::string line = " -p 'Once upon a time' --max-tokens 40";
  EXPECT_EQ(ok("run " + kEntity + line), ok("run " + kFolder + line + " --dtype q8_0"));
  EXPECT_EQ(hash(kEntity), hash(kFolder, "q8_0"));
  EXPECT_THAT(ok("info " + kEntity + " --verify"), HasSubstr("blobs match their hashes"));
  EXPECT_EQ(ok("tokenize " + kEntity + " 'Once upon a time'"), "540 541 261 446\n");
}

TEST(Files, AModelHasTheSameBitsInEveryFormat) {
  const TempFolder folder;
  const std::string p = folder.path();
  for (const char* dtype : {"bf16", "q8_0", "q4_0"}) {
    const std::string entity = p + "/" + dtype + ".entity", gguf = p + "/" + dtype + ".gguf";
    ok("convert " + kFolder + " " + entity + " --quiet --dtype " + dtype);
    ok("convert " + entity + " " + gguf + " --quiet");
    ok("convert " + gguf + " " + p + "/back.entity --quiet --force");
    EXPECT_EQ(hash(entity), hash(kFolder, dtype)) << dtype;
    EXPECT_EQ(hash(gguf), hash(entity)) << dtype;
    EXPECT_EQ(hash(p + "/back.entity"), hash(entity)) << dtype;
    EXPECT_EQ(run_loom("diff " + gguf + " " + entity).code, 0) << dtype;
  }
  ok("convert " + p + "/bf16.entity " + p + "/folder --quiet");
  EXPECT_EQ(hash(p + "/folder"), hash(kFolder));
  ok("convert " + p + "/bf16.entity " + p + "/again.entity --quiet");
  EXPECT_TRUE(folder.read("again.entity") == folder.read("bf16.entity"));
}

TEST(Files, QuantizeReportsWhatEveryTensorLost) {
  const TempFolder folder;
  const std::string out = folder.path() + "/small.entity";
  const JsonValue report = parse(
      ok("quantize " + kFolder + " " + out + " --dtype int4 --rule '*/q=int8' --json --quiet"));
  const std::vector<JsonValue>& tensors = report.find("tensors")->elements();
  ASSERT_EQ(tensors.size(), 38u);
  for (const JsonValue& t : tensors) {
    const std::string to = t.find("to")->text(), path = t.find("path")->text();
    const double error = t.find("error")->as_double("").value();
    const double cosine = t.find("cosine")->as_double("").value();
    SCOPED_TRACE(path + " as " + to);
    EXPECT_EQ(to == "int8", path.ends_with("/q"));
    EXPECT_EQ(error > 0, to != "float32");
    EXPECT_GT(cosine, to == "int4" ? 0.98 : 0.9999);
    EXPECT_LE(t.find("bytes_to")->as_int("").value(), t.find("bytes_from")->as_int("").value());
  }
  EXPECT_EQ(static_cast<uintmax_t>(report.find("bytes")->as_int("").value()),
            std::filesystem::file_size(out));
}

TEST(Files, CalibrationLowersThePerplexityOfFewBits) {
  const TempFolder folder;
  const std::string p = folder.path();
  std::string story;
  for (int i = 0; i < 8; ++i)
    story += ok("run " + kEntity +
                " -p 'Tom had a red ball.' --max-tokens 150 --temperature 0.9 "
                "--seed " +
                std::to_string(i));
  const std::string text = folder.write("text", story);
  const auto perplexity = [&](const std::string& model) {
    const JsonValue json =
        parse(ok("perplexity " + p + model + " " + text + " --window 128 --json"));
    const JsonValue& row = json.is_array() ? json.elements().at(0) : json;
    return row.find("perplexity")->as_double("").value();
  };
  // Types whose rounding does harm. int4 stays within 1 % of float32 on this model, with ranges
  // fitted or not, so which of the two is better there is chance.
  for (const auto& [dtype, share] : {std::pair{"uint2", 0.5}, {"ternary", 1.0}, {"uint4", 1.0}}) {
    const std::string to = ".entity --quiet --force --dtype " + std::string(dtype);
    ok("quantize " + kFolder + " " + p + "/plain" + to);
    ok("quantize " + kFolder + " " + p + "/fitted" + to + " --calibrate " + text);
    EXPECT_LT(perplexity("/fitted.entity"), share * perplexity("/plain.entity")) << dtype;
  }
}

TEST(Files, DiffTellsEqualFromDifferent) {
  const TempFolder folder;
  EXPECT_EQ(run_loom("diff " + kEntity + " " + kEntity).code, 0);
  const Ran other = run_loom("diff " + kFolder + " " + kEntity);
  EXPECT_EQ(other.code, 5);
  EXPECT_THAT(other.out, HasSubstr("9 of 38 tensors are equal"));
  const JsonValue json = parse(run_loom("diff " + kFolder + " " + kEntity + " --json").out);
  EXPECT_EQ(json.find("equal")->as_int("").value(), 9);
  const JsonValue& q = json.find("list")->elements()[2];
  EXPECT_GT(q.find("different")->as_int("").value(), 0);
  EXPECT_GT(q.find("cosine")->as_double("").value(), 0.9999);
  EXPECT_EQ(run_loom("diff " + kEntity + " /no/such/file").code, 3);
}

TEST(Files, TrainedNetworksGoThroughEveryFormat) {
  for (const char* dtype : {"float32", "int8", "ternary"}) {
    SCOPED_TRACE(dtype);
    const Trained t(dtype);
    const std::string p = t.folder.path();
    const auto eval = [&](const std::string& file) {
      const JsonValue json = parse(ok("eval " + file + " " + t.data + " --json"));
      return dump_json(*json.find("loss"));
    };
    EXPECT_EQ(eval(t.entity), eval(t.weights));
    ok("convert " + t.weights + " " + p + "/same.entity --quiet");
    EXPECT_TRUE(t.folder.read("same.entity") == t.folder.read("net.entity"));
    ok("convert " + t.entity + " " + p + "/back.safetensors --quiet");
    EXPECT_EQ(run_loom("diff " + p + "/back.safetensors " + t.entity).code, 0);
    ok("convert " + t.entity + " " + p + "/net.onnx --quiet");
    EXPECT_EQ(run_loom("diff " + p + "/net.onnx " + t.entity + " --parameters").code, 0);
    ok("convert " + t.entity + " " + p + "/net.npz --quiet");
    ok("convert " + t.entity + " " + p + "/net2.json --quiet");
    EXPECT_TRUE(t.folder.read("net2.json") == t.folder.read("net.json"));
    ok("convert " + t.entity + " " + p + "/whole.json --with-weights --quiet");
    ok("convert " + p + "/whole.json " + p + "/again.json --with-weights --quiet");
    EXPECT_TRUE(t.folder.read("again.json") == t.folder.read("whole.json"));
    EXPECT_EQ(run_loom("diff " + p + "/whole.json " + t.entity + " --parameters").code, 0);
    const std::string tree = ok("info " + t.entity);
    EXPECT_THAT(tree, HasSubstr("(0, 0, 0, 0)   Dense"));
    EXPECT_THAT(tree, HasSubstr(dtype));
  }
}

TEST(Files, CheckpointsAreEntitiesTooAndConvertBothWays) {
  for (const char* how :
       {"--dtype int8", "--dtype float32 --optimizer adam", "--dtype int8 --native"}) {
    SCOPED_TRACE(how);
    const Trained t("float32");
    const std::string p = t.folder.path() + "/";
    const auto train = [&](const std::string& more) {
      ok("train " + p + "net.json " + t.data + " --quiet --schedule constant " + how + " " + more);
    };
    train("--epochs 5 -o " + p + "straight.entity");
    train("--epochs 2 --checkpoint " + p + "run.entity");
    ok("convert " + p + "run.entity " + p + "again.entity --quiet");
    EXPECT_TRUE(t.folder.read("again.entity") == t.folder.read("run.entity"));
    EXPECT_THAT(ok("eval " + p + "run.entity " + t.data), HasSubstr("loss"));
    ok("convert " + p + "run.entity " + p + "run.safetensors --quiet");
    train("--epochs 5 --checkpoint " + p + "run.entity --resume -o " + p + "resumed.entity");
    EXPECT_TRUE(t.folder.read("resumed.entity") == t.folder.read("straight.entity"));
    train("--epochs 5 --checkpoint " + p + "run.safetensors --resume -o " + p + "other.entity");
    EXPECT_TRUE(t.folder.read("other.entity") == t.folder.read("straight.entity"));
    // The hashes reveal a damaged checkpoint; the previous one replaces it.
    std::fstream(p + "run.entity", std::ios::in | std::ios::out | std::ios::binary)
        .seekp(-3, std::ios::end)
        .put('\x5a');
    const Ran ran =
        run_loom("train " + p + "net.json " + t.data + " " + how +
                 " --schedule constant --epochs 6 --checkpoint " + p + "run.entity --resume");
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(ran.err, HasSubstr("run.entity.previous: 4 epochs are done"));
  }
}

TEST(Files, NothingIsReplacedUnasked) {
  const TempFolder folder;
  const std::string out = folder.write("x.entity", "mine");
  const Ran ran = run_loom("convert " + kEntity + " " + out);
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("--force replaces it"));
  EXPECT_EQ(folder.read("x.entity"), "mine");
  ok("convert " + kEntity + " " + out + " --force --quiet");
  EXPECT_EQ(hash(out), hash(kEntity));
}

TEST(Files, ADamagedEntityIsRefusedWhenItsWeightsAreUsed) {
  const TempFolder folder;
  const std::string path = folder.path() + "/x.entity";
  std::filesystem::copy_file(kEntity, path);
  const auto flip = [&](std::streamoff at) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(at);
    file.put('\x5a');
  };
  flip(1'500'000);
  for (const std::string& line : {"run " + path + " -p x", "info " + path + " --verify",
                                  "convert " + path + " " + folder.path() + "/y.gguf"}) {
    const Ran ran = run_loom(line);
    EXPECT_EQ(ran.code, 3) << line;
    EXPECT_THAT(ran.err, HasSubstr("does not match its hash")) << line;
  }
  flip(100);
  EXPECT_THAT(run_loom("info " + path).err, HasSubstr("the header does not match its hash"));
  std::filesystem::resize_file(path, 1000);
  EXPECT_THAT(run_loom("info " + path).err, HasSubstr("it is cut short"));
}

TEST(Files, EveryKindHoldsInAnyNumberType) {
  const std::string table =
      ok("verify files --kind GRU --dtypes float64,int4,binary,mxfp4 --quiet");
  EXPECT_THAT(table, HasSubstr("4 of 4 hold"));
  EXPECT_EQ(run_loom("verify files --kind Denser").code, 2);
}

TEST(Files, WhatCannotBeWrittenIsSaid) {
  const TempFolder folder;
  struct Case {
    std::string line;
    int code;
    const char* says;
  };
  const std::string p = folder.path();
  const Case cases[] = {
      {"convert " + kEntity + " " + p + "/x.onnx", 4, "choose .entity, .json, .gguf"},
      {"convert " + kEntity + " " + p + "/x.gguf --dtype int8", 4, "int8"},
      {"convert " + kEntity + " /no/such/folder/x.entity", 2, "the folder for it does not exist"},
      {"convert " + p + "/none " + p + "/x.entity", 3, "no such file or folder"},
      {"convert " + kEntity + " " + p + "/x.entity --dtype q3", 2, "unknown dtype"},
      {"convert " + kEntity + " " + p + "/x.entity --rule q=", 2, "unknown dtype"},
      {"convert " + kEntity + " " + p + "/x.entity --rule int8", 2, "PATTERN=DTYPE"},
      {"convert -o " + p + "/x.entity", 2, "--shape"},
      {"quantize " + kEntity + " " + p + "/x.entity", 2, "--dtype"},
      {"info " + folder.write("text", "hello"), 3, "is not a model that can be opened"},
  };
  for (const Case& c : cases) {
    const Ran ran = run_loom(c.line);
    SCOPED_TRACE(c.line + " -> " + ran.err);
    EXPECT_EQ(ran.code, c.code);
    EXPECT_THAT(ran.err, HasSubstr(c.says));
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1);
    EXPECT_THAT(ran.out, IsEmpty());
  }
}

TEST(Files, AFileOfTheOriginalBecomesOneOfOurs) {
  const TempFolder folder;
  // A Dense of the original, 2 -> 1: weights 1 and 2 as f32, no bias.
  const std::string in = folder.write("old.json", R"({"id": "network", "depth": 1, "rows": 1,
    "cols": 1, "layers_per_cell": 1, "layers": [{"z": 0, "y": 0, "x": 0, "l": 0, "type": "Dense",
    "activation": "Linear", "dtype": "Float32", "input_height": 2, "output_height": 1,
    "weights": "AACAPwAAAEA=", "scale": 1}]})");
  const Ran ran = run_loom("convert " + in + " " + folder.path() + "/new.entity");
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ok("info " + folder.path() + "/new.entity"), HasSubstr("Dense"));
}

}  // namespace
}  // namespace loom::core::test
