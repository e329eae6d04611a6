# LOOM_MINIMAL: one static library of the remaining parts, and a program that shows their size. The
# size is printed when it is linked; tests/consumer/minimal.py checks a budget
# (docs/decisions/0031).
get_property(rooms GLOBAL PROPERTY LOOM_ROOMS)
set(objects)
foreach(room ${rooms})
  list(APPEND objects $<TARGET_OBJECTS:loom_${room}>)
endforeach()
add_library(loom_static STATIC ${objects})
set_target_properties(loom_static PROPERTIES OUTPUT_NAME loom LINKER_LANGUAGE CXX)

add_executable(loom_minimal ${PROJECT_SOURCE_DIR}/examples/minimal.cpp)
set_target_properties(loom_minimal PROPERTIES OUTPUT_NAME minimal)
target_link_libraries(loom_minimal PRIVATE loom::loom)
target_link_options(loom_minimal PRIVATE LINKER:--gc-sections LINKER:-s)
add_custom_command(TARGET loom_minimal POST_BUILD VERBATIM
  COMMAND ${CMAKE_COMMAND} -DFILE=$<TARGET_FILE:loom_minimal> -P ${PROJECT_SOURCE_DIR}/cmake/print_size.cmake)
