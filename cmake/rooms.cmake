# loom_room(PATH DEPENDS room...): one static library per folder of src/. Only the rooms it names are on
# its link line; the layering check compares the #includes with the same list.
function(loom_room path)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  string(REPLACE "/" "_" name ${path})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${path}/*.cpp)
  add_library(loom_${name} STATIC ${sources})
  target_include_directories(loom_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(loom_${name} PUBLIC loom_flags)
  foreach(dependency ${ARG_DEPENDS})
    string(REPLACE "/" "_" dependency ${dependency})
    target_link_libraries(loom_${name} PUBLIC loom_${dependency})
  endforeach()
endfunction()
