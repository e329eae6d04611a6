// What every verb shares to talk to people and programs: stdout is data, stderr is notes, errors
// are one line "loom: ...", exit codes are documented in `loom --help`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/json.hpp"
#include "loom/loom.hpp"

namespace loom::cli {

enum Exit : int {
  kDone = 0,
  kFailed = 1,
  kUsage = 2,
  kBadFile = 3,
  kUnsupported = 4,
  kMismatch = 5,
  kInterrupted = 130
};

// Prints the error on stderr and returns the exit code for it.
int fail(const Error& error);
int fail(Exit code, std::string_view message);

// Data on stdout, at once.
void write_out(std::string_view text);
// Is everything on stdout written?
bool flush_out();

bool stdin_is_terminal();
bool stderr_is_terminal();  // and neither TERM=dumb nor CI says otherwise

// Ctrl-C sets a flag; a second one ends the program at once.
void catch_interrupts();
bool interrupted();

// The largest resident memory of this process so far; 0 where the system does not say.
int64_t peak_rss_bytes();

// A whole text from a file, or from stdin for "-"; without its final line break.
Result<std::string> read_text(const std::string& path);
Result<std::string> read_stdin();

// The parts of "a,b" that are not empty.
std::vector<std::string> split_list(const std::string& list);

// "12.3 MB"
std::string human_bytes(int64_t bytes);

// An object under construction; members keep their order.
class JsonObject {
 public:
  JsonObject& set(std::string key, std::string_view value);
  JsonObject& set(std::string key, const char* value) {
    return set(std::move(key), std::string_view(value));
  }
  JsonObject& set(std::string key, bool value);
  JsonObject& set(std::string key, int value) {
    return set(std::move(key), static_cast<int64_t>(value));
  }
  JsonObject& set(std::string key, int64_t value);
  JsonObject& set(std::string key, double value);
  JsonObject& set(std::string key, const std::vector<TokenId>& value);
  JsonObject& set(std::string key, const std::vector<std::string>& value);
  JsonObject& set(std::string key, JsonValue value);
  const JsonValue& value() const { return value_; }
  // One line on stdout.
  void print() const;

 private:
  JsonValue value_ = JsonValue::object();
};

}  // namespace loom::cli
