// loom serve as a person or a script uses it: the line with the address, signals, and the one-line
// error of every mistake. tests/serve tests its replies.
#include <gmock/gmock.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "e2e/program.hpp"
#include "serve/client.hpp"
#include "support/paths.hpp"

namespace loom::core::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const std::string kServedModel = loom_test::source_path("models/stories.entity");

// The program in the background, at a free port.
class Server {
 public:
  explicit Server(const std::string& flags, const std::string& before = "") {
    const std::string command = before + " exec '" + loom_test::program_path() + "' serve " +
                                kServedModel + " --port 0 " + flags + " 2>" + folder_.path() +
                                "/err";
    pipe_ = popen(("echo $$; " + command).c_str(), "r");
    pid_ = std::atoi(line().c_str());
    address_ = line();
    port_ = static_cast<uint16_t>(std::atoi(address_.substr(address_.rfind(':') + 1).c_str()));
  }
  ~Server() {
    if (pipe_ == nullptr) return;
    signal(SIGKILL);
    pclose(pipe_);
  }
  std::string line() const {
    std::string out;
    int c = 0;
    while ((c = std::fgetc(pipe_)) != EOF && c != '\n') out += static_cast<char>(c);
    return out;
  }
  void signal(int number) const { ::kill(pid_, number); }
  // Its exit code, or 128 + the signal that ended it.
  int wait() {
    const int status = pclose(std::exchange(pipe_, nullptr));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  const std::string& address() const { return address_; }
  uint16_t port() const { return port_; }
  std::string err() const { return folder_.read("err"); }

 private:
  TempFolder folder_;
  std::FILE* pipe_ = nullptr;
  pid_t pid_ = 0;
  std::string address_;
  uint16_t port_ = 0;
};

// A stream that goes on until the context is full.
std::string long_stream(const std::string& prompt = "Tom") {
  const std::string body =
      "{\"prompt\":\"" + prompt + "\",\"stream\":true,\"ignore_eos\":true,\"n_predict\":-1}";
  return "POST /completion HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
         "Content-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

TEST(ServeVerb, SaysWhereItListensAndAnswers) {
  Server server("");
  EXPECT_THAT(server.address(), StartsWith("listening at http://127.0.0.1:"));
  EXPECT_EQ(ask(server.port(), "GET", "/health").body, "{\"status\":\"ok\"}");
  server.signal(SIGINT);
  EXPECT_EQ(server.wait(), 0);
  EXPECT_THAT(server.err(), StartsWith("[stories.entity: 4 sessions of 512 positions, "));
}

TEST(ServeVerb, FinishesTextsUnderWayAfterASignal) {
  Server server("--quiet --grace 600");
  Socket socket(server.port());
  ASSERT_TRUE(socket.send(long_stream()));
  std::string all = socket.receive();
  ASSERT_THAT(all, HasSubstr("200 OK"));
  server.signal(SIGTERM);
  all += socket.receive_all();
  EXPECT_THAT(all, HasSubstr("\"stop_type\":\"limit\""));
  EXPECT_EQ(server.wait(), 0);
  EXPECT_EQ(server.err(), "");
}

TEST(ServeVerb, KeysComeFromAFileOrTheEnvironment) {
  const TempFolder folder;
  const std::string file = folder.write("keys", "one\r\n\ntwo\n");
  Server server("--quiet --api-key-file " + file, "LOOM_API_KEY=three");
  for (const char* key : {"one", "two", "three"}) {
    const std::string header = std::string("Authorization: Bearer ") + key + "\r\n";
    EXPECT_EQ(ask(server.port(), "GET", "/v1/models", {}, header).status, 200) << key;
  }
  EXPECT_EQ(ask(server.port(), "GET", "/v1/models").status, 401);
}

TEST(ServeVerb, PsListsTheModelsAndStopUnloadsThem) {
  Server server("--quiet --keep-alive 1h", "LOOM_API_KEY=secret");
  const std::string at = " --port " + std::to_string(server.port());
  const std::string key = "LOOM_API_KEY=secret";
  const Ran ps = run_loom("ps" + at, key);
  EXPECT_EQ(ps.code, 0) << ps.err;
  EXPECT_THAT(ps.out, testing::MatchesRegex("NAME +SIZE +PROCESSOR +CONTEXT +UNTIL\n"
                                            "stories.entity +[0-9.]+ MB +CPU +512 +in .*\n"));
  EXPECT_THAT(run_loom("ps --json" + at, key).out,
              HasSubstr("\"name\":\"stories.entity\",\"bytes\":"));
  EXPECT_THAT(run_loom("ps" + at).err, HasSubstr("the server wants a key; set LOOM_API_KEY"));
  const Ran wrong = run_loom("stop nothing" + at, key);
  EXPECT_EQ(wrong.code, 1);
  EXPECT_THAT(wrong.err, HasSubstr("nothing is not in memory; in memory: stories.entity"));
  const Ran stop = run_loom("stop stories" + at, key);
  EXPECT_EQ(stop.code, 0) << stop.err;
  EXPECT_THAT(stop.err, HasSubstr("stories.entity leaves memory after its last text"));
  wait_until([&] { return run_loom("ps" + at, key).out.empty(); });
  EXPECT_THAT(run_loom("ps" + at, key).err, HasSubstr("no model is in memory"));
  EXPECT_THAT(run_loom("stop" + at, key).err, HasSubstr("no model is in memory"));
  const std::string header = "Authorization: Bearer secret\r\n";
  EXPECT_EQ(ask(server.port(), "POST", "/completion", "{\"prompt\":\"a\",\"n_predict\":1}", header)
                .status,
            200);
  EXPECT_THAT(run_loom("ps" + at, key).out, HasSubstr("stories.entity"));
}

TEST(ServeVerb, TakesModelfilesAndShowsThem) {
  const TempFolder folder;
  const std::string file = folder.write(
      "teller.modelfile", "FROM " + kServedModel + "\nPARAMETER seed 7\nPARAMETER num_ctx 96\n");
  Server server("--quiet " + file);
  EXPECT_THAT(ask(server.port(), "GET", "/v1/models").body, HasSubstr("\"id\":\"teller\""));
  const std::string shown = ask(server.port(), "POST", "/api/show", "{\"model\":\"teller\"}").body;
  EXPECT_THAT(shown, HasSubstr("\"modelfile\":\"FROM "));
  EXPECT_THAT(shown, HasSubstr("seed                           7\\nnum_ctx"));
  EXPECT_THAT(ask(server.port(), "GET", "/api/ps").body, HasSubstr("\"context_length\":96"));
}

TEST(ServeVerb, EveryMistakeIsOneLine) {
  const TempFolder folder;
  const std::string empty = folder.write("empty", "\n\n");
  Server other("--quiet");
  const std::string port = std::to_string(other.port());
  struct Row {
    std::string arguments;
    int code;
    std::string err;
  };
  const Row rows[] = {
      {kServedModel + " --quiet --host example", 2,
       "loom: no IPv4 or IPv6 number: example; take 127.0.0.1 for this machine alone, 0.0.0.0 for "
       "all\n"},
      {kServedModel + " --quiet --host 0.0.0.0", 2,
       "loom: others can reach 0.0.0.0: give keys with --api-key-file or LOOM_API_KEY, or listen "
       "at "
       "127.0.0.1\n"},
      {kServedModel + " --quiet --port " + port, 1,
       "loom: cannot listen at 127.0.0.1 port " + port + ": Address already in use\n"},
      {kServedModel + " --quiet --api-key-file " + empty, 2,
       "loom: " + empty + ": no key is in it; put one on each line\n"},
      {kServedModel + " --quiet --port 0 --context 4000", 2,
       "loom: a context of 4000 positions was asked for; this model was made for 512\n"},
      {kServedModel + " --quiet --port 0 --rope-scaling twice", 2,
       "loom: rope scaling 'twice' is not known; use none, linear:F, dynamic:F or yarn:F with F "
       "above 1\n"},
      {kServedModel + " --quiet --port 0 --keep-alive soon", 2,
       "loom: --keep-alive must be seconds or a time like \"5m\"; got \"soon\"\n"},
      {kServedModel + " --port 70000", 2, ""},
      {"/nowhere/model.entity", 3, ""},
  };
  for (const Row& row : rows) {
    const Ran ran = run_loom("serve " + row.arguments, "timeout 300");
    EXPECT_EQ(ran.code, row.code) << row.arguments << ran.err;
    EXPECT_EQ(ran.out, "");
    EXPECT_EQ(std::ranges::count(ran.err, '\n'), 1) << ran.err;
    EXPECT_TRUE(row.err.empty() || ran.err == row.err) << ran.err;
  }
}

}  // namespace
}  // namespace loom::core::test
