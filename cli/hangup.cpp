#include "hangup.hpp"

#include <signal.h>

namespace loom::cli {
namespace {

volatile sig_atomic_t hung_up = 0;

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
  if (hung_up == 0) return false;
  hung_up = 0;
  return true;
}

}  // namespace loom::cli
