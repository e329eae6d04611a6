// Several models at one address: loaded on request, unloaded when idle, and the texts of each are
// those of a single model.
#include "serve/models.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "client.hpp"
#include "serve/dialects/fields.hpp"
#include "serve/server.hpp"
#include "set_clock.hpp"
#include "stories.hpp"

namespace loom::core::test {
namespace {

using testing::HasSubstr;

class SeveralModels : public testing::Test {
 protected:
  void start(const std::function<void(LlmServerOptions&)>& change = {}) {
    LlmServerOptions options;
    options.port = 0;
    options.service.version = "test";
    options.service.scheduler.sessions = 2;
    options.service.scheduler.session.context = 128;
    if (change) change(options);
    std::vector<ModelEntry> entries;
    entries.push_back({"small.gguf", [this] { return load(DType::q8_0); }, 1000000});
    entries.push_back({"large.entity", [this] { return load(DType::float32); }, 5000000});
    entries.push_back(
        {"broken", []() -> Result<Model> { return make_error(Code::bad_file, "no head"); }, 1});
    Result<std::unique_ptr<LlmServer>> server = LlmServer::start(std::move(entries), options);
    ASSERT_TRUE(server.ok()) << server.error().str();
    server_ = std::move(*server);
  }
  Result<Model> load(DType dtype) {
    ++loads_;
    return stories(dtype);
  }
  Answer post(std::string_view path, const std::string& body) const {
    return ask(server_->port(), "POST", path, body);
  }
  Answer get(std::string_view path) const { return ask(server_->port(), "GET", path); }
  static std::string question(const std::string& model, int seed) {
    return cat(R"({"model":")", model, R"(","prompt":"Once upon a time","seed":)", seed,
               R"(,"temperature":1,"max_tokens":12})");
  }
  static std::string text_of(const Answer& answer) {
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.json().find("choices")->elements()[0].find("text")->text();
  }
  static std::string alone(DType dtype, uint64_t seed) {
    const Model model = stories(dtype);
    Asked asked;
    asked.prompt = *model.tokenize("Once upon a time");
    asked.options.sampler.seed = seed;
    asked.options.sampler.temperature = 1;
    asked.options.max_tokens = 12;
    return test::alone(model, asked).text;
  }
  // Names of the models in memory.
  std::string loaded() const {
    std::string out;
    const JsonValue models = get("/api/ps").json();
    for (const JsonValue& one : models.find("models")->elements())
      out += one.find("name")->text() + " ";
    return out;
  }
  std::string wait_for(const std::string& names) const {
    std::string now;
    wait_until([&] { return (now = loaded()) == names; });
    return now;
  }

  std::atomic<int> loads_{0};
  std::unique_ptr<LlmServer> server_;
};

TEST_F(SeveralModels, AnswerToTheirAliasesAndTellTheirTags) {
  LlmServerOptions options;
  options.port = 0;
  options.service.version = "test";
  options.service.scheduler.session.context = 64;
  std::vector<ModelEntry> entries;
  entries.push_back({"first", [this] { return load(DType::q8_0); }, 1, {"code", "fim"}, {"small"}});
  entries.push_back({"second", [this] { return load(DType::float32); }, 1});
  Result<std::unique_ptr<LlmServer>> server = LlmServer::start(std::move(entries), options);
  ASSERT_TRUE(server.ok()) << server.error().str();
  server_ = std::move(*server);
  EXPECT_EQ(text_of(post("/v1/completions", question("fim", 3))), alone(DType::q8_0, 3));
  EXPECT_EQ(loads_, 1);
  const JsonValue all = get("/v1/models").json();
  const std::vector<JsonValue>& rows = all.find("data")->elements();
  EXPECT_EQ(dump_json(*rows[0].find("aliases")), R"(["first","code","fim"])");
  EXPECT_EQ(dump_json(*rows[0].find("tags")), R"(["small"])");
  EXPECT_EQ(dump_json(*rows[1].find("aliases")), R"(["second"])");
  EXPECT_EQ(get("/v1/models/code").json().find("id")->text(), "first");
  EXPECT_EQ(get("/props?model=code").status, 200);
  EXPECT_EQ(post("/v1/completions", question("firs", 3)).status, 404);
}

// A single model, which leaves memory when it is idle.
class ASleepingModel : public SeveralModels {
 protected:
  void start_alone(int64_t seconds) {
    LlmServerOptions options;
    options.port = 0;
    options.service.version = "test";
    options.service.scheduler.session.context = 64;
    options.service.clock = clock_.clock();
    options.keep_seconds = seconds;
    std::vector<ModelEntry> entries;
    entries.push_back({"alone", [this] { return load(DType::q8_0); }, 1});
    Result<std::unique_ptr<LlmServer>> server = LlmServer::start(std::move(entries), options);
    ASSERT_TRUE(server.ok()) << server.error().str();
    server_ = std::move(*server);
  }
  bool sleeps() const {
    const JsonValue props = get("/props").json();
    return *props.find("is_sleeping")->as_bool("is_sleeping");
  }
  // Its time begins when the server lets go of the model, which may be after the reply. Requests
  // have the server look at its clock.
  bool falls_asleep() const {
    return wait_until([&] {
      clock_.advance(601);
      return sleeps();
    });
  }
  SetClock clock_;
};

TEST_F(ASleepingModel, LeavesMemoryAndComesBackWithTheSameText) {
  start_alone(600);
  const std::string text = text_of(post("/v1/completions", question("alone", 3)));
  const std::string fingerprint = get("/props").json().find("system_fingerprint")->text();
  EXPECT_FALSE(sleeps());
  ASSERT_TRUE(falls_asleep());
  EXPECT_EQ(loads_, 1);
  EXPECT_EQ(loaded(), "");
  EXPECT_EQ(get("/health").status, 200);
  EXPECT_EQ(get("/props").json().find("system_fingerprint")->text(), fingerprint);
  EXPECT_THAT(get("/v1/models").body, HasSubstr("\"id\":\"alone\""));
  EXPECT_THAT(get("/metrics").body, HasSubstr("loom_texts_total 1\n"));
  EXPECT_TRUE(sleeps());
  EXPECT_EQ(text_of(post("/v1/completions", question("alone", 3))), text);
  EXPECT_EQ(loads_, 2);
  EXPECT_FALSE(sleeps());
  EXPECT_TRUE(falls_asleep());
}

TEST_F(ASleepingModel, StaysWhereNothingElseIsSaid) {
  start_alone(-1);
  EXPECT_EQ(text_of(post("/v1/completions", question("alone", 3))), alone(DType::q8_0, 3));
  clock_.advance(int64_t{10} * 365 * 24 * 3600);
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(sleeps());
  EXPECT_THAT(get("/api/ps").body, HasSubstr("9999-12-31"));
  EXPECT_EQ(loads_, 1);
}

TEST_F(ASleepingModel, StaysAsLongAsARequestSays) {
  start_alone(600);
  const auto load = [&](const std::string& keep) {
    return post("/api/generate", cat(R"({"model":"alone","keep_alive":)", keep, "}")).body;
  };
  EXPECT_THAT(load("0"), HasSubstr("\"done_reason\":\"unload\""));
  EXPECT_EQ(wait_for(""), "");
  EXPECT_THAT(load("-1"), HasSubstr("\"done_reason\":\"load\""));
  EXPECT_EQ(loads_, 2);
  clock_.advance(int64_t{365} * 24 * 3600);
  EXPECT_EQ(loaded(), "alone ");
  EXPECT_EQ(post("/models/unload", R"({"model":"alone"})").status, 200);
  EXPECT_EQ(wait_for(""), "");
  EXPECT_EQ(text_of(post("/v1/completions", question("alone", 3))), alone(DType::q8_0, 3));
}

// The settings of a Modelfile.
TEST_F(SeveralModels, HaveSettingsOfTheirOwn) {
  LlmServerOptions options;
  options.port = 0;
  options.service.version = "test";
  options.service.scheduler.session.context = 256;
  std::vector<ModelEntry> entries;
  ModelSettings settings;
  settings.modelfile = "FROM x";
  settings.parameters = "seed 3";
  settings.license = "MIT";
  settings.system = "Tell stories.";
  settings.messages = {{.role = "user", .content = "Hi"}, {.role = "assistant", .content = "Yes"}};
  settings.defaults = R"({"seed":3,"temperature":1,"n_predict":7,"presence_penalty":0.5})";
  settings.context = 192;
  entries.push_back({"own", [this] { return load(DType::q8_0); }, 1, {}, {}, settings});
  entries.push_back({"plain", [this] { return load(DType::q8_0); }, 1});
  Result<std::unique_ptr<LlmServer>> server = LlmServer::start(std::move(entries), options);
  ASSERT_TRUE(server.ok()) << server.error().str();
  server_ = std::move(*server);
  const JsonValue shown = post("/api/show", R"({"model":"own"})").json();
  const std::pair<const char*, const char*> rows[] = {{"modelfile", "FROM x"},
                                                      {"parameters", "seed 3"},
                                                      {"license", "MIT"},
                                                      {"system", "Tell stories."}};
  for (const auto& [name, value] : rows) EXPECT_EQ(shown.find(name)->text(), value);
  EXPECT_EQ(dump_json(*shown.find("messages")),
            R"([{"role":"user","content":"Hi"},{"role":"assistant","content":"Yes"}])");
  EXPECT_EQ(post("/api/show", R"({"model":"plain"})").json().find("modelfile")->text(), "");
  EXPECT_EQ(get("/v1/models/own").json().find("parameters")->text(), "seed 3");
  EXPECT_THAT(get("/api/ps").body, HasSubstr("\"context_length\":192"));
  const auto reply = [&](std::string_view model, std::string_view more, std::string_view turns) {
    const Answer answer = post("/api/chat", cat(R"({"model":")", model, R"(","stream":false)", more,
                                                R"(,"messages":[)", turns, "]}"));
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.status == 200 ? answer.json().find("message")->find("content")->text() : "";
  };
  const std::string own_turns =
      R"({"role":"user","content":"Hi"},{"role":"assistant","content":"Yes"},)";
  const std::string asked = R"({"role":"user","content":"Go on"})";
  const std::string flags = R"(,"options":{"seed":3,"temperature":1,"num_predict":7,)"
                            R"("presence_penalty":0.5})";
  const std::string system = R"({"role":"system","content":"Tell stories."},)";
  EXPECT_EQ(reply("own", "", asked), reply("plain", flags, system + own_turns + asked));
  const std::string other = R"({"role":"system","content":"Be brief."},)";
  EXPECT_EQ(reply("own", "", other + asked), reply("plain", flags, other + own_turns + asked));
  EXPECT_EQ(reply("own", R"(,"options":{"seed":4,"num_predict":3})", asked),
            reply("plain",
                  R"(,"options":{"seed":4,"temperature":1,"num_predict":3,"presence_penalty":0.5})",
                  system + own_turns + asked));
}

TEST_F(SeveralModels, AreLoadedWhenTheyAreAskedFor) {
  start();
  EXPECT_EQ(loads_, 0);
  EXPECT_EQ(loaded(), "");
  EXPECT_EQ(get("/props").status, 404);
  EXPECT_THAT(get("/v1/models").body, HasSubstr("\"value\":\"unloaded\""));
  EXPECT_EQ(text_of(post("/v1/completions", question("large.entity", 3))),
            alone(DType::float32, 3));
  EXPECT_EQ(loads_, 1);
  EXPECT_EQ(loaded(), "large.entity ");
  EXPECT_EQ(text_of(post("/v1/completions", question("small:latest", 3))), alone(DType::q8_0, 3));
  EXPECT_EQ(text_of(post("/v1/completions", question("large", 4))), alone(DType::float32, 4));
  EXPECT_EQ(loads_, 2);
  EXPECT_EQ(loaded(), "small.gguf large.entity ");
  EXPECT_THAT(get("/props?model=large.entity").body, HasSubstr("\"model_alias\":\"large.entity\""));
  EXPECT_THAT(get("/metrics").body, HasSubstr("loom_texts_total 3"));
  // Without a name it is the first.
  EXPECT_EQ(text_of(post("/v1/completions",
                         R"({"prompt":"Once upon a time","seed":3,"temperature":1,
                             "max_tokens":12})")),
            alone(DType::q8_0, 3));
}

TEST_F(SeveralModels, UnknownOnesAre404InEveryDialect) {
  start();
  const std::pair<const char*, const char*> asked[] = {
      {"/v1/chat/completions", R"("type":"not_found_error")"},
      {"/v1/messages", R"({"type":"error","error":{"type":"not_found_error")"},
      {"/api/chat", R"({"error":"no model nobody)"},
      {"/completion", R"("code":404)"},
      {"/v1/embeddings", R"("code":404)"}};
  for (const auto& [path, report] : asked) {
    const Answer answer = post(path, R"({"model":"nobody"})");
    EXPECT_EQ(answer.status, 404) << path;
    EXPECT_THAT(answer.body, HasSubstr(report)) << path;
  }
  const Answer broken = post("/v1/completions", question("broken", 1));
  EXPECT_EQ(broken.status, 500);
  EXPECT_THAT(broken.body, HasSubstr("the model broken cannot be loaded: no head"));
}

TEST_F(SeveralModels, TheOneNotUsedForLongestGoes) {
  start([](LlmServerOptions& options) { options.models_most = 1; });
  text_of(post("/v1/completions", question("small.gguf", 1)));
  EXPECT_EQ(loaded(), "small.gguf ");
  text_of(post("/v1/completions", question("large.entity", 1)));
  EXPECT_EQ(loaded(), "large.entity ");
  EXPECT_THAT(get("/metrics").body, HasSubstr("loom_texts_total 2"));
}

TEST_F(SeveralModels, MemoryIsBounded) {
  start([](LlmServerOptions& options) { options.models_memory = 3000000; });
  const Answer answer = post("/v1/completions", question("large.entity", 1));
  EXPECT_EQ(answer.status, 400);
  EXPECT_THAT(answer.body, HasSubstr("needs 5 MB, and models may take 3 MB here"));
}

TEST_F(SeveralModels, KeepAliveSaysHowLongOneStays) {
  start();
  const auto chat = [&](const std::string& keep) {
    return post("/api/generate", cat(R"({"model":"small.gguf","keep_alive":)", keep, "}"));
  };
  EXPECT_THAT(chat("\"5m\"").body, HasSubstr("\"done_reason\":\"load\""));
  EXPECT_EQ(loaded(), "small.gguf ");
  EXPECT_THAT(chat("0").body, HasSubstr("\"done_reason\":\"unload\""));
  EXPECT_EQ(wait_for(""), "");
  chat("-1");
  EXPECT_THAT(get("/api/ps").body, HasSubstr("9999-12-31"));
  EXPECT_EQ(post("/models/unload", R"({"model":"small.gguf"})").status, 200);
  EXPECT_EQ(wait_for(""), "");
  EXPECT_EQ(chat("\"soon\"").status, 400);
  EXPECT_EQ(post("/models/load", R"({"model":"large"})").status, 200);
  EXPECT_THAT(loaded(), HasSubstr("large.entity "));
}

// A request for information uses a model too, for a moment.
TEST_F(SeveralModels, KeepAliveHoldsWhoeverElseLooks) {
  start();
  std::atomic<bool> ended = false;
  std::thread looking([&] {
    while (!ended) get("/api/ps");
  });
  for (int i = 0; i < 30; ++i) {
    post("/api/generate", R"({"model":"small.gguf","keep_alive":"5m"})");
    post("/api/generate", R"({"model":"small.gguf","keep_alive":0})");
    EXPECT_EQ(wait_for(""), "") << i;
  }
  ended = true;
  looking.join();
}

TEST(KeepAlive, IsReadAsOllamaWritesIt) {
  const std::pair<const char*, int64_t> good[] = {
      {"300", 300}, {"0", 0},         {"-1", -1},      {"\"5m\"", 300}, {"\"1.5h\"", 5400},
      {"1.2", 2},   {"\"500ms\"", 1}, {"\"-1s\"", -1}, {"\"30\"", 30}};
  for (const auto& [text, seconds] : good)
    EXPECT_EQ(*read_keep_alive(*parse_json(text, "keep"), "keep_alive"), seconds) << text;
  for (const char* text : {"\"\"", "\"m\"", "\"5d\"", "true", "[1]", "\"1..2s\"", "1e300"})
    EXPECT_FALSE(read_keep_alive(*parse_json(text, "keep"), "keep_alive").ok()) << text;
}

TEST(OneModel, StaysWhateverIsSaidOfIt) {
  LlmServerOptions options;
  options.port = 0;
  options.service.name = "stories";
  options.service.version = "test";
  options.service.scheduler.session.context = 64;
  options.keep_seconds = 0;
  const auto server = LlmServer::start(stories(), options);
  ASSERT_TRUE(server.ok());
  const auto post = [&](std::string_view path, const char* body) {
    return ask((*server)->port(), "POST", path, body).status;
  };
  // If it were unloaded, one of the next requests would fail: it cannot be loaded again.
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(post("/api/generate", R"({"model":"any","keep_alive":0})"), 200);
    EXPECT_EQ(post("/completion", R"({"prompt":"a","n_predict":1})"), 200);
    EXPECT_EQ(post("/models/unload", R"({"model":"stories"})"), 400);
  }
  EXPECT_EQ((*server)->service().name(), "stories");
}

// Two models with room for one, requested by many clients at once; some disconnect, some unload
// them.
TEST_F(SeveralModels, WriteTheSameTextsWhoeverElseAsksAndWhateverIsUnloaded) {
  start([](LlmServerOptions& options) { options.models_most = 1; });
  std::string alone_small[3], alone_large[3];
  for (int seed = 0; seed < 3; ++seed) {
    alone_small[seed] = alone(DType::q8_0, static_cast<uint64_t>(seed));
    alone_large[seed] = alone(DType::float32, static_cast<uint64_t>(seed));
  }
  std::atomic<int> wrong{0};
  std::vector<std::thread> clients;
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&, c] {
      std::mt19937 random(static_cast<unsigned>(c));
      for (int i = 0; i < 12; ++i) {
        const bool small = random() % 2 == 0;
        const int seed = static_cast<int>(random() % 3);
        const std::string name = small ? "small.gguf" : "large.entity";
        const Answer answer = post("/v1/completions", question(name, seed));
        const bool good =
            answer.status == 200 &&
            answer.body.find(dump_json(json((small ? alone_small : alone_large)[seed]))) !=
                std::string::npos;
        wrong += good ? 0 : 1;
        if (random() % 4 == 0) post("/models/unload", cat(R"({"model":")", name, "\"}"));
        if (random() % 4 == 0) {
          Socket socket(server_->port());
          const std::string body = question(name, seed);
          socket.send(
              cat("POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: "
                  "application/json\r\nContent-Length: ",
                  body.size(), "\r\n\r\n", body));
        }
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(loads_, 2);
}

}  // namespace
}  // namespace loom::core::test
