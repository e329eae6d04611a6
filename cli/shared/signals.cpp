#include "signals.hpp"

#include <signal.h>

namespace loom::cli {
namespace {

SignalFlag hung_up = 0;

void on_hangup(int) {
  hung_up = 1;
}

}  // namespace

void hangups_reload() {
  struct sigaction action = {};
  action.sa_handler = on_hangup;
  sigemptyset(&action.sa_mask);
  sigaction(SIGHUP, &action, nullptr);
}

bool take_hangup() {
  return hung_up.exchange(0) != 0;
}

}  // namespace loom::cli
