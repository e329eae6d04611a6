// ForkWatch: whether this process is a child (fork) of the one that made the object. A child has
// only the thread that forked, so an object with threads of its own has lost them there.
#pragma once

namespace loom::core {

// How many forks are between the first process that asked and this one. 0: none.
int fork_count();

class ForkWatch {
 public:
  ForkWatch() : count_(fork_count()) {}
  // True in a child of the process that made this object.
  bool forked() const { return count_ != fork_count(); }

 private:
  int count_;
};

}  // namespace loom::core
