// Modelfiles: run, serve and info read them, and each mistake in one is a line.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>

#include "e2e/program.hpp"
#include "support/paths.hpp"

namespace loom::core::test {
namespace {

using testing::HasSubstr;

const std::string kStoryFile = loom_test::source_path("models/stories.entity");

class Modelfiles : public testing::Test {
 protected:
  // Runs a verb with a Modelfile of this text.
  Ran run(const std::string& verb, const std::string& text, const std::string& more = "",
          const std::string& input = "") {
    const std::string path = folder_.write("Modelfile", text);
    return run_loom(verb + " " + path + " " + more, "", input);
  }
  TempFolder folder_;
};

TEST_F(Modelfiles, TheirParametersAreOptionsThatTheLinePrecedes) {
  const std::string text = "# a comment\nFROM " + kStoryFile +
                           "\nparameter temperature 0.9\nPARAMETER seed 7\n"
                           "PARAMETER stop \"Lily\"\nPARAMETER stop Tom\nPARAMETER num_predict 9\n"
                           "PARAMETER num_ctx 64\nPARAMETER top_k 40\nPARAMETER repeat_last_n 0\n";
  const std::string flags =
      "-p Once --temperature 0.9 --seed 7 --stop Lily --stop Tom --context 64 "
      "--top-k 40 --repetition-penalty 1 ";
  const Ran file = run("run", text, "-p Once");
  EXPECT_EQ(file.code, 0) << file.err;
  EXPECT_EQ(file.out, run_loom("run " + kStoryFile + " " + flags + "--max-tokens 9").out);
  EXPECT_EQ(run("run", text, "-p Once --max-tokens 4").out,
            run_loom("run " + kStoryFile + " " + flags + "--max-tokens 4").out);
}

TEST_F(Modelfiles, TheirSystemTextAndMessagesBeginAChat) {
  const std::string text = "FROM " + kStoryFile +
                           "\nPARAMETER num_predict 5\nPARAMETER temperature 0\n"
                           "SYSTEM \"\"\"\nTell stories.\nShort ones.\"\"\"\n";
  const std::string flags = "--chat --temperature 0 --max-tokens 5 --quiet ";
  const std::string asked = "-p Hello --quiet";
  const Ran system = run("run", text, asked);
  EXPECT_EQ(system.code, 0) << system.err;
  EXPECT_EQ(system.out, run_loom("run " + kStoryFile + " " + flags +
                                 "-p Hello --system \"$(printf 'Tell stories.\\nShort ones.')\"")
                            .out);
  const std::string saved = folder_.path() + "/saved.json";
  const Ran told = run("run", text + "MESSAGE user Hi\nMESSAGE assistant Once upon a time.\n",
                       asked + " --save " + saved);
  EXPECT_EQ(told.code, 0) << told.err;
  const std::string chat = folder_.read("saved.json");
  EXPECT_THAT(chat, HasSubstr("\"content\": \"Once upon a time.\""));
  EXPECT_LT(chat.find("Once upon a time."), chat.find("Hello"));
}

TEST_F(Modelfiles, ATemplateIsInJinja) {
  const std::string text = "FROM " + kStoryFile +
                           "\nPARAMETER num_predict 4\nTEMPLATE \"\"\"{% for m in messages %}"
                           "{{ m.content }}{% endfor %}\"\"\"\n";
  const Ran templated = run("run", text, "-p 'Once upon a time' --quiet");
  EXPECT_EQ(templated.code, 0) << templated.err;
  EXPECT_EQ(templated.out, run_loom("run " + kStoryFile +
                                    " -p 'Once upon a time' --no-echo --max-tokens 4 --quiet")
                               .out);
}

TEST_F(Modelfiles, FromIsRelativeToTheFile) {
  std::filesystem::create_symlink(kStoryFile, folder_.path() + "/near.entity");
  const Ran info = run("info", "FROM ./near.entity\nLICENSE MIT\nPARAMETER top_p 0.5\n");
  EXPECT_EQ(info.code, 0) << info.err;
  for (const char* line : {"modelfile ", "parameter       top_p 0.5", "license         MIT",
                           "near.entity", "LlamaForCausalLM"})
    EXPECT_THAT(info.out, HasSubstr(line));
  EXPECT_THAT(run("info", "FROM ./near.entity\nPARAMETER stop a\n", "--json").out,
              HasSubstr("\"parameters\":{\"stop\":[\"a\"]}"));
}

TEST_F(Modelfiles, AMistakeInOneIsALineThatNamesIt) {
  const std::string from = "FROM " + kStoryFile + "\n";
  const std::pair<std::string, std::string> rows[] = {
      {"SYSTEM hello\n", "has no FROM; write FROM and a model"},
      {from + from, ":2: FROM is there twice"},
      {from + "SYSTM hello\n", ":2: there is no instruction SYSTM; did you mean 'SYSTEM'?"},
      {from + "\nPARAMETER temprature 1\n",
       ":3: there is no PARAMETER temprature; did you mean 'temperature'?"},
      {from + "PARAMETER temperature hot\n", ":2: PARAMETER temperature must be a number"},
      {from + "PARAMETER top_k 1.5\n", ":2: PARAMETER top_k must be an integer, not '1.5'"},
      {from + "PARAMETER top_p 2\n", ":2: PARAMETER top_p is 2, must be"},
      {from + "PARAMETER num_ctx 0\n", ":2: PARAMETER num_ctx must be 1 or more, not 0"},
      {from + "PARAMETER seed 1\nPARAMETER seed 2\n", ":3: PARAMETER seed is there twice"},
      {from + "PARAMETER num_gpu 1\n", ":2: PARAMETER num_gpu is not supported: --device"},
      {from + "PARAMETER tfs_z 1\n", ":2: PARAMETER tfs_z is not supported: Ollama removed it"},
      {from + "ADAPTER ./a.gguf\n", ":2: ADAPTER is not supported: adapters are not supported"},
      {from + "TEMPLATE \"\"\"{{ if .System }}{{ .System }}{{ end }}\"\"\"\n",
       ":2: TEMPLATE is in Go's language, and Loom reads Jinja"},
      {from + "SYSTEM \"\"\"no end\n", ":2: a text that begins with \"\"\" has no"},
      {from + "MESSAGE assistant Hi\n", ":2: MESSAGE assistant: messages of user and assistant"},
      {from + "MESSAGE user Hi\n", "the last MESSAGE is of user"},
      {from + "MESSAGE robot Hi\n", ":2: MESSAGE needs a role"},
      {"FROM ./nothing.gguf\n", "./nothing.gguf: "},
  };
  for (const auto& [text, message] : rows) {
    const Ran ran = run("run", text, "-p x");
    EXPECT_EQ(ran.code, 3) << text;
    EXPECT_THAT(ran.err, HasSubstr(message));
    EXPECT_EQ(std::ranges::count(ran.err, '\n'), 1) << ran.err;
  }
  const Ran other = run("convert", from, folder_.path() + "/out.gguf");
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("is a Modelfile, which loom run, serve and info read"));
  const Ran serve = run("serve", from + "PARAMETER num_thread 2\n", "--port 0");
  EXPECT_EQ(serve.code, 2);
  EXPECT_THAT(serve.err, HasSubstr("PARAMETER num_thread is of the whole server"));
}

}  // namespace
}  // namespace loom::core::test
