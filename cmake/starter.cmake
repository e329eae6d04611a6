# The starter program: it runs language models, chats with them and describes model files, on this
# processor. It compiles a third of Loom (scripts/quickstart.sh). Its objects are those of the whole
# build, which compiles none of them again; cli/CMakeLists.txt links it.
#   LOOM_STARTER_HERE     a program can be linked from parts of rooms;
#   LOOM_STARTER_ABSENT   rooms that it leaves out;
#   LOOM_STARTER_room     its files of a room, without their ending; by default the whole room.
# Only main() and the definitions of absent parts are its own (loom_starter_rows()).
set(LOOM_STARTER_HERE ON)
if(LOOM_MINIMAL OR LOOM_CORE_ONLY OR CMAKE_SYSTEM_PROCESSOR MATCHES "^wasm")
  set(LOOM_STARTER_HERE OFF)
endif()
set(LOOM_STARTER_ABSENT backend/webgpu backend/webgpu/fusion backend/webgpu/kernels backend/webgpu/runtime
  backend/webgpu/tuning backend/webgpu/wgsl onnx/interpreter evolve onnx/export onnx/import formats/original
  formats/tflite formats/universal learn media table mesh onnx/file onnx/operators)
# One instruction set of this processor. Each set has the bits of all others.
set(LOOM_STARTER_ISA scalar)
set(LOOM_STARTER_ISAS LOOM_WITHOUT_VECTORS)  # see cpu.cpp
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64|ARM64")
  set(LOOM_STARTER_ISA neon)
elseif(EXISTS /proc/cpuinfo)
  file(STRINGS /proc/cpuinfo processor REGEX "^flags" LIMIT_COUNT 1)
  if("${processor} " MATCHES " fma .* f16c .* avx2 .* bmi2 ")
    set(LOOM_STARTER_ISA avx2)
  endif()
endif()
if(NOT LOOM_STARTER_ISA STREQUAL scalar)
  set(LOOM_STARTER_ISAS LOOM_WITHOUT_SCALAR LOOM_FEW_ISAS)
endif()
set(LOOM_STARTER_backend_cpu isa_${LOOM_STARTER_ISA} processor)
set(LOOM_STARTER_telemetry spread)
set(LOOM_STARTER_train_io file_memory)
set(LOOM_STARTER_convert checkpoint description_diff format_entity format_folder format_gguf format_json formats fresh_source
  language_model lora model_report open_model packing)
set(LOOM_STARTER_api beam_options beams chat chat_json chat_messages dtype engine files inspect memory_history model model_session names
  network_bytes reply suggested_sampling tensor text tokenizer)

# loom_starter_split(ROOM REST STARTER): moves the starter's files of a room from the first list to the other.
function(loom_starter_split name rest starter)
  set(files)
  if(LOOM_STARTER_HERE AND DEFINED LOOM_STARTER_${name})
    list(JOIN LOOM_STARTER_${name} "|" stems)
    set(files ${${rest}})
    list(FILTER files INCLUDE REGEX "/(${stems})\\.cpp$")
    list(REMOVE_ITEM ${rest} ${files})
  endif()
  set(${starter} ${files} PARENT_SCOPE)
  set(${rest} ${${rest}} PARENT_SCOPE)
endfunction()

# loom_starter_needs(OUT room...): the libraries that the starter links in place of these rooms. An
# absent room passes on the rooms that it names.
function(loom_starter_needs out)
  set(needs)
  foreach(room ${ARGN})
    string(REPLACE "/" "_" name ${room})
    if(room IN_LIST LOOM_STARTER_ABSENT)
      get_property(handed_on GLOBAL PROPERTY LOOM_STARTER_NEEDS_${name})
      list(APPEND needs ${handed_on})
    elseif(TARGET loom_${name}_starter)
      list(APPEND needs loom_${name}_starter)
    else()
      list(APPEND needs loom_${name})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES needs)
  set(${out} ${needs} PARENT_SCOPE)
endfunction()

# loom_starter_rows(): the messages for absent parts of the program, in place of these parts.
function(loom_starter_rows)
  set(src ${PROJECT_SOURCE_DIR}/src)
  add_library(loom_starter_rows STATIC EXCLUDE_FROM_ALL ${src}/backend/cpu/cpu.cpp ${src}/api/engine/gpu.cpp
    ${src}/convert/formats/format_npz.cpp ${src}/convert/formats/format_onnx.cpp ${src}/convert/formats/format_original.cpp
    ${src}/convert/formats/format_safetensors.cpp ${src}/convert/formats/format_tflite.cpp)
  target_compile_definitions(loom_starter_rows PRIVATE LOOM_STARTER ${LOOM_STARTER_ISAS} LOOM_WITHOUT_ARRAYS
    LOOM_WITHOUT_ONNX LOOM_WITHOUT_ORIGINAL LOOM_WITHOUT_TFLITE LOOM_WITHOUT_WEBGPU)
  loom_room_options(loom_starter_rows api)
endfunction()
