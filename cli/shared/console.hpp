// Common output rules of all verbs: stdout is data, stderr is notes, errors are one line "loom:
// ...". `loom --help` documents the exit codes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "json.hpp"
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

// Prints the error on stderr and returns its exit code. Control characters, which file names may
// contain, are escaped, because a terminal would obey them.
int fail(const Error& error);
int fail(Exit code, std::string_view message);
// For work that a signal stopped: 130 after Ctrl-C, otherwise 128 + the signal. `then`: the end of
// the message.
int fail_interrupted(std::string_view then = {});

// "[text]" on stderr, escaped in the same way.
void note(std::string_view text);

// Writes data to stdout at once.
void write_out(std::string_view text);
// Writes a line with names from files; control characters are escaped.
void write_line(std::string_view text);
// Whether everything on stdout is written.
bool flush_out();

bool stdin_is_terminal();
bool stdout_is_terminal();
bool stderr_is_terminal();  // and neither TERM=dumb nor CI is set

// Ctrl-C, SIGTERM and SIGHUP set a flag, so that running work can stop and remove its temporary
// files. A second signal ends the program at once; so does a timeout after the latter two. A file
// above the system's size limit is an error like a full disk.
void catch_signals();
bool interrupted();
// From now on Ctrl-C stops a reply instead of the program, until three have come. The caller clears
// it with take_interrupt().
void interrupts_stop_replies();
// Whether Ctrl-C caused interrupted(); clears it then.
bool take_interrupt();
// From now on the program takes the time that it needs after a signal; a second one still ends it
// at once.
void stop_without_haste();
// From now on the program continues when the reader of stdout disconnects (`| head`).
void keep_running_without_stdout();

// The largest resident memory of this process so far; 0 if the system does not report it.
int64_t peak_rss_bytes();

// A whole text from a file, or from stdin for "-"; without its final line break. Errors:
// out_of_memory (more than `limit` bytes, as soon as that is known).
Result<std::string> read_text(const std::string& path, uint64_t limit = kMostOfTextFile);
// The same for a file that must not be empty. Errors: bad_file (only white space).
Result<std::string> read_filled(const std::string& path, uint64_t limit = kMostOfTextFile);
// An error about the contents of a file: exit 3, and the message starts with its name.
Error error_in_file(Error error, const std::string& path);
Result<std::string> read_stdin(uint64_t limit = kMostOfTextFile);

// In single quotes, for a shell.
std::string shell_quoted(std::string_view text);
// One word of a command line, as a shell reads it; quoted if it needs quotes.
std::string shell_word(const std::string& word);
// Remembers the line of this process for line_with().
void remember_line(int argc, char** argv);
// The line of this process with more words, as a shell reads it.
std::string line_with(const std::vector<std::string>& more);

std::string lower(std::string_view text);  // ASCII letters
// "a, b, c"
std::string list_of(const std::vector<std::string>& words);

// The non-empty parts of "a,b".
std::vector<std::string> split_list(const std::string& list);

// "12.3 MB"
std::string human_bytes(int64_t bytes);

}  // namespace loom::cli
