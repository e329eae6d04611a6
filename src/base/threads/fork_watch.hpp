// ForkWatch: whether this process is a child (fork) of the one that made the object. A child has
// only the thread that forked, so an object with threads of its own has lost them.
#pragma once

namespace loom::core {

// The number of forks between the first process that called this and the current one; 0 means none.
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
