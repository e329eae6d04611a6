// The result structs that the callbacks of webgpu.h fill in.
#pragma once

#include <string>

#include "backend/webgpu/runtime/wgpu.hpp"

namespace loom::core::webgpu {

template <class F>
wgpu::CallbackInfo callback(F* function, void* user1, void* user2,
                            uint32_t mode = wgpu::kProcessEvents) {
  wgpu::CallbackInfo info;
  info.mode = mode;
  info.call = reinterpret_cast<void*>(function);
  info.user1 = user1;
  info.user2 = user2;
  return info;
}

// The result of a request for an object.
template <class T>
struct Answer {
  bool done = false;
  uint32_t status = 0;
  T value = nullptr;
  std::string message;

  static void receive(uint32_t status, T value, wgpu::StringView message, void* user, void*) {
    auto* answer = static_cast<Answer*>(user);
    answer->status = status;
    answer->value = value;
    answer->message = message.view();
    answer->done = true;
  }
};

struct Done {
  bool done = false;
  uint32_t status = 0, type = 0;
  std::string message;

  static void receive(uint32_t status, wgpu::StringView message, void* user, void*) {
    auto* self = static_cast<Done*>(user);
    self->status = status;
    self->message = message.view();
    self->done = true;
  }
  static void receive_error(uint32_t status, uint32_t type, wgpu::StringView message, void* user,
                            void*) {
    auto* self = static_cast<Done*>(user);
    self->status = status;
    self->type = type;
    self->message = message.view();
    self->done = true;
  }
};

// Joins the multi-line reports of compilers to one line, without gaps.
std::string one_line(const std::string& message);

}  // namespace loom::core::webgpu
