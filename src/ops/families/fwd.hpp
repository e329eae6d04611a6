// Forward declarations of this room, for headers that only pass its types on. Most files include
// such headers; without this file, every change of ops.hpp would recompile them.
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
struct RowPosition;
class Device;
class Program;
class Recorder;
class ThreadPool;
class Trace;

}  // namespace loom::core
