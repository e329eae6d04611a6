# Objects of rooms can become part of a shared library. Without interposition a call inside such a
# library stays as direct as in a program. WebAssembly here has no shared libraries.
get_property(LOOM_POSITION_INDEPENDENT GLOBAL PROPERTY TARGET_SUPPORTS_SHARED_LIBS)

# Where the time goes; LOOM_SMALL leaves these rooms as they are.
set(LOOM_ARITHMETIC "^(base|dtype|tensor|ops|text|backend/.*)$")

# What runs once for a file, a conversation or a call. For speed it would take a third more room in every
# program and wheel (docs/decisions/0055), for no time that anyone measures.
# Whoever chooses the level (build types None and Debug) gets it everywhere.
set(LOOM_COLD "^(layers|evolve|formats/.*|convert|bridge|api|capi|insight|chat|jinja|net|serve|donate|lab|puzzle|train_io)$")

# loom_room_options(TARGET PATH): how the files of a room are compiled.
function(loom_room_options target path)
  # The names of a batch of files must not meet in a unity build; batches of this size are tested.
  set_target_properties(${target} PROPERTIES UNITY_BUILD_BATCH_SIZE 12)
  if(LOOM_POSITION_INDEPENDENT)
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    if(NOT WIN32)
      target_compile_options(${target} PRIVATE -fno-semantic-interposition)
    endif()
  endif()
  # What a shared library of Loom shows is marked in its headers (loom/export.hpp). Functions that a
  # program does not use can be left out of it.
  set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_compile_options(${target} PRIVATE -ffunction-sections -fdata-sections)
  if(LOOM_SMALL AND NOT path MATCHES "${LOOM_ARITHMETIC}")
    target_compile_options(${target} PRIVATE -Oz)
  elseif(path MATCHES "${LOOM_COLD}" AND NOT MSVC AND CMAKE_BUILD_TYPE MATCHES "^Rel")
    target_compile_options(${target} PRIVATE -Os)
  endif()
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${target} PUBLIC loom_flags)
endfunction()

# loom_room(PATH DEPENDS room...): one static library per folder of src/. Only the rooms it names are on
# its link line; the layering check compares the #includes with the same list. A room shows its headers
# and flags to those that link it by name (rooms, tests, the program); loom::loom hides them. A room of
# which a build leaves out everything (parts.cmake) only hands on what it names. If the starter has some files
# of a room (starter.cmake), a second library holds their objects alone. FOLDERS: folders of a room that are no rooms.
function(loom_room path)
  cmake_parse_arguments(ARG "" "" "DEPENDS;FOLDERS" ${ARGN})
  string(REPLACE "/" "_" name ${path})
  set(patterns ${PROJECT_SOURCE_DIR}/src/${path}/*.cpp)
  foreach(folder ${ARG_FOLDERS})
    list(APPEND patterns ${PROJECT_SOURCE_DIR}/src/${path}/${folder}/*.cpp)
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
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
