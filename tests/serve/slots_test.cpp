// Sequences saved in files over HTTP, read back and forgotten; and that no name leads out of the
// folder.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "client.hpp"
#include "serve/dialects/fields.hpp"
#include "serve/server.hpp"
#include "stories.hpp"

namespace loom::core::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Slots : public testing::Test {
 protected:
  Slots()
      : root_(fs::temp_directory_path() / cat("loom_slots_", ::getpid(), "_", ++folders_)),
        folder_(root_ / "slots") {
    fs::create_directories(folder_);
  }
  ~Slots() override { fs::remove_all(root_); }

  void start(const std::function<void(LlmServerOptions&)>& change = {}) {
    LlmServerOptions options;
    options.port = 0;
    options.service.name = "stories";
    options.service.version = "test";
    options.service.scheduler.session.context = 128;
    options.service.scheduler.sessions = 2;
    options.service.slots.folder = folder_.string();
    if (change) change(options);
    server_.reset();
    Result<std::unique_ptr<LlmServer>> server = LlmServer::start(model_, options);
    ASSERT_TRUE(server.ok()) << server.error().str();
    server_ = std::move(*server);
  }
  Answer post(std::string_view path, std::string_view body) const {
    return ask(server_->port(), "POST", path, body);
  }
  Answer act(int slot, std::string_view action, std::string_view file = "") const {
    return post(cat("/slots/", slot, "?action=", action),
                dump_json(object("filename", std::string_view(file))));
  }
  // {the text, tokens of the prompt that had to be read}
  std::pair<std::string, int64_t> write(int slot, std::string_view prompt = kPrompt) const {
    const Answer answer =
        post("/completion",
             dump_json(object("prompt", prompt, "id_slot", slot, "n_predict", 12, "seed", 5)));
    EXPECT_EQ(answer.status, 200) << answer.body;
    const JsonValue json = answer.json();
    EXPECT_EQ(*json.find("id_slot")->as_int("id_slot"), slot);
    return {json.find("content")->text(),
            *json.find("timings")->find("prompt_n")->as_int("prompt_n")};
  }
  static int64_t number(const Answer& answer, std::string_view name) {
    EXPECT_EQ(answer.status, 200) << answer.body;
    const JsonValue json = answer.json();
    const JsonValue* value = json.find(name);
    return value != nullptr ? *value->as_int("a number") : -1;
  }
  void put(const fs::path& path, std::string_view text) const {
    std::ofstream(path, std::ios::binary) << text;
  }
  static std::string read(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  static constexpr const char* kPrompt = "Once upon a time, there was a big dog";
  const Model model_ = stories();
  static inline int folders_ = 0;
  const fs::path root_, folder_;
  std::unique_ptr<LlmServer> server_;
};

TEST_F(Slots, AreSavedReadBackAndForgotten) {
  start();
  const auto tokens = static_cast<int64_t>(model_.tokenize(kPrompt)->size());
  const auto [text, read] = write(1);
  EXPECT_EQ(read, tokens);
  const Answer saved = act(1, "save", "one.bin");
  EXPECT_EQ(number(saved, "n_saved"), tokens + 11);  // the last token drawn is not read
  EXPECT_EQ(number(saved, "n_written"), static_cast<int64_t>(fs::file_size(folder_ / "one.bin")));
  EXPECT_EQ(write(1), std::pair(text, int64_t{1}));
  EXPECT_EQ(number(act(1, "erase"), "n_erased"), tokens + 11);
  EXPECT_EQ(write(1), std::pair(text, tokens)) << "what was erased is read anew";
  EXPECT_EQ(number(act(1, "erase"), "n_erased"), tokens + 11);
  EXPECT_EQ(number(act(0, "restore", "one.bin"), "n_restored"), tokens + 11);
  EXPECT_EQ(write(0), std::pair(text, int64_t{1}));
  // In another server as well, whose texts have the same bytes with it and without it.
  start();
  EXPECT_EQ(number(act(1, "restore", "one.bin"), "n_read"),
            static_cast<int64_t>(fs::file_size(folder_ / "one.bin")));
  EXPECT_EQ(write(1), std::pair(text, int64_t{1}));
}

TEST_F(Slots, LieInTheirFolderAndNowhereElse) {
  start();
  write(0);
  const std::string secret = "not for clients";
  put(root_ / "outside", secret);
  fs::create_symlink(root_ / "outside", folder_ / "link");
  fs::create_symlink(root_ / "new", folder_ / "dangling");
  fs::create_directory(folder_ / "sub");
  const std::string names[] = {"",
                               ".",
                               "..",
                               "../outside",
                               "/etc/passwd",
                               (root_ / "outside").string(),
                               ".dot",
                               "a/b",
                               "sub/x",
                               "a\\b",
                               "C:x",
                               std::string("a\0b", 3),
                               "a\nb",
                               "~",
                               "link",
                               "dangling",
                               "sub",
                               "%2e%2e%2foutside",
                               "\xc3\xa4",
                               std::string(129, 'a')};
  for (const std::string& name : names) {
    for (const char* action : {"save", "restore"}) {
      const Answer answer = act(0, action, name);
      EXPECT_EQ(answer.status, 400) << action << " " << printable(name) << ": " << answer.body;
      const bool own = name.find(root_.string()) != std::string::npos;
      EXPECT_TRUE(own || answer.body.find(root_.string()) == std::string::npos) << answer.body;
    }
  }
  EXPECT_EQ(read(root_ / "outside"), secret);
  std::vector<std::string> left;
  for (const auto& one : fs::recursive_directory_iterator(root_))
    left.push_back(one.path().filename().string());
  EXPECT_THAT(left, testing::UnorderedElementsAre("slots", "outside", "link", "dangling", "sub"));
  EXPECT_EQ(act(0, "restore", "absent").status, 404);
  EXPECT_EQ(post("/slots/0?action=save", R"({"filename":7})").status, 400);
}

TEST_F(Slots, AreNoMoreThanMayBe) {
  start([](LlmServerOptions& options) { options.service.slots.most = 2; });
  write(0);
  for (const char* name : {"a", "b", "a"}) EXPECT_EQ(act(0, "save", name).status, 200);
  const Answer third = act(0, "save", "c");
  EXPECT_EQ(third.status, 400);
  EXPECT_THAT(third.body, HasSubstr("as many sequences are saved as may be (2)"));
  EXPECT_FALSE(fs::exists(folder_ / "c"));
}

TEST_F(Slots, AreRefusedByWordsWhereTheyCannotBe) {
  start();
  for (const char* path : {"/slots/2", "/slots/-1", "/slots/1x", "/slots/99999999999999"})
    EXPECT_EQ(post(cat(path, "?action=erase"), "{}").status, 400) << path;
  for (const char* query : {"", "?action=", "?action=drop", "?x=save"}) {
    const Answer answer = post(cat("/slots/0", query), "{}");
    EXPECT_EQ(answer.status, 400);
    EXPECT_THAT(answer.body, HasSubstr("action must be save, restore or erase"));
  }
  EXPECT_THAT(post("/completion", R"({"prompt":"a","id_slot":2})").body,
              HasSubstr("id_slot must be from 0 to 1"));
  start([](LlmServerOptions& options) { options.service.slots.folder.clear(); });
  EXPECT_THAT(act(0, "save", "a").body, HasSubstr("--slot-save-path"));
  EXPECT_EQ(act(0, "erase").status, 200);
  start([](LlmServerOptions& options) { options.without = {"slots"}; });
  EXPECT_EQ(act(0, "save", "a").status, 501);
}

// Every invalid, truncated or changed file is refused, and the sequence stays unchanged.
TEST_F(Slots, ThatAreDamagedAreNotReadBack) {
  start();
  const auto [text, tokens] = write(0);
  ASSERT_EQ(act(0, "save", "good").status, 200);
  const std::string good = read(folder_ / "good");
  std::mt19937 random(3);
  for (int i = 0; i < 60; ++i) {
    std::string bad = good;
    if (i % 2 == 0) {
      bad.resize(random() % good.size());
    } else {
      bad[random() % bad.size()] ^= static_cast<char>(1 << (random() % 8));
    }
    put(folder_ / "bad", bad);
    const Answer answer = act(0, "restore", "bad");
    EXPECT_EQ(answer.status, 400) << answer.body;
    EXPECT_THAT(answer.body, HasSubstr("bad:"));
  }
  EXPECT_EQ(write(0), std::pair(text, int64_t{1}));
  // Nor that of other number types.
  start([](LlmServerOptions& options) {
    options.service.scheduler.session.cache_type = DType::q8_0;
  });
  EXPECT_THAT(act(0, "restore", "good").body, HasSubstr("state of another model"));
}

TEST_F(Slots, AreSavedWhenTheirTextHasEnded) {
  start();
  std::thread longer([&] {
    post("/completion", R"({"prompt":"Once","id_slot":1,"n_predict":100,"ignore_eos":true})");
  });
  EXPECT_TRUE(wait_until([&] {
    const SchedulerCounts counts = server_->models().counts();
    return counts.running > 0 || counts.texts > 0;  // or it has ended already
  }));
  EXPECT_EQ(write(0).first.empty(), false);  // another sequence is free meanwhile
  const Answer saved = act(1, "save", "late");
  longer.join();
  EXPECT_GE(number(saved, "n_saved"), 100);
}

}  // namespace
}  // namespace loom::core::test
