// Error messages: for every command the common mistakes, each with its exit code and its exact line
// on stderr. docs/reference/program.md has the codes.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <future>

#include "dtype/dtype.hpp"
#include "e2e/program.hpp"
#include "e2e/signalled.hpp"
#include "support/paths.hpp"

namespace loom::core::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::StartsWith;

const std::string kStoriesFolder = loom_test::source_path("tests/data/stories");
const std::string kStoriesFile = loom_test::source_path("models/stories.entity");

// The end of lists of number types while new types are in development.
std::string unreleased_dtypes() {
  std::string names;
  for (const DTypeInfo& info : dtype_table()) {
    if (!released(info.dtype)) names += ", " + std::string(info.name);
  }
  return names;
}

enum Code { kDone, kFailed, kUsage, kBadFile, kUnsupported, kMismatch };

struct Case {
  std::string arguments;
  int code;
  std::string line;  // after "loom: "
};

// In arguments and lines: $S is the story model as a folder, $E as a file, $T the test's folder.
class Messages : public testing::Test {
 protected:
  void SetUp() override {
    csv_ = folder_.write("d.csv", "1,2,0\n2,1,1\n1,1,2\n2,2,0\n");
    ASSERT_EQ(run_loom(named("new mlp --in 2 --hidden 4 --out 3 -o $T/net.json")).code, 0);
  }
  std::string named(std::string text) const {
    const std::pair<std::string, std::string> names[] = {
        {"$S", kStoriesFolder}, {"$E", kStoriesFile}, {"$T", folder_.path()}};
    for (const auto& [name, path] : names) {
      for (size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += path.size())
        text.replace(at, name.size(), path);
    }
    return text;
  }
  void expect(const Case& c) const {
    const Ran ran = run_loom(named(c.arguments));
    EXPECT_EQ(ran.err, "loom: " + named(c.line) + "\n") << c.arguments;
    EXPECT_EQ(ran.code, c.code) << c.arguments;
    EXPECT_THAT(ran.out, IsEmpty()) << c.arguments;
  }
  template <size_t N>
  void expect_all(const Case (&cases)[N]) const {
    for (const Case& c : cases) expect(c);
  }

  TempFolder folder_;
  std::string csv_;
};

TEST_F(Messages, OfALineThatIsWrong) {
  const Case cases[] = {
      {"rum", kUsage, "there is no command 'loom rum'; did you mean 'run'?; see loom --help"},
      {"xyzzy", kUsage, "there is no command 'loom xyzzy'; see loom --help"},
      {"help rum", kUsage, "there is no command 'loom rum'; did you mean 'run'?; see loom --help"},
      {"bench lm", kUsage,
       "there is no command 'loom bench lm'; did you mean 'llm'?; see loom bench --help"},
      {"verify", kUsage,
       "loom verify: a command has to follow, one of hash, training, files, proof; see loom verify "
       "--help"},
      {"run", kUsage, "MODEL is required; see loom run --help"},
      {"convert $E", kUsage, "OUT is required; see loom convert --help"},
      {"quantize a b --dtyp q4_0", kUsage,
       "there is no option --dtyp; did you mean '--dtype'?; see loom quantize --help"},
      {"run $S x -p y", kUsage, "TEXT excludes --prompt: give one of them; see loom run --help"},
      {"run $S x y", kUsage,
       "'y' is one argument too many; a text of several words needs quotes; see loom run --help"},
      {"run $S -p", kUsage, "--prompt: a value has to follow; see loom run --help"},
      {"run $S -p x -p y", kUsage, "--prompt: is given twice; see loom run --help"},
      {"run $S -p x -f y", kUsage,
       "--prompt excludes --file: give one of them; see loom run --help"},
      {"train a b --resume", kUsage,
       "--resume requires --checkpoint; give both; see loom train --help"},
      {"run $S -p x --json=maybe", kUsage, "--json: takes no value; see loom run --help"},
      {"run $S -p x --max-tokens abc", kUsage, "--max-tokens is abc, must be an integer"},
      {"run $S -p x --max-tokens 1.5", kUsage, "--max-tokens is 1.5, must be an integer"},
      {"run $S -p x --max-tokens -1", kUsage, "--max-tokens is -1, must be 0 or more"},
      {"run $S -p x --max-tokens 99999999999999999999", kUsage,
       "--max-tokens is 99999999999999999999, must be at most 9223372036854775807"},
      {"run $S -p x --chunk 2000000", kUsage,
       "--chunk: must be from 0 to 1048576, not 2000000; see loom run --help"},
      {"run $S -p x --temperature warm", kUsage, "--temperature is warm, must be a number"},
      {"train a b --rate nan", kUsage, "--rate is nan, must be 0 or more"},
      {"new mlp --hidden 8,x", kUsage,
       "--hidden: must be an integer, not 'x'; see loom new mlp --help"},
      {"run $S -p x --dtype q3", kUsage,
       std::string("unknown dtype 'q3'; choose from ") +
           "float64, float32, float16, bfloat16, fp8e4m3, fp8e5m2, "
           "int64, int32, int16, int8, uint64, uint32, uint16, uint8, int4, uint4, fp4, int2, "
           "uint2, ternary, binary, nf4, e3m0, q4_0, q8_0, mxfp4, nvfp4, q2_k, q3_k, q4_k, "
           "q5_k, q6_k, q4_1, q5_0, q5_1, uint4_g64, uint4_g128" +
           unreleased_dtypes()},
      {"run $S -p x --device tpu", kUsage,
       "unknown device 'tpu'; choose from cpu, gpu; did you mean 'cpu'?"},
      {"bench llm --shape huge", kUsage,
       "unknown shape 'huge'; known are smollm2-135m, smollm2-360m, qwen2.5-0.5b, llama-3.2-1b, "
       "smollm2-1.7b, llama-3.2-3b, llama-3.1-8b, shakespeare, tiny"},
  };
  expect_all(cases);
}

TEST_F(Messages, HelpAndVersionAreWordsToo) {
  EXPECT_EQ(run_loom("help").out, run_loom("--help").out);
  EXPECT_EQ(run_loom("help run").out, run_loom("run --help").out);
  EXPECT_EQ(run_loom("help bench llm").out, run_loom("bench llm --help").out);
  EXPECT_EQ(run_loom("version").out, run_loom("--version").out);
  for (const char* line : {"help", "help run", "help bench llm", "version"})
    EXPECT_EQ(run_loom(line).code, kDone) << line;
}

TEST_F(Messages, WordsMayBeInCapitals) {
  const char* lines[] = {
      "run $S -p x --max-tokens 1 --isa SCALAR --activations Q8 --device CPU --dtype Q8_0",
      "train $T/net.json $T/d.csv --epochs 1 --quiet --optimizer Adam --schedule Cosine "
      "--loss SoftMax_CE --clip Norm:1 --normalize Standard --dtype F32",
      "new mlp --activation ReLU",
      "verify hash --shape TINY --prompt-tokens 3 --dtype F32",
      "verify training --kind lstm --steps 1",
      "bench layers --suite PEER --filter 1x512x512 --modes Single --dtypes FLOAT32 --seconds 0.01",
  };
  for (const char* line : lines) {
    const Ran ran = run_loom(named(line));
    EXPECT_EQ(ran.code, kDone) << line << "\n" << ran.err;
  }
  EXPECT_EQ(run_loom("new mlp --activation ReLU").out, run_loom("new mlp --activation relu").out);
}

TEST_F(Messages, OfModelsThatAreNotWhatTheyShouldBe) {
  folder_.write("damaged.entity", "not an entity");
  folder_.write("damaged.gguf", "not a gguf");
  folder_.write("notes.txt", "hello");
  const std::string give = "give an .entity or .gguf file, or a folder with config.json";
  const std::string readable =
      "give an .entity, .gguf, .onnx, .tflite, .safetensors, .pt, .npz or .json file, or a folder "
      "with "
      "config.json";
  const Case cases[] = {
      {"run $T/none.entity -p x", kBadFile,
       "$T/none.entity: no such file or folder; " + give + " and model.safetensors"},
      {"run $T/none -p x", kBadFile,
       "$T/none: no such file or folder; " + give + " and model.safetensors"},
      {"run $T/damaged.entity -p x", kBadFile,
       "$T/damaged.entity: at byte 0: is damaged: an .entity file begins with ENTITY and two zero "
       "bytes"},
      {"run $T/damaged.gguf -p x", kBadFile,
       "$T/damaged.gguf: at byte 0: is damaged: a GGUF file begins with 'GGUF'"},
      {"run $T/notes.txt -p x", kBadFile, "$T/notes.txt: is not a language model; " + give},
      {"run $S/config.json -p x", kBadFile,
       "$S/config.json: is one file of a model; give the folder that holds it: $S/"},
      {"convert $T/net.json $T/n.npz --context 0", kUsage, "--context is 0, must be 1 to 16777216"},
      {"info $S/config.json", kBadFile,
       "$S/config.json: describes a model next to its weights; give the folder that holds it: $S/"},
      {"quantize $S $T/x.entity", kUsage, "give --dtype, --recipe or --target-bits; see --help"},
      {"quantize $S $T/x.entity --dtype q4_0 --calibrate $T/none", kBadFile,
       "$T/none: no such file; --calibrate takes a text for the model to read"},
      {"run $T -p x", kBadFile,
       "$T: config.json is missing; a model folder has config.json, tokenizer.json and "
       "model.safetensors"},
      {"tokenize $T/none x", kBadFile,
       "$T/none: no such file; give an .entity or .gguf file, a model folder with tokenizer.json, "
       "or that file"},
      {"perplexity $S $T/none", kBadFile, "$T/none: cannot open: No such file or directory"},
      {"run $S -f $T", kBadFile, "$T: this is a folder, not a file"},
      {"train $T/none.json $T/d.csv", kBadFile,
       "$T/none.json: no such file or folder; " + readable + " and model.safetensors"},
      {"eval $T/none.entity $T/d.csv", kBadFile,
       "$T/none.entity: no such file or folder; " + readable + " and model.safetensors"},
      {"verify hash $T/none", kBadFile,
       "$T/none: no such file or folder; " + give + " and model.safetensors"},
  };
  expect_all(cases);
}

TEST_F(Messages, OfWhatAChatIsGiven) {
  folder_.write("tools.json", "{}");
  const Case cases[] = {
      {"run $E -p x --tools $T/tools.json", kUsage,
       "--tools, --template-arg and --no-thinking are for a chat; add --chat"},
      {"run $E --chat -p x --template-arg mood", kUsage,
       "--template-arg needs NAME=VALUE, not mood"},
      {"run $E --chat -p x --tools $T/tools.json", kUsage,
       "tools: must be a JSON array, not an object"},
      {"run $E --chat -p x --template-arg messages=1", kUsage,
       "the template variable 'messages' is set by the conversation; choose another name"},
  };
  for (const Case& c : cases) expect(c);
}

// A copy of the story model with one file replaced.
std::string story_with(const TempFolder& folder, const std::string& file, const std::string& text) {
  const std::string path = folder.path() + "/model";
  std::filesystem::copy(kStoriesFolder, path);
  std::filesystem::remove(path + "/chat_template.jinja");
  std::ofstream(path + "/" + file, std::ios::binary | std::ios::trunc) << text;
  return path;
}

TEST(ChatTemplates, ThatCannotBeUsedAreExplained) {
  struct Row {
    std::string file, text, problem;
  };
  const Row rows[] = {
      {"tokenizer_config.json", "{}", "it has no chat template"},
      {"chat_template.jinja", "{% include 'x' %}",
       "its chat template cannot be used: at byte 3: the tag 'include' is not supported"},
      {"tokenizer_config.json",
       R"({"chat_template": [{"name": "rag", "template": "x"},
           {"name": "tool_use", "template": "y"}]})",
       "its chat templates are called 'rag', 'tool_use'; the one that is used must be called "
       "'default'"},
  };
  for (const Row& row : rows) {
    const TempFolder folder;
    const std::string model = story_with(folder, row.file, row.text);
    const Ran ran = run_loom("run " + model + " --chat -p Hello");
    EXPECT_EQ(ran.err, "loom: " + model + ": this model cannot chat: " + row.problem +
                           "; give it plain text\n");
    EXPECT_EQ(ran.code, kUnsupported);
  }
}

// The turns of a chat are plain, so a template that fails is damaged; one that needs more than Loom
// supports is unsupported.
TEST(ChatTemplates, ThatAreDamagedAreBadFiles) {
  const std::pair<const char*, int> rows[] = {{"{% if x", kBadFile},
                                              {"{{ x", kBadFile},
                                              {"{{ 'a' + 1 }}", kBadFile},
                                              {"{{ nothing.x }}", kBadFile},
                                              {"{% nonsense %}", kUnsupported},
                                              {"{{ 'x' | urlize }}", kUnsupported},
                                              {"{{ messages[0].content }}", kDone}};
  for (const auto& [text, code] : rows) {
    const TempFolder folder;
    const std::string model = story_with(folder, "chat_template.jinja", text);
    const Ran ran = run_loom("run " + model + " --chat -p Hello --max-tokens 1");
    EXPECT_EQ(ran.code, code) << text << ": " << ran.err;
  }
}

TEST(ChatTemplates, OfAListTheOneCalledDefaultIsTaken) {
  const TempFolder folder;
  const std::string model =
      story_with(folder, "tokenizer_config.json",
                 R"({"chat_template": [{"name": "rag", "template": "{% macro m() %}"},
          {"name": "default", "template": "{{ messages[0].content }}"}]})");
  const Ran ran = run_loom("run " + model + " --chat -p 'Once upon a time' --max-tokens 3");
  EXPECT_EQ(ran.code, kDone) << ran.err;
}

// One key of metadata more than none: split.count, u16, of 3; split.no, u16, 1.
TEST_F(Messages, OfAPartOfASplitGguf) {
  const auto key = [](const std::string& name, char value) {
    return std::string(1, static_cast<char>(name.size())) + std::string(7, '\0') + name +
           std::string("\x02\0\0\0", 4) + value + std::string(1, '\0');
  };
  folder_.write("part.gguf", std::string("GGUF\x03\0\0\0", 8) + std::string(8, '\0') +
                                 std::string("\x02\0\0\0\0\0\0\0", 8) + key("split.no", 1) +
                                 key("split.count", 3));
  const std::string line =
      "$T/part.gguf: is part 2 of 3 of a model; join them first: llama-gguf-split --merge "
      "FIRST_PART OUT";
  expect({"run $T/part.gguf -p x", kUnsupported, line});
  expect({"info $T/part.gguf", kUnsupported, line});
  expect({"convert $T/part.gguf $T/whole.entity", kUnsupported, line});
}

TEST_F(Messages, OfWhatThisMachineCannotDo) {
  const Ran isa = run_loom(named("run $S -p x --isa mmx"));
  EXPECT_EQ(isa.code, kUnsupported);
  EXPECT_THAT(isa.err, StartsWith("loom: instruction set 'mmx' is not available here; choose from "
                                  "scalar"));
  for (const char* command :
       {"run $S -p x --device gpu", "bench gpu", "train $T/net.json $T/d.csv --device gpu"}) {
    const Ran ran = run_loom(named(command) + " --gpu-library /no/lib.so");
    EXPECT_EQ(ran.code, kUnsupported) << command;
    EXPECT_THAT(ran.err, StartsWith("loom: no WebGPU library: /no/lib.so: ")) << command;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  }
}

TEST_F(Messages, ALibraryThatPrintsByItselfDoesNotSpeakBetweenOurLines) {
  const std::string& noisy = loom_test::noisy_library_path();
  expect({"run $S -p x --device gpu --gpu-library " + noisy, kUnsupported,
          noisy +
              ": no function wgpuCreateInstance; it is not a webgpu.h library, or an old one (the "
              "library "
              "says: Warning: no driver here)"});
}

TEST_F(Messages, AFullContextIsNoWrongLine) {
  expect({"run $S -p 'Once upon a time' --context 3", kFailed,
          "the context is full: the text has 4 tokens, 3 have room; begin again with less text, or "
          "give more with --context"});
  // The first question fits, the second does not.
  const Ran chat = run_loom(named("run $S --chat --context 40 --max-tokens 12 --on-full stop"), "",
                            "Tell me a story.\nAnd then? And then? And then? And then?\n");
  EXPECT_EQ(chat.code, kFailed);
  EXPECT_THAT(chat.err, MatchesRegex("loom: the context is full: the text has [0-9]+ tokens, 40 "
                                     "have room; .*\n"));
}

// A terminal would obey control characters in a file name.
TEST_F(Messages, ControlCharactersOfNamesAreWrittenOut) {
  const Ran ran = run_loom(named("run $T/$(printf 'a\\033[31mb\\302\\233c\\n') -p x"));
  EXPECT_THAT(ran.err, StartsWith(named("loom: $T/a\\x1b[31mb\\xc2\\x9bc: no such file")));
  EXPECT_EQ(ran.err.find('\033'), std::string::npos);
  const std::string red = folder_.path() + "/a\033[31m.entity";
  std::filesystem::copy_file(kStoriesFile, red);
  EXPECT_EQ(run_loom("info '" + red + "'").out.find('\033'), std::string::npos);
  EXPECT_EQ(run_loom("convert '" + red + "' '" + red + "2.entity'").out.find('\033'),
            std::string::npos);
}

TEST_F(Messages, OutputsAreCheckedBeforeTheWork) {
  folder_.write("file", "mine");
  std::filesystem::create_directory(folder_.path() + "/folder.entity");
  std::filesystem::create_hard_link(csv_, folder_.path() + "/hard.csv");
  std::filesystem::create_symlink(csv_, folder_.path() + "/soft.csv");
  const std::string train = "train $T/net.json $T/d.csv --epochs 100000000 ";
  const std::string no_folder = ": the folder for it does not exist; make it first";
  std::vector<Case> cases = {
      {train + "-o $T/folder.entity", kUsage,
       "$T/folder.entity: this is a folder; give the name of a file"},
      {train + "-o $T/w.json", kUsage,
       "$T/w.json: -o writes trained weights; give a name with .entity or .safetensors"},
      {train + "--plot $T/x.png", kUsage,
       "$T/x.png: --plot writes the loss curve as SVG; give a name with .svg"},
      {train + "--layer-stats $T/hard.csv", kUsage,
       "$T/hard.csv: --layer-stats would replace DATA, which is read; give another name"},
      {train + "--layer-stats $T/soft.csv", kUsage,
       "$T/soft.csv: --layer-stats would replace DATA, which is read; give another name"},
      {train + "--layer-stats $T/./d.csv", kUsage,
       "$T/./d.csv: --layer-stats would replace DATA, which is read; give another name"},
      {train + "-o $T/w.entity --best $T/../$(basename $T)/w.entity", kUsage,
       "$T/../$(basename $T)/w.entity: -o and --best name the same file; give two"},
      {"new mlp -o $T/nowhere/net.json", kUsage, "$T/nowhere/net.json" + no_folder},
      {"new mlp -o $T/net.txt", kUsage,
       "$T/net.txt: -o writes the description of a network as JSON; give a name with .json"},
      {"convert $E $T/nowhere/x.entity", kUsage, "$T/nowhere/x.entity" + no_folder},
      {"convert $E $T/x.txt", kUsage,
       "$T/x.txt: OUT writes a model; give a name with .entity, .gguf, .onnx, .safetensors, .npz, "
       ".json or no ending"},
      {"convert $E $T/file/x.entity", kUsage,
       "$T/file/x.entity: cannot create it: Not a directory"},
      {"convert $E $E", kUsage, "$E: exists already; --force replaces it"},
      {"convert $T/net.json $T/./net.json", kUsage,
       "$T/./net.json: exists already; --force replaces it"},
      {"quantize $E $T/x.onnx --dtype q4_0", kUsage,
       "$T/x.onnx: OUT writes packed weights; give a name with .entity or .gguf"},
      {"quantize $E $T/nowhere/x.entity --dtype q4_0", kUsage, "$T/nowhere/x.entity" + no_folder},
      {"verify files --folder $T/file", kUsage,
       "$T/file: no folder can be made there: there is a "
       "file"},
      {"verify files --reload $E --copy $T/x.txt", kUsage,
       "$T/x.txt: --copy writes the same network again; give a name with .entity"},
  };
  const std::pair<std::string, std::string> options[] = {{"-o", "x.entity"},
                                                         {"--best", "x.entity"},
                                                         {"--checkpoint", "x.entity"},
                                                         {"--plot", "x.svg"},
                                                         {"--layer-stats", "x.csv"}};
  for (const auto& [option, name] : options)
    cases.push_back(
        {train + option + " $T/nowhere/" + name, kUsage, "$T/nowhere/" + name + no_folder});
  for (Case& c : cases) {
    const std::string base = std::filesystem::path(folder_.path()).filename().string();
    const size_t at = c.line.find("$(basename $T)");
    if (at != std::string::npos) c.line.replace(at, 14, base);
    expect(c);
  }
  EXPECT_EQ(folder_.read("d.csv"), folder_.read("hard.csv"));
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
    EXPECT_EQ(entry.path().string().find(".tmp-"), std::string::npos) << entry.path();
}

// If the system refuses, the command line and the files are right: the program failed.
TEST_F(Messages, OfASystemThatRefuses) {
  if (geteuid() == 0) {
    // Root may write everywhere; /proc takes no new files from anybody.
    expect({"convert $E /proc/x.entity", kUsage,
            "/proc/x.entity: the folder for it does not exist; make it first"});
  } else {
    const std::string closed = folder_.path() + "/closed";
    std::filesystem::create_directory(closed);
    ASSERT_EQ(chmod(closed.c_str(), 0500), 0);
    expect({"convert $E $T/closed/x.entity", kFailed,
            "$T/closed/x.entity: cannot create it: Permission denied"});
    ASSERT_EQ(chmod(csv_.c_str(), 0), 0);
    expect({"train $T/net.json $T/d.csv", kFailed, "$T/d.csv: cannot open: Permission denied"});
  }
  // A limit on the size of files stands for a full disk.
  const Ran full = run_loom(named("convert $E $T/x.entity"), "ulimit -f 100;");
  EXPECT_EQ(full.code, kFailed) << full.err;
  EXPECT_EQ(full.err, named("loom: $T/x.entity: cannot write: File too large\n"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/x.entity"));
}

// ---- work is not lost ---------------------------------------------------------------------------

// Trains and takes the folder of the output away once the first epoch is done. The pipe holds few
// of the lines to come, so the training waits for its reader and ends when the folder is gone.
TEST_F(Messages, WeightsThatCannotBeSavedAreSavedElsewhere) {
  std::filesystem::create_directory(folder_.path() + "/out");
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
#ifdef F_SETPIPE_SZ
  ASSERT_GT(fcntl(ends[1], F_SETPIPE_SZ, 4096), 0);
#endif
  const std::string command = named("cd $T && '" + loom_test::program_path() +
                                    "' train net.json d.csv --epochs 300 -o out/w.entity --best "
                                    "out/b.safetensors 2>err >/dev/fd/" +
                                    std::to_string(ends[1]) + "; echo $? >code");
  auto trained = std::async(std::launch::async, [&] {
    const int status = std::system(command.c_str());
    close(ends[1]);
    return status;
  });
  char bytes[4096] = {};
  while (read(ends[0], bytes, 1) == 1 && bytes[0] != '\n') continue;
  std::filesystem::rename(folder_.path() + "/out", folder_.path() + "/gone");
  while (read(ends[0], bytes, sizeof bytes) > 0) continue;
  close(ends[0]);
  ASSERT_EQ(trained.get(), 0);
  EXPECT_EQ(folder_.read("code"), "1\n");
  EXPECT_THAT(folder_.read("err"),
              HasSubstr("out/w.entity: the folder for it does not exist; make it first; it is "
                        "saved as ./w.rescued.entity instead"));
  const Ran weights = run_loom(named("eval $T/w.rescued.entity $T/d.csv"));
  EXPECT_EQ(weights.code, kDone) << weights.err;
  const Ran best = run_loom(named("eval $T/b.rescued.safetensors $T/d.csv"));
  EXPECT_EQ(best.code, kDone) << best.err;
}

TEST_F(Messages, TrainingOutlivesTheReaderOfItsLines) {
  const std::string command =
      named("'" + loom_test::program_path() +
            "' train $T/net.json $T/d.csv --epochs 2000 -o $T/w.entity 2>$T/err | head "
            "-n 1 >/dev/null");
  ASSERT_EQ(std::system(command.c_str()), 0);
  // head is done long before the training is.
  EXPECT_TRUE(wait_until([&] { return std::filesystem::exists(folder_.path() + "/w.entity"); }));
  EXPECT_EQ(run_loom(named("eval $T/w.entity $T/d.csv")).code, kDone);
}

// ---- signals ------------------------------------------------------------------------------------

TEST_F(Messages, ASignalEndsWithItsOwnCodeAndLeavesNothing) {
  struct Row {
    int signal, code;
    const char* says;
  };
  const Row rows[] = {{SIGINT, 130, "interrupted"},
                      {SIGTERM, 143, "stopped by SIGTERM"},
                      {SIGHUP, 129, "stopped by SIGHUP"}};
  const std::string saved = named("$T/run.entity");
  for (const Row& row : rows) {
    std::filesystem::remove(saved);
    const Ran ran = signalled_loom(
        named("train $T/net.json $T/d.csv --epochs 100000000 --quiet --checkpoint $T/run.entity"),
        row.signal, [&](pid_t) { return std::filesystem::exists(saved); });
    EXPECT_EQ(ran.code, row.code) << row.says;
    EXPECT_THAT(ran.err, StartsWith(std::string("loom: ") + row.says + " in epoch "));
    EXPECT_THAT(ran.err, testing::EndsWith(" --checkpoint " + saved + " --resume\n"));
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      EXPECT_EQ(entry.path().string().find(".tmp-"), std::string::npos) << entry.path();
  }
}

}  // namespace
}  // namespace loom::core::test
