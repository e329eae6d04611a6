// Names of this room, for headers that only pass them on. Most of the tree includes such headers;
// without this file every change of ops.hpp would compile it anew.
#pragma once

#include <cstdint>

namespace loom::core {

enum class OpId : uint8_t;
enum class ActivationMode : uint8_t { q8, f32 };

struct Command;
struct KvCache;
struct Lane;
struct OpProfile;
struct Ops;
struct RowPlace;
class Device;
class Program;
class Recorder;
class ThreadPool;
class Trace;

}  // namespace loom::core
