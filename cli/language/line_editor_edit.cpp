// LineEditor over libedit, which does not support pasted text. The terminal brackets it (xterm's
// mode 2004), and the text between the brackets is inserted unchanged.
#include <histedit.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "../shared/console.hpp"
#include "../shared/signals.hpp"
#include "line_editor.hpp"

namespace loom::cli {
namespace {

constexpr int kLinesOfHistory = 1000;
constexpr size_t kMaxPastedLines = 8;       // that are shown unchanged
constexpr size_t kMaxPastedLetters = 1000;  // likewise
constexpr int kPollMilliseconds = 200;      // the longest delay of a signal between two calls
constexpr std::wstring_view kPasteEnds = L"\x1b[201~";

SignalFlag window_changed = 0;

void on_window(int) {
  window_changed = 1;
}

// The character set of the terminal: UTF-8 if the environment names no locale.
void choose_letters() {
  std::setlocale(LC_CTYPE, "");
  if (MB_CUR_MAX == 1) std::setlocale(LC_CTYPE, "C.UTF-8");
}

class EditedLines : public LineEditor {
 public:
  EditedLines(std::FILE* screen, const std::string& history) : screen_(screen), file_(history) {
    choose_letters();
    edit_ = el_init("loom", stdin, screen, stderr);
    history_ = history_init();
    HistEvent event;
    ::history(history_, &event, H_SETSIZE, kLinesOfHistory);
    ::history(history_, &event, H_SETUNIQUE, 1);
    if (!file_.empty()) ::history(history_, &event, H_LOAD, file_.c_str());
    el_set(edit_, EL_CLIENTDATA, this);
    el_set(edit_, EL_PROMPT, &EditedLines::prompt_of);
    el_set(edit_, EL_EDITOR, "emacs");
    el_set(edit_, EL_HIST, ::history, history_);
    el_set(edit_, EL_GETCFN, &EditedLines::letter_of);
    // el_set would copy both texts and never free them.
    el_wset(edit_, EL_ADDFN, L"loom-paste", L"Insert a text that is pasted",
            &EditedLines::paste_of);
    el_set(edit_, EL_BIND, "\\e[200~", "loom-paste", nullptr);
    el_set(edit_, EL_BIND, "^R", "em-inc-search-prev", nullptr);
    el_set(edit_, EL_BIND, "\\e[3~", "ed-delete-next-char", nullptr);
    el_set(edit_, EL_BIND, "\\e[H", "ed-move-to-beg", nullptr);
    el_set(edit_, EL_BIND, "\\e[F", "ed-move-to-end", nullptr);
    struct sigaction action = {};
    action.sa_handler = on_window;
    sigemptyset(&action.sa_mask);
    sigaction(SIGWINCH, &action, &window_before_);
  }
  ~EditedLines() override {
    sigaction(SIGWINCH, &window_before_, nullptr);
    el_end(edit_);
    history_end(history_);
  }
  EditedLines(const EditedLines&) = delete;
  EditedLines& operator=(const EditedLines&) = delete;

  Came read(const std::string& prompt, std::string& line) override {
    prompt_ = prompt;
    pasted_.clear();
    bracket_pastes(true);
    el_set(edit_, EL_PREP_TERM, 1);  // before the prompt invites to type
    int count = 0;
    const char* text = el_gets(edit_, &count);
    bracket_pastes(false);
    if (interrupted()) return Came::interrupted;
    if (text == nullptr || count <= 0) return Came::end;
    line = text;
    if (!line.empty() && line.back() == '\n') line.pop_back();
    put_pastes_back(line);
    return Came::line;
  }

  void remember(const std::string& line) override {
    HistEvent event;
    ::history(history_, &event, H_ENTER, line.c_str());
    if (!file_.empty()) ::history(history_, &event, H_SAVE, file_.c_str());
  }

 private:
  static EditedLines& self(EditLine* edit) {
    void* data = nullptr;
    el_get(edit, EL_CLIENTDATA, &data);
    return *static_cast<EditedLines*>(data);
  }
  static char* prompt_of(EditLine* edit) { return self(edit).prompt_.data(); }
  static int letter_of(EditLine* edit, wchar_t* letter) { return self(edit).next(*letter); }
  static unsigned char paste_of(EditLine* edit, wint_t) { return self(edit).paste(); }

  void bracket_pastes(bool on) {
    std::fputs(on ? "\x1b[?2004h" : "\x1b[?2004l", screen_);
    std::fflush(screen_);
  }

  // The next byte: 1; 0 at the end; -1 after a signal.
  int next_byte(char& byte) {
    for (;;) {
      if (interrupted()) return -1;
      if (window_changed != 0) {
        window_changed = 0;
        el_resize(edit_);
      }
      struct pollfd input = {STDIN_FILENO, POLLIN, 0};
      if (poll(&input, 1, kPollMilliseconds) <= 0) continue;
      const ssize_t got = ::read(STDIN_FILENO, &byte, 1);
      // Ctrl-D that was typed during a reply arrives as a zero byte.
      if (got == 1 && byte == '\0') byte = '\x04';
      if (got >= 0) return static_cast<int>(got);
      if (errno != EINTR && errno != EAGAIN) return -1;
    }
  }

  // The same for a character; invalid bytes become U+FFFD.
  int next(wchar_t& letter) {
    std::mbstate_t state = {};
    for (int bytes = 0; bytes < 8; ++bytes) {
      char byte = 0;
      if (const int got = next_byte(byte); got <= 0) return got;
      const size_t used = std::mbrtowc(&letter, &byte, 1, &state);
      if (used == static_cast<size_t>(-2)) continue;
      if (used == static_cast<size_t>(-1)) break;
      return 1;
    }
    letter = L'\xfffd';
    return 1;
  }

  unsigned char paste() {
    std::wstring text;
    wchar_t letter = 0;
    while (!text.ends_with(kPasteEnds)) {
      if (next(letter) <= 0) return CC_EOF;
      text += letter;
    }
    text.resize(text.size() - kPasteEnds.size());
    std::replace(text.begin(), text.end(), L'\r', L'\n');
    std::erase_if(text,
                  [](wchar_t c) { return (c < 0x20 && c != L'\n' && c != L'\t') || c == 0x7f; });
    const auto lines = static_cast<size_t>(std::count(text.begin(), text.end(), L'\n')) + 1;
    if (lines > kMaxPastedLines || text.size() > kMaxPastedLetters) {
      // More than a screen holds: a placeholder represents it until the line is complete.
      const std::wstring mark = L"[text " + std::to_wstring(pasted_.size() + 1) + L", " +
                                std::to_wstring(lines) + L" lines]";
      pasted_.push_back({narrow(mark), narrow(text)});
      text = mark;
    }
    return el_winsertstr(edit_, text.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
  }

  static std::string narrow(const std::wstring& text) {
    std::string out;
    std::mbstate_t state = {};
    for (const wchar_t letter : text) {
      std::vector<char> bytes(MB_CUR_MAX);
      const size_t count = std::wcrtomb(bytes.data(), letter, &state);
      if (count != static_cast<size_t>(-1)) out.append(bytes.data(), count);
    }
    return out;
  }

  void put_pastes_back(std::string& line) const {
    for (const auto& [mark, text] : pasted_)
      if (const size_t at = line.find(mark); at != line.npos) line.replace(at, mark.size(), text);
  }

  std::FILE* screen_;
  std::string file_, prompt_;
  EditLine* edit_ = nullptr;
  ::History* history_ = nullptr;
  struct sigaction window_before_ = {};
  std::vector<std::pair<std::string, std::string>> pasted_;  // the placeholder, and the text
};

}  // namespace

std::unique_ptr<LineEditor> LineEditor::for_terminal(const std::string& history) {
  std::FILE* screen = isatty(STDERR_FILENO) != 0 ? stderr : stdout;
  return std::make_unique<EditedLines>(screen, history);
}

}  // namespace loom::cli
