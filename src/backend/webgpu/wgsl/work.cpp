#include "backend/webgpu/wgsl/work.hpp"

#include <algorithm>
#include <cctype>
#include <vector>

#include "base/text.hpp"

namespace loom::core::webgpu {
namespace {

// Invocations of concurrent works: about the capacity of a large device. More would not make it
// busier, and would slow down a kernel that needs many registers and much workgroup memory.
constexpr int64_t kMaxInvocations = 160 << 10;
constexpr std::string_view kPrefixes[kMaxBeside] = {"", "second_", "third_", "fourth_"};

bool any_lanes(const Work& work) {
  const bool few_items = work.form == Form::items && work.workgroups() == 1 && work.lanes == 64;
  return work.any_lanes || few_items;
}

std::string_view form_text(Form form) {
  switch (form) {
    case Form::items:
      return "  let i = (group.y * p.width + group.x) * lanes + lane;\n"
             "  if (i < p.items) { run(i); }\n";
    case Form::spread:
      return "  let i = (group.y * p.width + group.x) * lanes * each + lane;\n"
             "  if (i < p.items) { run(i); }\n";
    case Form::rows:
      return "  let row = group.y * p.width + group.x;\n"
             "  if (row < p.items) { run(row, lane); }\n";
    case Form::groups: break;
  }
  return "  run(group, lane);\n";
}

constexpr std::string_view kSpots = R"(
fn spot(i: u32, j: u32) -> u32 { return min(i + j * lanes, p.items - 1u); }
fn here(i: u32, j: u32) -> bool { return i + j * lanes < p.items; }
)";

// The functions by which a kernel reads and writes an operand.
std::string accessors(const Operand& o) {
  using View = Operand::View;
  std::string out;
  const std::string at = cat("b", o.binding, "[p.", o.name, "_o + i]");
  const bool written = o.access != Access::read;
  out += cat("const has_", o.name, ": bool = ", o.bound() ? "true" : "false", ";\n");
  switch (o.view) {
    case View::absent:
      out += cat("fn ", o.name, "_at(i: u32) -> f32 { return 0.0; }\n");
      out += cat("fn ", o.name, "_set(i: u32, v: f32) {}\n");
      out += cat("fn ", o.name, "_word(i: u32) -> u32 { return 0u; }\n");
      out += cat("fn ", o.name, "_put(i: u32, v: u32) {}\n");
      break;
    case View::absent_ids:
      out += cat("fn ", o.name, "_at(i: u32) -> i32 { return 0; }\n");
      out += cat("fn ", o.name, "_set(i: u32, v: i32) {}\n");
      break;
    case View::f32:
    case View::i32: {
      const std::string_view type = o.view == View::f32 ? "f32" : "i32";
      out += cat("fn ", o.name, "_at(i: u32) -> ", type, " { return bitcast<", type, ">(", at,
                 "); }\n");
      if (written) {
        out += cat("fn ", o.name, "_set(i: u32, v: ", type, ") { ", at, " = bitcast<u32>(v); }\n");
      }
      break;
    }
    case View::words:
      out += cat("fn ", o.name, "_word(i: u32) -> u32 { return ", at, "; }\n");
      if (written) out += cat("fn ", o.name, "_put(i: u32, v: u32) { ", at, " = v; }\n");
      break;
    case View::quads:
      out += cat("fn ", o.name, "_quad(i: u32) -> vec4<u32> { ");
      if (o.alone) {
        out += cat("return b", o.binding, "[p.", o.name, "_o / 4u + i]; }\n");
      } else {
        out += cat("let j = p.", o.name, "_o + 4u * i; return vec4<u32>(b", o.binding, "[j], b",
                   o.binding, "[j + 1u], b", o.binding, "[j + 2u], b", o.binding, "[j + 3u]); }\n");
      }
      // Selects one of four by comparisons, not by an index: a compiler may keep indexed values in
      // memory.
      out += cat("fn ", o.name, "_word(i: u32) -> u32 {\n  let quad = ", o.name,
                 "_quad(i / 4u);\n  let pair = select(quad.xy, quad.zw, i % 4u >= 2u);\n"
                 "  return select(pair.x, pair.y, i % 2u == 1u);\n}\n");
      break;
  }
  return out;
}

// All of a work except main and shared parts: run_workgroup(group, lane) runs one of its
// workgroups.
std::string work_wgsl(const Work& work, int subgroup) {
  std::string out;
  for (int i = 0; i < work.constant_count; ++i) {
    const auto& [name, value] = work.constants[static_cast<size_t>(i)];
    out += cat("const ", name, ": u32 = ", value, "u;\n");
  }
  out += cat("const lanes: u32 = ", work.lanes, "u;\n");
  out += cat("const subgroup: u32 = ", std::min(subgroup, work.lanes), "u;\n");
  for (const Operand& o : work.all_operands()) out += accessors(o);
  std::string body;
  for (int i = 0; i < work.text_count; ++i) body += work.texts[static_cast<size_t>(i)];
  body += work.kernel.text;
  out += library_for(body, subgroup > 1) + body;
  if (work.form == Form::spread) out += kSpots;
  return out +
         cat("fn run_workgroup(group: vec3<u32>, lane: u32) {\n", form_text(work.form), "}\n");
}

void add_members(const Work& work, std::string_view prefix, std::string& out) {
  for (const Operand& o : work.all_operands()) {
    if (!o.bound()) continue;
    out += cat("  ", prefix, o.name, "_o: u32, ", prefix, o.name, "_s: u32,\n");
  }
  for (const Value& v : work.all_values()) {
    out += cat("  ", prefix, v.name, v.real ? ": f32,\n" : ": u32,\n");
  }
}

constexpr std::string_view kMain =
    "@compute @workgroup_size(lanes)\nfn main(@builtin(workgroup_id) group: vec3<u32>, "
    "@builtin(local_invocation_index) lane: u32) {\n";

// Workgroups in one line: those of the first work, then those of the second, ...
std::string main_beside(size_t count) {
  std::string out(kMain);
  out += "  var n = group.x;\n";
  for (size_t i = 0; i < count; ++i) {
    const std::string_view prefix = kPrefixes[i];
    const std::string x = cat("p.", prefix, "its_width"), y = cat("p.", prefix, "its_height");
    out += cat("  if (n < p.", prefix, "its_groups) {\n    ", prefix, "run_workgroup(vec3(n % ", x,
               ", n / ", x, " % ", y, ", n / ", x, " / ", y,
               "), lane);\n    return;\n  }\n  n -= p.", prefix, "its_groups;\n");
  }
  return out + "}\n";
}

bool is_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// A token of WGSL: a name or a number, or one other character.
std::vector<std::string_view> pieces(std::string_view text) {
  std::vector<std::string_view> all;
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    if (text.substr(i, 2) == "//") {
      end = std::min(text.find('\n', i), text.size());
      i = end;
      continue;
    }
    if (is_name(text[i])) {
      while (end < text.size() && is_name(text[end])) ++end;
    }
    all.push_back(text.substr(i, end - i));
    i = end;
  }
  return all;
}

bool blank(std::string_view piece) {
  return piece == " " || piece == "\n";
}

// The next (step 1) or previous (step -1) token of token `i` that is not blank.
std::string_view neighbour(const std::vector<std::string_view>& all, size_t i, int step) {
  for (auto j = static_cast<int64_t>(i) + step; j >= 0 && j < static_cast<int64_t>(all.size());
       j += step) {
    if (!blank(all[static_cast<size_t>(j)])) return all[static_cast<size_t>(j)];
  }
  return {};
}

// Module-level declarations: fn, const, struct, var.
std::vector<std::string_view> declared(const std::vector<std::string_view>& all) {
  std::vector<std::string_view> names;
  int depth = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i] == "{") ++depth;
    if (all[i] == "}") --depth;
    if (depth > 0) continue;
    if (all[i] == "fn" || all[i] == "const" || all[i] == "struct") {
      names.push_back(neighbour(all, i, 1));
    } else if (all[i] == "var") {
      size_t j = i + 1;
      while (all[j] != ">") ++j;  // var<workgroup>, var<private>
      names.push_back(neighbour(all, j, 1));
    }
  }
  return names;
}

}  // namespace

int Work::words() const {
  int count = value_count;
  for (const Operand& o : all_operands()) count += o.bound() ? 2 : 0;
  return count;
}

void fix_lanes(std::span<Work> works) {
  int fixed = 0, most = 0;
  for (const Work& work : works) {
    most = std::max(most, work.lanes);
    if (!any_lanes(work)) fixed = work.lanes;
  }
  for (Work& work : works) work.lanes = fixed != 0 ? fixed : most;
}

bool fits_beside(std::span<const Work> others, const Work& work, const AdapterReport& adapter) {
  if (others.empty() || others.size() == kMaxBeside) return false;
  int64_t shared = 0, workgroups = 0, invocations = 0;
  int words = 0, lanes = 0;
  const auto counts = [&](const Work& one) {
    shared += one.shared;
    workgroups += one.workgroups();
    invocations += one.workgroups() * one.lanes;
    words += one.words() + kPlaceWords;
    if (any_lanes(one)) return true;
    if (lanes != 0 && lanes != one.lanes) return false;
    lanes = one.lanes;
    return true;
  };
  for (const Work& other : others) {
    if (other.shared < 0 || !counts(other)) return false;
  }
  if (work.shared < 0 || !counts(work) || invocations > kMaxInvocations ||
      shared > adapter.max_workgroup_memory || workgroups > adapter.max_workgroups ||
      words > static_cast<int>(kUniformBlock) / 4) {
    return false;
  }
  std::vector<Work> all(others.begin(), others.end());
  all.push_back(work);
  Signature signature;
  std::array<Binding, Signature::kMax> storage;
  return webgpu::bind(all, signature, storage).ok();
}

Status bind(std::span<Work> works, Signature& signature,
            std::array<Binding, Signature::kMax>& storage) {
  signature = {};
  const auto all_of = [](const Operand& o) {
    return Binding{o.slice.buffer, 0, static_cast<uint64_t>(o.slice.buffer_bytes)};
  };
  const auto each = [&](auto&& f) {
    for (Work& work : works) {
      for (int i = 0; i < work.operand_count; ++i) f(work.operands[static_cast<size_t>(i)]);
    }
  };
  bool enough = true;
  const auto next = [&](Operand& o) {
    enough = enough && signature.count < Signature::kMax;
    if (!enough) return;
    o.binding = signature.count;
    storage[static_cast<size_t>(signature.count++)] = all_of(o);
  };
  each([&](Operand& o) {
    o.alone = o.bound() && o.view == Operand::View::quads;
    if (!o.alone) return;
    each([&](const Operand& other) {
      const bool writes = other.bound() && other.access != Access::read;
      if (writes && other.slice.buffer == o.slice.buffer) o.alone = false;
    });
  });
  each([&](Operand& o) {
    if (!o.bound() || o.alone) return;
    int known = 0;
    while (known < signature.count &&
           storage[static_cast<size_t>(known)].buffer != o.slice.buffer) {
      ++known;
    }
    o.binding = known;
    if (known == signature.count) next(o);
    if (enough && o.access != Access::read) signature.writable |= 1U << o.binding;
  });
  each([&](Operand& o) {
    if (o.bound() && o.alone) next(o);
  });
  if (enough) return {};
  return make_error(Code::internal, cat(works[0].kernel.name, ": too many buffers"));
}

PipelineKey pipeline_key(std::span<const Work> works, const Signature& signature) {
  const auto address = [](std::string_view text) {
    return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(text.data()));
  };
  PipelineKey key;
  key.add((uint64_t{signature.writable} << 24) | (static_cast<uint64_t>(signature.count) << 16) |
          works.size());
  for (const Work& work : works) {
    key.add(address(work.kernel.text));
    key.add((static_cast<uint64_t>(work.form) << 32) | static_cast<uint64_t>(work.lanes));
    for (int i = 0; i < work.text_count; ++i) {
      key.add(address(work.texts[static_cast<size_t>(i)]));
    }
    for (int i = 0; i < work.constant_count; ++i) {
      key.add(static_cast<uint64_t>(work.constants[static_cast<size_t>(i)].second));
    }
    uint64_t word = 0;
    int count = 0;
    for (const Operand& o : work.all_operands()) {
      word = (word << 8) | static_cast<uint64_t>((static_cast<int>(o.view) << 5) |
                                                 (o.binding << 1) | static_cast<int>(o.alone));
      if (++count % 8 == 0) {
        key.add(word);
        word = 0;
      }
    }
    key.add(word);
  }
  return key;
}

int64_t parameter_bytes(std::span<const Work> works) {
  int64_t words = 1;  // the last member, which is not written
  for (const Work& work : works) words += work.words() + (works.size() > 1 ? kPlaceWords : 0);
  return words * 4;
}

int parameters(std::span<const Work> works, std::span<uint32_t> words) {
  size_t count = 0;
  for (const Work& work : works) {
    for (const Operand& o : work.all_operands()) {
      if (!o.bound()) continue;
      words[count++] = static_cast<uint32_t>(o.slice.offset / 4);
      words[count++] = static_cast<uint32_t>(o.stride);
    }
    for (const Value& v : work.all_values()) words[count++] = v.bits;
    if (works.size() == 1) continue;
    words[count++] = static_cast<uint32_t>(work.workgroups());
    words[count++] = work.groups[0];
    words[count++] = work.groups[1];
  }
  return static_cast<int>(count);
}

std::string pipeline_wgsl(std::span<const Work> works, const Signature& signature,
                          const Dialect& dialect) {
  std::string out = "struct Params {\n";
  for (size_t i = 0; i < works.size(); ++i) {
    add_members(works[i], kPrefixes[i], out);
    if (works.size() == 1) continue;
    for (const char* name : {"its_groups", "its_width", "its_height"}) {
      out += cat("  ", kPrefixes[i], name, ": u32,\n");
    }
  }
  out += "  end: u32,\n}\n";
  out += parameter_bytes(works) <= dialect.immediates
             ? "var<immediate> p: Params;\n"
             : "@group(0) @binding(0) var<uniform> p: Params;\n";
  for (int b = 0; b < signature.count; ++b) {
    const bool alone = std::any_of(works.begin(), works.end(), [&](const Work& work) {
      const std::span<const Operand> all = work.all_operands();
      return std::any_of(all.begin(), all.end(),
                         [&](const Operand& o) { return o.alone && o.binding == b && o.bound(); });
    });
    const bool writable = ((signature.writable >> b) & 1) != 0;
    out += cat("@group(0) @binding(", b + 1, ") var<storage, ", writable ? "read_write" : "read",
               "> b", b, ": array<", alone ? "vec4<u32>" : "u32", ">;\n");
  }
  for (size_t i = 0; i < works.size(); ++i) {
    const std::string text = work_wgsl(works[i], dialect.subgroup);
    out += i == 0 ? text : renamed(text, kPrefixes[i]);
  }
  out += works.size() > 1 ? main_beside(works.size())
                          : cat(kMain, "  run_workgroup(group, lane);\n}\n");
  const bool swaps = out.find("subgroupShuffleXor") != std::string::npos;
  return swaps && dialect.enable ? "enable subgroups;\n" + out : out;
}

// Struct members keep their names, except those of p, which all works share.
std::string renamed(std::string_view text, std::string_view prefix) {
  const std::vector<std::string_view> all = pieces(text);
  std::vector<std::string_view> names = declared(all);
  std::sort(names.begin(), names.end());
  std::string out;
  int depth = 0, struct_depth = -1;
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string_view piece = all[i];
    if (piece == "struct") struct_depth = depth;
    if (piece == "{") ++depth;
    if (piece == "}" && --depth == struct_depth) struct_depth = -1;
    const std::string_view before = neighbour(all, i, -1);
    const bool of_p = before == "." && i >= 2 && all[i - 2] == "p";
    const bool member =
        before == "." || (struct_depth >= 0 && depth > struct_depth && neighbour(all, i, 1) == ":");
    if (of_p || (!member && std::binary_search(names.begin(), names.end(), piece))) out += prefix;
    out += piece;
  }
  return out;
}

}  // namespace loom::core::webgpu
