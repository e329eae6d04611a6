// A model file that another program changes while it is served: errors, and never text of other
// bytes. A file that is replaced by a rename is another file.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "client.hpp"
#include "io/io_testing.hpp"
#include "serve/server.hpp"
#include "support/paths.hpp"

namespace loom::core::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

enum class Change { cut, overwritten, replaced };

void change(const fs::path& model, Change how) {
  const fs::path other = model.string() + ".new";
  switch (how) {
    case Change::cut: fs::resize_file(model, 0); break;
    case Change::overwritten: {  // as cp does it
      std::fstream file(model, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(static_cast<std::streamoff>(fs::file_size(model) / 2));
      file << std::string(1 << 16, 'x');
      break;
    }
    case Change::replaced:
      fs::copy_file(model, other);
      fs::rename(other, model);
      break;
  }
}

TEST(ChangedFile, IsAnErrorOfEachRequestAndTheServerLives) {
  for (const Change how : {Change::cut, Change::overwritten, Change::replaced}) {
    SCOPED_TRACE(static_cast<int>(how));
    const TemporaryFolder folder;
    const fs::path path = folder.path("model.entity");
    fs::copy_file(loom_test::source_path("models/stories.entity"), path);
    // A change in the same tick of the clock would have the same time.
    fs::last_write_time(path, fs::last_write_time(path) - std::chrono::hours(1));
    const Engine engine = Engine::create({.threads = 1}).or_exit();
    const Model model = Model::load(engine, path.string()).or_exit();
    LlmServerOptions options;
    options.port = 0;
    options.service.scheduler.session.context = 64;
    Result<std::unique_ptr<LlmServer>> server = LlmServer::start(model, options);
    ASSERT_TRUE(server.ok()) << server.error().str();
    const auto post = [&](std::string_view path_of, std::string_view body) {
      return ask((*server)->port(), "POST", path_of, body);
    };
    constexpr std::string_view kText = R"({"prompt":"Once","max_tokens":2,"temperature":0})";
    EXPECT_EQ(post("/v1/completions", kText).status, 200);
    change(path, how);
    const Answer answer = post("/v1/completions", kText);
    EXPECT_EQ(answer.status, how == Change::replaced ? 200 : 500) << answer.body;
    if (how != Change::replaced) {
      EXPECT_THAT(answer.body, HasSubstr("was changed in place while it is served"));
      const Answer ollama = post("/api/generate", R"({"prompt":"Once","stream":false})");
      EXPECT_EQ(ollama.status, 500);
      EXPECT_THAT(ollama.body, HasSubstr(R"({"error":")"));
    }
    EXPECT_EQ(ask((*server)->port(), "GET", "/health", "").status, 200);
  }
}

}  // namespace
}  // namespace loom::core::test
