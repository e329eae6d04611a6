// The number of workers of all thread pools of this process that sleep until there is work. It may
// change at any time. For tests: they poll it instead of sleeping for a fixed time.
#pragma once

namespace loom::core {

int parked_workers();

}  // namespace loom::core
