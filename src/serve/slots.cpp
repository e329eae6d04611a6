// Saves, restores and erases the state of sequences: POST /slots/ID?action=..., as in llama.cpp.
// File names are plain words within one folder that the server was given. No request reads or
// writes any other file.
#include <charconv>
#include <chrono>
#include <filesystem>

#include "base/text.hpp"
#include "serve/dialects/dialects.hpp"
#include "serve/dialects/openapi.hpp"

namespace loom::core {
namespace {

namespace fs = std::filesystem;

struct SlotRequest {
  std::string file, cache_salt;
};

const std::vector<BodyField<SlotRequest>>& slot_fields() {
  static const std::vector<BodyField<SlotRequest>> table = {
      {"filename", [](const JsonValue& v, std::string_view name,
                      SlotRequest& r) { return take_text(v, name, r.file); }},
      {"cache_salt", [](const JsonValue& v, std::string_view name,
                        SlotRequest& r) { return take_text(v, name, r.cache_salt); }},
      {"model", {}},
  };
  return table;
}

// Letters, digits, '.', '-' and '_', no leading '.'. So the name is always a file of the folder, on
// any system.
Status check_name(std::string_view name) {
  constexpr size_t kMax = 128;
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  const bool good = !name.empty() && name.size() <= kMax && name.front() != '.' &&
                    name.find_first_not_of(kAllowed) == std::string_view::npos;
  if (good) return {};
  return invalid(cat("filename must be 1 to ", kMax,
                     " letters, digits and . - _, without a . first; got ",
                     printable(name.substr(0, kMax))));
}

// Links are not followed, because they may lead out of the folder.
Result<std::string> path_of(const SlotFiles& files, const std::string& name, bool save) {
  LOOM_TRY(check_name(name));
  const fs::path path = fs::path(files.folder) / name;
  std::error_code bad;
  const fs::file_type type = fs::symlink_status(path, bad).type();
  const bool there = type != fs::file_type::not_found && type != fs::file_type::none;
  if (there && type != fs::file_type::regular)
    return invalid(cat(name, " is not a file of a saved sequence"));
  if (!save && !there) return make_error(Code::not_found, cat("no sequence was saved as ", name));
  if (!save || there) return path.string();
  int64_t count = 0;
  for (const auto& one : fs::directory_iterator(files.folder, bad))
    count += one.exists(bad) ? 1 : 0;
  if (bad) return make_error(Code::io_error, "the folder for saved sequences cannot be read");
  if (count >= files.most) {
    return make_error(Code::unsupported, cat("as many sequences are saved as may be (", files.most,
                                             "); save in the place of one of them"));
  }
  return path.string();
}

// An action on a sequence without a running text. The reply is in llama.cpp's format.
class SlotAction {
 public:
  SlotAction(std::string action, int64_t sequence, uint64_t salt, std::string name,
             std::string path, std::shared_ptr<HttpReply> reply)
      : action_(std::move(action)),
        salt_(salt),
        name_(std::move(name)),
        path_(std::move(path)),
        sequence_(sequence),
        reply_(std::move(reply)) {}

  void run(const Result<Batch*>& batch) const {
    if (reply_->gone()) return;
    const Result<JsonValue> outcome = batch.ok() ? act(**batch) : Result<JsonValue>(batch.error());
    if (outcome.ok()) return send_json(*reply_, 200, *outcome);
    Error error = outcome.error();
    error.where = name_;  // clients need not know the folder
    send_error(*reply_, openai_errors(), error);
  }

 private:
  Result<JsonValue> act(Batch& batch) const {
    JsonValue out = object("id_slot", sequence_);
    // The contents of another key are not accessible with this one.
    batch.set_salt(sequence_, salt_);
    if (action_ == "erase") {
      out.add("n_erased", json(batch.position(sequence_)));
      batch.erase(sequence_);
      return out;
    }
    const bool save = action_ == "save";
    const auto begin = std::chrono::steady_clock::now();
    LOOM_TRY(save ? batch.save_state(sequence_, path_) : batch.load_state(sequence_, path_));
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    std::error_code bad;
    const auto size = static_cast<int64_t>(fs::file_size(path_, bad));
    add_members(out, "filename", std::string_view(name_), save ? "n_saved" : "n_restored",
                batch.position(sequence_), save ? "n_written" : "n_read", bad ? int64_t{0} : size,
                "timings", object(save ? "save_ms" : "restore_ms", took.count()));
    return out;
  }

  const std::string action_;
  const uint64_t salt_;
  const std::string name_, path_;
  const int64_t sequence_;
  const std::shared_ptr<HttpReply> reply_;
};

Result<int64_t> sequence_of(const Service& service, std::string_view path) {
  const std::string_view word = path.substr(std::string_view("/slots/").size());
  int64_t sequence = -1;
  const auto [end, bad] = std::from_chars(word.data(), word.data() + word.size(), sequence);
  const bool number = bad == std::errc() && end == word.data() + word.size();
  if (number && sequence >= 0 && sequence < service.sessions()) return sequence;
  return invalid(
      cat("there is no slot ", printable(word), "; there are 0 to ", service.sessions() - 1));
}

Status act_on_slot(Service& service, const HttpRequest& request, const JsonValue& body,
                   const std::shared_ptr<HttpReply>& reply) {
  LOOM_TRY(service.writes());
  LOOM_ASSIGN(const int64_t sequence, sequence_of(service, request.path));
  const std::string action = query_value(request.query, "action");
  if (action != "save" && action != "restore" && action != "erase")
    return invalid(cat("action must be save, restore or erase; got ", printable(action)));
  SlotRequest asked;
  LOOM_TRY(take_fields<SlotRequest>(body, slot_fields(), service.strict(), asked));
  std::string path;
  if (action != "erase") {
    if (service.slot_files().folder.empty())
      return unsupported("this server keeps no states of sequences; --slot-save-path lets it");
    LOOM_ASSIGN(path, path_of(service.slot_files(), asked.file, action == "save"));
  }
  const uint64_t salt = service.salt_of(reply->caller(), asked.cache_salt);
  const SlotAction what(action, sequence, salt, asked.file, path, reply);
  if (service.scheduler().when_idle(sequence, [what](const Result<Batch*>& b) { what.run(b); }))
    return {};
  return busy("the server is busy; try again in a moment");
}

}  // namespace

void add_slots(std::vector<Route>& routes) {
  Route route = model_route(
      "/slots/*", act_on_slot, openai_errors(),
      [] { return schema_of<SlotRequest>(slot_fields()); }, true);
  route.part = "slots";
  route.query = {{"action", {"save", "restore", "erase"}, true}};
  routes.push_back(std::move(route));
}

}  // namespace loom::core
