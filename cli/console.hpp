// What every verb shares to talk to people and programs: stdout is data, stderr is notes, errors
// are one line "loom: ...", exit codes are documented in `loom --help`.
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

// Prints the error on stderr and returns the exit code for it. Control characters, which file names
// may hold, are written out: a terminal would obey them.
int fail(const Error& error);
int fail(Exit code, std::string_view message);
// For work that a signal stopped: 130 after Ctrl-C, 128 + the signal otherwise.
int fail_interrupted();

// "[text]" on stderr, likewise made safe for a terminal.
void note(std::string_view text);

// Data on stdout, at once.
void write_out(std::string_view text);
// A line of it that holds names from files; control characters are written out.
void write_line(std::string_view text);
// Is everything on stdout written?
bool flush_out();

bool stdin_is_terminal();
bool stdout_is_terminal();
bool stderr_is_terminal();  // and neither TERM=dumb nor CI says otherwise

// Ctrl-C, SIGTERM and SIGHUP set a flag, so that what is under way can stop and remove its
// temporary files; a second signal ends the program at once, and so does time after the latter two.
// A file that grows above the limit of the system is an error like a full disk.
void catch_signals();
bool interrupted();
// From now on Ctrl-C asks for something other than the end of the program, until three came: the
// caller forgets it with take_interrupt().
void interrupts_stop_replies();
// Was it Ctrl-C that interrupted()? Forgets it then.
bool take_interrupt();
// After a signal the program takes the time that it needs; a second one still ends it at once.
void stop_without_haste();
// From now on a reader of stdout that goes away (`| head`) does not end the program.
void keep_running_without_stdout();

// The largest resident memory of this process so far; 0 where the system does not say.
int64_t peak_rss_bytes();

// A whole text from a file, or from stdin for "-"; without its final line break.
// Errors: out_of_memory (more than `limit` bytes, as soon as that is known).
Result<std::string> read_text(const std::string& path, uint64_t limit = kMostOfTextFile);
// The same of a file that must hold something. Errors: bad_file (white space alone).
Result<std::string> read_filled(const std::string& path, uint64_t limit = kMostOfTextFile);
// An error about the contents of a file: exit 3, and the message begins with its name.
Error error_in_file(Error error, const std::string& path);
Result<std::string> read_stdin(uint64_t limit = kMostOfTextFile);

std::string lower(std::string_view text);  // ASCII letters
// "a, b, c"
std::string list_of(const std::vector<std::string>& words);

// The parts of "a,b" that are not empty.
std::vector<std::string> split_list(const std::string& list);

// "12.3 MB"
std::string human_bytes(int64_t bytes);

}  // namespace loom::cli
