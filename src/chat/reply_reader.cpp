#include "chat/reply_reader.hpp"

#include <utility>

namespace loom::core {
namespace {

// The limit of an unnamed beginning of a call; longer text is not a call.
constexpr size_t kMaxUnsure = size_t{1} << 16;

bool is_blank_byte(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

}  // namespace

ReplyReader::ReplyReader(const ToolFormat& format, Tools tools, bool thinking)
    : format_(format), tools_(std::move(tools)) {
  const auto add = [&](std::string_view text, Mark mark) {
    if (!text.empty()) marks_.emplace_back(text, mark);
  };
  add(format.think_open, Mark::think_open);
  add(format.think_close, Mark::think_close);
  add(format.section_open, Mark::section);
  add(format.open, Mark::call);
  add(format.close, Mark::pass);
  add(format.section_close, Mark::pass);
  for (const std::string_view mark : format.passed_over) add(mark, Mark::pass);
  if (thinking) {
    mode_ = Mode::reasoning;
    skip_space_ = true;
  }
}

void ReplyReader::feed(std::string_view text, const Sink& sink) {
  sink_ = &sink;
  for (const char c : text) step(c);
  sink_ = nullptr;
}

void ReplyReader::step(char c) {
  switch (mode_) {
    case Mode::call: in_call(c); break;
    case Mode::section: in_section(c); break;
    case Mode::text:
    case Mode::reasoning: scan(c); break;
  }
}

// Closing marks are dropped after calls, and are text if there were none. Marks of the whole reply,
// such as <|START_RESPONSE|>, are never text.
bool ReplyReader::applies(Mark mark) const {
  if (mode_ == Mode::reasoning) return mark == Mark::think_close;
  if (mark == Mark::think_close) return false;
  return mark != Mark::pass || skip_space_ || !calls_.empty() || !said_;
}

void ReplyReader::scan(char c) {
  const bool begins_bare = format_.syntax == ToolFormat::Syntax::bare && c == '{' &&
                           mode_ == Mode::text && !said_ && held_.empty() && calls_.empty();
  held_ += c;
  if (begins_bare) {
    raw_ = std::exchange(space_, {});
    held_.clear();
    begin_call();
    return in_call(c);
  }
  while (!held_.empty()) {
    bool grows = false;
    for (const auto& [text, mark] : marks_) {
      if (!applies(mark) || text.substr(0, held_.size()) != held_) continue;
      if (text.size() == held_.size()) return act(mark);
      grows = true;
    }
    if (grows) return;
    say(held_[0]);
    held_.erase(0, 1);
  }
}

void ReplyReader::act(Mark mark) {
  const std::string text = std::exchange(held_, {});
  switch (mark) {
    case Mark::section:
      raw_ = std::exchange(space_, {}) + text;
      mode_ = Mode::section;
      return;
    case Mark::call: raw_ = std::exchange(space_, {}) + text; return begin_call();
    case Mark::think_open: mode_ = Mode::reasoning; break;
    case Mark::think_close: mode_ = Mode::text; break;
    case Mark::pass: break;
  }
  space_.clear();
  skip_space_ = true;
}

// After the mark of a section a call must come.
void ReplyReader::in_section(char c) {
  raw_ += c;
  if (held_.empty() && is_blank_byte(c)) return;
  held_ += c;
  if (held_ == format_.open) {
    held_.clear();
    begin_call();
  } else if (format_.open.substr(0, held_.size()) != held_) {
    held_.clear();
    back_to_text();
  }
}

void ReplyReader::begin_call() {
  mode_ = Mode::call;
  sure_ = false;
  CallReader::Events events;
  events.name = [this](std::string name) {
    sure_ = true;
    raw_.clear();
    emit(Kind::call, name, static_cast<int>(calls_.size()));
    calls_.push_back({std::move(name), "", ""});
  };
  events.arguments = [this](std::string_view text) {
    calls_.back().arguments += text;
    emit(Kind::arguments, text, static_cast<int>(calls_.size()) - 1);
  };
  events.end = [this] {
    ReadCall& call = calls_.back();
    call.problem = tools_.problem(call.name, call.arguments);
  };
  reader_ = make_call_reader(format_, tools_, std::move(events));
}

void ReplyReader::in_call(char c) {
  if (!sure_) raw_ += c;
  const CallReader::State state = reader_->step(c);
  if (state == CallReader::State::done) return end_call();
  const bool too_long = !sure_ && raw_.size() > kMaxUnsure;
  if (state == CallReader::State::more && !too_long) return;
  if (!sure_) return back_to_text();
  reader_->finish();
  end_call();
  scan(c);
}

void ReplyReader::end_call() {
  mode_ = Mode::text;
  skip_space_ = true;
  said_ = true;
}

// It was not a call.
void ReplyReader::back_to_text() {
  mode_ = Mode::text;
  say_all(std::exchange(raw_, {}));
}

void ReplyReader::finish(const Sink& sink) {
  sink_ = &sink;
  if (mode_ == Mode::call && sure_) {
    reader_->finish();
    end_call();
  } else if (mode_ == Mode::call || mode_ == Mode::section) {
    held_.clear();
    back_to_text();
  }
  say_all(std::exchange(held_, {}));
  if (mode_ == Mode::text && calls_.empty() && !space_.empty()) {
    emit(Kind::text, std::exchange(space_, {}));
  }
  sink_ = nullptr;
}

void ReplyReader::say_all(std::string_view text) {
  for (const char c : text) say(c);
}

void ReplyReader::say(char c) {
  if (is_blank_byte(c)) {
    if (!skip_space_) space_ += c;
    return;
  }
  skip_space_ = false;
  said_ = said_ || mode_ == Mode::text;
  space_ += c;
  emit(mode_ == Mode::reasoning ? Kind::reasoning : Kind::text, std::exchange(space_, {}));
}

void ReplyReader::emit(Kind kind, std::string_view text, int call) {
  if (kind == Kind::text) text_ += text;
  if (kind == Kind::reasoning) reasoning_ += text;
  if (sink_ != nullptr && *sink_) (*sink_)(kind, text, call);
}

}  // namespace loom::core
