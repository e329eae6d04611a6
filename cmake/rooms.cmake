# Objects of rooms can become part of a shared library. Without interposition a call inside such a
# library stays as direct as in a program. WebAssembly here has no shared libraries.
get_property(LOOM_POSITION_INDEPENDENT GLOBAL PROPERTY TARGET_SUPPORTS_SHARED_LIBS)

# Rooms that take most of the run time; LOOM_SMALL does not change them.
set(LOOM_ARITHMETIC "^(base|dtype|tensor|ops|text|backend/.*)$")

# Code that runs once per file, conversation or call. Optimization for speed would add a third to
# every program and wheel (docs/decisions/0055), with no measurable gain. If you choose the level
# yourself (build types None and Debug), it applies everywhere.
set(LOOM_COLD "^(layers|learn|options|backend/webgpu/(tuning|wgsl)|evolve|families|formats/.*|convert|bridge|api|capi|telemetry|chat|jinja|net|serve|remote|lab|onnx/(file|import|export)|puzzle|train_io|table)$")

# The level for such code. Clang's -Os inlines as much as its -O2; its -Oz has the size of GCC's -Os.
set(LOOM_COLD_LEVEL -Os)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(LOOM_COLD_LEVEL -Oz)
endif()

# Files of such rooms with loops over samples on the host, as ROOM/FILE.
set(LOOM_HOT "^learn/(augment|ctc_batch|dataset|kfac|lbfgs|output_scores|pairs|scores)$")

# loom_room_options(TARGET PATH): compile options of the files of a room.
function(loom_room_options target path)
  # Names in a batch of files must not collide in a unity build; batches of this size are tested.
  set_target_properties(${target} PROPERTIES UNITY_BUILD_BATCH_SIZE 12)
  if(LOOM_POSITION_INDEPENDENT)
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    if(NOT WIN32)
      target_compile_options(${target} PRIVATE -fno-semantic-interposition)
    endif()
  endif()
  # The headers mark the symbols that a shared library of Loom exports (loom/export.hpp). The linker
  # may drop functions that a program does not use.
  set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_compile_options(${target} PRIVATE -ffunction-sections -fdata-sections)
  if(LOOM_SMALL AND NOT path MATCHES "${LOOM_ARITHMETIC}")
    target_compile_options(${target} PRIVATE -Oz)
  elseif(path MATCHES "${LOOM_COLD}" AND NOT MSVC AND CMAKE_BUILD_TYPE MATCHES "^Rel")
    target_compile_options(${target} PRIVATE ${LOOM_COLD_LEVEL})
    loom_hot_files(${target} ${path})
  endif()
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${target} PUBLIC loom_flags)
endfunction()

# loom_hot_files(TARGET PATH): the files of LOOM_HOT are optimized for speed.
function(loom_hot_files target path)
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    get_filename_component(stem ${source} NAME_WE)
    if("${path}/${stem}" MATCHES "${LOOM_HOT}")
      set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS -O2)
    endif()
  endforeach()
endfunction()

# loom_sources(ROOM LIST): the files of a room and of its folders. Rooms below a room are not its folders.
# Files are in the order of their names, so moving a file does not change the batches of unity builds.
function(loom_sources path list)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${path}/*.cpp)
  if(NOT path STREQUAL "backend/webgpu")
    file(GLOB below CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${path}/*/*.cpp)
    list(APPEND sources ${below})
  endif()
  list(SORT sources COMPARE FILE_BASENAME)
  set(${list} ${sources} PARENT_SCOPE)
endfunction()

# loom_room(PATH DEPENDS room...): one static library per folder of src/. Its link line has only the
# rooms that it names; the layering check compares the #includes with the same list. A room passes
# its headers and flags to targets that link it by name (rooms, tests, the program); loom::loom
# hides them. If a build leaves out a whole room (parts.cmake), the room only passes on the rooms
# that it names. If the starter has some files of a room (starter.cmake), a second library holds
# their objects alone.
function(loom_room path)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  string(REPLACE "/" "_" name ${path})
  loom_sources(${path} sources)
  loom_kept(${path} sources)
  loom_starter_split(${name} sources starter)
  loom_starter_needs(starter_needs ${ARG_DEPENDS})
  set_property(GLOBAL PROPERTY LOOM_STARTER_NEEDS_${name} ${starter_needs})
  list(TRANSFORM ARG_DEPENDS REPLACE "/" "_")
  list(TRANSFORM ARG_DEPENDS PREPEND loom_)
  if(NOT sources)
    add_library(loom_${name} INTERFACE)
    target_link_libraries(loom_${name} INTERFACE ${ARG_DEPENDS})
    return()
  endif()
  if(starter)
    add_library(loom_${name}_starter STATIC EXCLUDE_FROM_ALL ${starter})
    loom_room_options(loom_${name}_starter ${path})
    target_link_libraries(loom_${name}_starter PUBLIC ${starter_needs})
    set_property(GLOBAL APPEND PROPERTY LOOM_ROOMS ${name}_starter)
    list(APPEND sources $<TARGET_OBJECTS:loom_${name}_starter>)
  endif()
  add_library(loom_${name} STATIC ${sources})
  set_property(GLOBAL APPEND PROPERTY LOOM_ROOMS ${name})
  loom_room_options(loom_${name} ${path})
  target_link_libraries(loom_${name} PUBLIC ${ARG_DEPENDS})
endfunction()

# loom_room_definitions(ROOM DEFINITION...): for all files of a room, if it has any here.
function(loom_room_definitions name)
  foreach(target loom_${name} loom_${name}_starter)
    set(type "")
    if(TARGET ${target})
      get_target_property(type ${target} TYPE)
    endif()
    if(type AND NOT type STREQUAL "INTERFACE_LIBRARY")
      target_compile_definitions(${target} PRIVATE ${ARGN})
    endif()
  endforeach()
endfunction()
