# Objects of rooms can become part of a shared library. Without interposition a call inside such a
# library stays as direct as in a program. WebAssembly here has no shared libraries.
get_property(LOOM_POSITION_INDEPENDENT GLOBAL PROPERTY TARGET_SUPPORTS_SHARED_LIBS)

# Where the time goes; LOOM_SMALL leaves these rooms as they are.
set(LOOM_ARITHMETIC "^(base|dtype|tensor|ops|text|backend/.*)$")

# What runs once for a file, a conversation or a call. For speed it would take a third more room in every
# program and wheel (docs/decisions/0055), for no time that anyone measures.
# Whoever chooses the level (build types None and Debug) gets it everywhere.
set(LOOM_COLD "^(layers|evolve|formats/.*|convert|bridge|api|capi|insight|chat|jinja|net|serve|donate|lab|puzzle|train_io)$")

# loom_room(PATH DEPENDS room...): one static library per folder of src/. Only the rooms it names are on
# its link line; the layering check compares the #includes with the same list. A room shows its headers
# and flags to those that link it by name (rooms, tests, the program); loom::loom hides them. A room of
# which a build leaves out everything (parts.cmake) only hands on what it names.
function(loom_room path)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  string(REPLACE "/" "_" name ${path})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${path}/*.cpp)
  loom_kept(${path} sources)
  list(TRANSFORM ARG_DEPENDS REPLACE "/" "_")
  list(TRANSFORM ARG_DEPENDS PREPEND loom_)
  if(NOT sources)
    add_library(loom_${name} INTERFACE)
    target_link_libraries(loom_${name} INTERFACE ${ARG_DEPENDS})
    return()
  endif()
  add_library(loom_${name} STATIC ${sources})
  set_property(GLOBAL APPEND PROPERTY LOOM_ROOMS ${name})
  # The names of a batch of files must not meet in a unity build; batches of this size are tested.
  set_target_properties(loom_${name} PROPERTIES UNITY_BUILD_BATCH_SIZE 12)
  if(LOOM_POSITION_INDEPENDENT)
    set_target_properties(loom_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    if(NOT WIN32)
      target_compile_options(loom_${name} PRIVATE -fno-semantic-interposition)
    endif()
  endif()
  # What a shared library of Loom shows is marked in its headers (loom/export.hpp). Functions that a
  # program does not use can be left out of it.
  set_target_properties(loom_${name} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_compile_options(loom_${name} PRIVATE -ffunction-sections -fdata-sections)
  if(LOOM_SMALL AND NOT path MATCHES "${LOOM_ARITHMETIC}")
    target_compile_options(loom_${name} PRIVATE -Oz)
  elseif(path MATCHES "${LOOM_COLD}" AND NOT MSVC AND CMAKE_BUILD_TYPE MATCHES "^Rel")
    target_compile_options(loom_${name} PRIVATE -Os)
  endif()
  target_include_directories(loom_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(loom_${name} PUBLIC loom_flags ${ARG_DEPENDS})
endfunction()
