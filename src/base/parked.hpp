// How many workers of all thread pools of this process sleep until there is work. It changes at any
// time. For tests: they wait for it instead of sleeping for as long as workers stay awake.
#pragma once

namespace loom::core {

int parked_workers();

}  // namespace loom::core
