// SIGHUP as a request to read files again, for servers.
#pragma once

namespace loom::cli {

// From now on SIGHUP does not stop the program: take_hangup() reports it, and clears it.
void hangups_reload();
bool take_hangup();

}  // namespace loom::cli
