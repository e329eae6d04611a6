// loom search: trains one network with many settings, each in a separate process, and reports the
// best by validation. Every finished trial is a line of the log, from which a stopped search
// resumes.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "../evolve/fitness_command.hpp"
#include "../shared/json_value.hpp"
#include "../shared/outputs.hpp"
#include "../shared/progress.hpp"
#include "../shared/verbs.hpp"
#include "search_space.hpp"

namespace loom::cli {
namespace {

constexpr int64_t kMaxTrials = 100000;
constexpr double kNoLimit = 1e9;   // seconds
constexpr int64_t kReduction = 3;  // halving: a third continues, with three times the epochs

struct SearchFlags {
  std::string network, data, method = "random", by = "validation", log, output;
  std::vector<std::string> tried, set;
  int64_t trials = 20, epochs = 10, min_epochs = 1, jobs = 1, folds = 0;
  double split = 0.8, timeout = 0;
  uint64_t seed = 1;
  bool force = false, json = false, quiet = false;
};

// A requested training, and its result.
struct Trial {
  int64_t number = 0, epochs = 0;  // from 1
  TrialValues values;
  double score = 0;                    // NaN if it failed
  std::string error;                   // the reason
  bool known = false;                  // from the log
  Code code = Code::invalid_argument;  // of `error`
};

std::string values_text(const TrialValues& values) {
  std::string text;
  for (const auto& [name, value] : values)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  return text;
}

bool larger_is_better(const std::string& by) {
  return by == "accuracy" || by == "macro_f1" || by == "auc" || by == "r2" || by.starts_with("top");
}

// The arguments of `loom train`; they also identify a trial in the log. All are quoted, as in logs
// of earlier versions.
std::string train_words(const SearchFlags& f, const Trial& trial) {
  std::string words = "train " + shell_quoted(f.network) + " " + shell_quoted(f.data);
  words += f.folds > 0 ? fmt::format(" --folds {}", f.folds) : fmt::format(" --split {}", f.split);
  words += fmt::format(" --seed {} --epochs {}", f.seed, trial.epochs);
  if (f.by != "validation" && f.by != "accuracy") words += " --metrics " + shell_quoted(f.by);
  const auto add = [&](const std::string& name, const std::string& value) {
    words += " --" + name + (value.empty() ? "" : " " + shell_quoted(value));
  };
  for (const std::string& pair : f.set) {
    const size_t equals = pair.find('=');
    add(pair.substr(0, equals), equals == std::string::npos ? "" : pair.substr(equals + 1));
  }
  for (const auto& [name, value] : trial.values) add(name, value);
  return words;
}

// The line of an error, without the name of the program. Lines in brackets are notes.
std::string error_line(const std::string& printed) {
  constexpr std::string_view kPrefix = "loom: ";
  const size_t error = printed.starts_with(kPrefix) ? 0 : printed.find("\nloom: ");
  const size_t start = error == std::string::npos ? 0 : printed.find_first_not_of('\n', error);
  const std::string line = printed.substr(start, printed.find('\n', start) - start);
  return line.starts_with(kPrefix) ? line.substr(kPrefix.size()) : line;
}

std::string own_program() {
  std::error_code failed;
  const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", failed);
  return failed ? "loom" : path.string();
}

// The last value of a list, or the number itself; NaN if there is none.
double last_number(const JsonValue* value) {
  if (value == nullptr) return NAN;
  if (value->is_array())
    return value->elements().empty() ? NAN : last_number(&value->elements().back());
  return value->number().value_or(NAN);
}

// The score in the output of `loom train --json`.
double score_of(const std::string& printed, const std::string& by) {
  const Result<JsonValue> json = JsonValue::parse(printed, "loom train");
  if (!json.ok()) return NAN;
  if (const JsonValue* means = json->find("mean")) return last_number(means->find(by));
  if (by == "validation") return last_number(json->find("validation_losses"));
  if (by == "accuracy") return last_number(json->find("accuracy"));
  const JsonValue* metrics = json->find("metrics");
  return metrics == nullptr ? NAN : last_number(metrics->find(by));
}

// Flushed to disk before the next training starts.
Status append_line(const std::string& path, const std::string& line) {
  std::FILE* const file = std::fopen(path.c_str(), "ab");
  std::error_code ignored;
  const auto before = std::filesystem::file_size(path, ignored);
  bool good = file != nullptr && std::fwrite(line.data(), 1, line.size(), file) == line.size();
  good = good && std::fflush(file) == 0 && fsync(fileno(file)) == 0;
  if (file != nullptr) good = std::fclose(file) == 0 && good;
  // A partial line would corrupt the line that a later search adds.
  if (!good && !ignored) std::filesystem::resize_file(path, before, ignored);
  return good ? Status{} : Error{Code::io_error, "cannot write the log", path, -1};
}

class Search {
 public:
  explicit Search(const SearchFlags& f)
      : f_(f), program_(own_program()), bar_("searching", "trials", f.quiet) {}

  Status run();
  void print() const;
  Status train_best();

 private:
  Status read_log();
  Status train_all(std::vector<Trial>& trials);
  void train(Trial& trial);
  Status write_log(const Trial& trial);
  Status halve(std::vector<Trial> trials);
  bool better(const Trial& a, const Trial& b) const;
  std::vector<Trial> ranked() const;

  const SearchFlags& f_;
  std::string program_;
  SearchSpace space_;
  std::map<std::string, double> known_;  // scores of the log
  std::vector<Trial> done_;
  Progress bar_;
  std::mutex turn_;
  int64_t planned_ = 0;
};

// Failures last; of equal scores the earlier trial first.
bool Search::better(const Trial& a, const Trial& b) const {
  if (a.epochs != b.epochs) return a.epochs > b.epochs;
  if (std::isnan(a.score) != std::isnan(b.score)) return std::isnan(b.score);
  if (a.score != b.score && !std::isnan(a.score))
    return larger_is_better(f_.by) ? a.score > b.score : a.score < b.score;
  return a.number < b.number;
}

std::vector<Trial> Search::ranked() const {
  std::vector<Trial> all = done_;
  std::sort(all.begin(), all.end(),
            [this](const Trial& a, const Trial& b) { return better(a, b); });
  return all;
}

Status Search::read_log() {
  if (f_.log.empty() || !std::filesystem::exists(f_.log)) return {};
  LOOM_ASSIGN(const std::string text, read_text(f_.log));
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    if (line.empty()) continue;
    const Result<JsonValue> json = JsonValue::parse(line, f_.log);
    // The last line of a killed search may be partial: the next line replaces it.
    if (!json.ok() && end == text.size()) {
      std::error_code error;
      std::filesystem::resize_file(f_.log, start, error);
      if (error) return Error{Code::io_error, "cannot remove its torn last line", f_.log, -1};
      break;
    }
    if (!json.ok() || json->member_text("run").empty())
      return Error{Code::bad_file, "is not a log of loom search; give --log another name", f_.log,
                   -1};
    known_[json->member_text("run")] = last_number(json->find("score"));
  }
  return {};
}

Status Search::write_log(const Trial& trial) {
  if (f_.log.empty() || trial.known) return {};
  JsonObject line;
  line.set("run", train_words(f_, trial)).set("trial", trial.number).set("epochs", trial.epochs);
  for (const auto& [name, value] : trial.values) line.set("--" + name, value);
  line.set(std::isnan(trial.score) ? "error" : "by", std::isnan(trial.score) ? trial.error : f_.by);
  line.set("score", trial.score);
  return append_line(f_.log, line.value().text() + "\n");
}

void Search::train(Trial& trial) {
  const std::string words = train_words(f_, trial);
  if (const auto found = known_.find(words); found != known_.end()) {
    trial.score = found->second;
    trial.known = true;
    if (std::isnan(trial.score)) trial.error = "failed before";
    return;
  }
  const bool chosen = words.find(" --threads ") != std::string::npos;
  const std::string threads = f_.jobs > 1 && !chosen ? " --threads 1" : "";
  const std::string command = shell_quoted(program_) + " " + words + threads + " --quiet -o none";
  const Result<ProgramEnd> end =
      run_program(command, "--json", f_.timeout > 0 ? f_.timeout : kNoLimit);
  trial.score = NAN;
  if (!end.ok()) {
    trial.error = end.error().message;
  } else if (end->late) {
    trial.error = "ran longer than --timeout";
  } else if (end->exit != 0) {
    trial.error = error_line(end->err);
    trial.code = end->exit == kBadFile ? Code::bad_file : Code::invalid_argument;
  } else {
    trial.score = score_of(end->out, f_.by);
    if (std::isnan(trial.score)) trial.error = "has no " + f_.by;
  }
}

// `jobs` at a time. An error of the first trial is an error of the command line, and ends the
// search.
Status Search::train_all(std::vector<Trial>& trials) {
  size_t next = 0;
  Status failed;
  const auto work = [&] {
    while (true) {
      std::unique_lock lock(turn_);
      if (next >= trials.size() || !failed.ok() || interrupted()) return;
      Trial& trial = trials[next++];
      lock.unlock();
      train(trial);
      lock.lock();
      if (interrupted()) return;
      const Status written = write_log(trial);
      if (!written.ok()) failed = written;
      if (done_.empty() && std::isnan(trial.score) && !trial.known)
        failed = Error{
            trial.code,
            fmt::format("the first trial ({}) failed: {}", values_text(trial.values), trial.error),
            {},
            -1};
      done_.push_back(trial);
      bar_.update(static_cast<int64_t>(done_.size()), planned_);
    }
  };
  std::vector<std::thread> others;
  for (int64_t i = 1; i < f_.jobs; ++i) others.emplace_back(work);
  work();
  for (std::thread& t : others) t.join();
  if (interrupted()) return Error{Code::cancelled, "interrupted", {}, -1};
  return failed;
}

// Successive halving (Jamieson and Talwalkar, 2016): trains all with few epochs, then the best
// third again with three times as many, until the last have all epochs.
Status Search::halve(std::vector<Trial> trials) {
  std::vector<int64_t> rungs = {f_.epochs};
  while (rungs.back() / kReduction >= f_.min_epochs && rungs.back() > 1 &&
         static_cast<int64_t>(std::pow(kReduction, rungs.size())) <=
             static_cast<int64_t>(trials.size()) * kReduction)
    rungs.push_back(std::max<int64_t>(rungs.back() / kReduction, 1));
  planned_ = 0;
  size_t count = trials.size();
  for (size_t i = 0; i < rungs.size(); ++i, count = std::max<size_t>(count / kReduction, 1))
    planned_ += static_cast<int64_t>(count);
  for (size_t rung = rungs.size(); rung-- > 0;) {
    for (Trial& t : trials) {
      t.epochs = rungs[rung];
      t.known = false;
    }
    LOOM_TRY(train_all(trials));
    std::sort(trials.begin(), trials.end(),
              [this](const Trial& a, const Trial& b) { return better(a, b); });
    trials.resize(std::max<size_t>(trials.size() / kReduction, 1));
  }
  return {};
}

Status Search::run() {
  for (const std::string& text : f_.tried) LOOM_TRY(space_.add(text));
  LOOM_TRY(read_log());
  std::vector<TrialValues> values;
  if (f_.method == "grid") {
    LOOM_ASSIGN(values, space_.grid(kMaxTrials));
  } else if (f_.method == "random" || f_.method == "halving") {
    for (int64_t i = 0; i < f_.trials; ++i) values.push_back(space_.drawn(f_.seed, i));
  } else {
    return Error{
        Code::invalid_argument,
        fmt::format("--method {} is not known; there are random, grid, halving", f_.method),
        {},
        -1};
  }
  std::vector<Trial> trials;
  for (TrialValues& v : values)
    trials.push_back(
        {static_cast<int64_t>(trials.size()) + 1, f_.epochs, std::move(v), NAN, {}, false});
  planned_ = static_cast<int64_t>(trials.size());
  const Status ended = f_.method == "halving" ? halve(std::move(trials)) : train_all(trials);
  bar_.finish();
  return ended;
}

void Search::print() const {
  const std::vector<Trial> all = ranked();
  if (f_.json) {
    Json list = Json::array();
    for (const Trial& t : all) {
      JsonObject one, values;
      for (const auto& [name, value] : t.values) values.set(name, value);
      one.set("trial", t.number)
          .set("epochs", t.epochs)
          .set("score", t.score)
          .set("values", values.value());
      if (!t.error.empty()) one.set("error", t.error);
      list.push(one.value());
    }
    JsonObject()
        .set("by", f_.by)
        .set("best", "loom " + train_words(f_, all[0]))
        .set("trials", list)
        .print();
    return;
  }
  write_line(fmt::format("{:>5} {:>7} {:>12}  {}", "trial", "epochs", f_.by, "settings"));
  for (const Trial& t : all) {
    const std::string score = std::isnan(t.score) ? "failed" : fmt::format("{:.6g}", t.score);
    const std::string why = t.error.empty() ? "" : "  (" + t.error + ")";
    write_line(fmt::format("{:>5} {:>7} {:>12}  {}{}", t.number, t.epochs, score,
                           values_text(t.values), why));
  }
  write_line("best: loom " + train_words(f_, all[0]));
}

// Trains the best settings again, for the requested file.
Status Search::train_best() {
  if (f_.output.empty()) return {};
  const std::string command =
      shell_quoted(program_) + " " + train_words(f_, ranked()[0]) + " --quiet --force -o";
  LOOM_ASSIGN(const ProgramEnd end, run_program(command, f_.output, kNoLimit));
  if (end.exit == 0) return {};
  return Error{Code::io_error, error_line(end.err), f_.output, -1};
}

int search(const SearchFlags& f) {
  const Status writable = Outputs(f.force)
                              .input("NETWORK", f.network)
                              .input("DATA", f.data)
                              .file("-o", f.output, {".entity", ".safetensors"}, "trained weights")
                              .check();
  if (!writable.ok()) return fail(writable.error());
  Search all(f);
  const Status done = all.run();
  if (!done.ok() && done.error().code == Code::cancelled) return fail_interrupted();
  if (!done.ok()) return fail(done.error());
  all.print();
  const Status saved = all.train_best();
  return saved.ok() ? kDone : fail(saved.error());
}

}  // namespace

Verb add_search(Command app) {
  auto f = std::make_shared<SearchFlags>();
  const Command verb =
      app.command("search", "Search training options for the best validation result.");
  verb.examples(
      "  loom search net.json table.csv --try rate=0.0001..0.1:log --try optimizer=adam,lion\n"
      "  loom search net.json table.csv --try batch=8..64 --trials 30 --jobs 4 --log search.jsonl\n"
      "  loom search net.json table.csv --method grid --try rate=0.001,0.01 --try "
      "weight-decay=0,0.1\n"
      "  loom search net.json table.csv --method halving --trials 27 --epochs 27 --try "
      "rate=1e-4..1:log");
  verb.option("NETWORK", f->network, "As for loom train").required();
  verb.option("DATA", f->data, "As for loom train").required();
  verb.option(
          "--try", f->tried,
          "OPTION=VALUES: an option of loom train and what it may be: LOW..HIGH, whole where both "
          "are, LOW..HIGH:log by its logarithm, or values with commas; may be repeated")
      .one_at_a_time()
      .required();
  verb.option("--set", f->set, "OPTION=VALUE of loom train for all; may be repeated")
      .one_at_a_time();
  verb.option("--method", f->method,
              "random, grid (all combinations of values), halving (all with few epochs, the best\n"
              "third anew with three times as many, and so on up to --epochs)")
      .show_default();
  verb.option("--trials", f->trials, "random, halving: how many")
      .range(1, kMaxTrials)
      .show_default();
  verb.option("--epochs", f->epochs, "Epochs of each training").range(1, 1 << 30).show_default();
  verb.option("--least-epochs", f->min_epochs, "halving: those that all begin with")
      .range(1, 1 << 30)
      .show_default();
  const Option share =
      verb.option("--split", f->split, "Share that trains").range(0.0, 1.0).show_default();
  verb.option("--folds", f->folds, "Cross-validation instead: the mean counts")
      .range(2, 1 << 20)
      .excludes(share);
  verb.option("--by", f->by,
              "The score of the last epoch that decides: validation (the loss), accuracy, or one "
              "of --metrics")
      .show_default();
  verb.option("--jobs", f->jobs, "Trainings at a time; with more than 1, a thread each")
      .range(1, 1024)
      .show_default();
  verb.option("--timeout", f->timeout, "Seconds that a training may take (default: any)")
      .range(0.001, 1e9);
  verb.option("--seed", f->seed, "Seed of the settings, and of every training")
      .range(0, INT64_MAX)
      .show_default();
  verb.option(
      "--log", f->log,
      "A line of JSON for every training that is done; those that are there are not run again");
  verb.option("-o,--output", f->output, "Train the best settings once more and write the weights");
  add_force(verb, f->force);
  verb.flag("--json", f->json, "One JSON object instead of a table");
  verb.flag("--quiet", f->quiet, "No progress");
  return {verb, [f] { return search(*f); }};
}

}  // namespace loom::cli
