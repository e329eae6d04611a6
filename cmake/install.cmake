# cmake --install: the headers, one library (static and shared), the program, and the files for
# find_package(Loom) and pkg-config. Included if LOOM_INSTALL is on.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The rooms of the library, without the rooms for measurements, servers and remote workers.
get_property(rooms GLOBAL PROPERTY LOOM_ROOMS)
list(REMOVE_ITEM rooms lab net serve remote)
set(objects)
foreach(room ${rooms})
  list(APPEND objects $<TARGET_OBJECTS:loom_${room}>)
endforeach()

set(libraries ${LOOM_PCRE2_LIBRARY} ${LOOM_ZLIB_LIBRARY} ${CMAKE_DL_LIBS})
if(LOOM_PICTURES_HERE)
  list(APPEND libraries ${LOOM_PNG_LIBRARY} ${LOOM_JPEG_LIBRARY})
  set(LOOM_PICTURES_REQUIRED "libpng libjpeg")
endif()
if(LOOM_THREADS)
  list(APPEND libraries Threads::Threads)
endif()

add_library(loom_static STATIC ${objects})
add_library(loom_shared SHARED ${objects})
foreach(kind static shared)
  set_target_properties(loom_${kind} PROPERTIES OUTPUT_NAME loom EXPORT_NAME ${kind} LINKER_LANGUAGE CXX)
  target_include_directories(loom_${kind} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(loom_${kind} INTERFACE cxx_std_20)
endforeach()
# Until version 1 every minor version may change the interface.
set_target_properties(loom_shared PROPERTIES VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
target_link_libraries(loom_shared PRIVATE ${libraries})
# Symbols of the standard library's templates, and of other libraries, are hidden. A surrounding
# project (bindings/python) may hide more.
if(NOT DEFINED LOOM_EXPORTS)
  set(LOOM_EXPORTS ${PROJECT_SOURCE_DIR}/cmake/exports.map)
endif()
if(NOT APPLE)
  target_link_options(loom_shared PRIVATE LINKER:--no-undefined LINKER:--gc-sections
    LINKER:--version-script=${LOOM_EXPORTS})
  set_target_properties(loom_shared PROPERTIES LINK_DEPENDS ${LOOM_EXPORTS})
endif()

install(TARGETS loom_static loom_shared EXPORT LoomTargets)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/loom DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${PROJECT_SOURCE_DIR}/include/loom.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET loom_cli)
  install(TARGETS loom_cli COMPONENT program)
endif()

set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/Loom)
install(EXPORT LoomTargets NAMESPACE loom:: DESTINATION ${config_folder})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/LoomConfig.cmake.in
  ${PROJECT_BINARY_DIR}/LoomConfig.cmake INSTALL_DESTINATION ${config_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/LoomConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/LoomConfig.cmake ${PROJECT_BINARY_DIR}/LoomConfigVersion.cmake
  DESTINATION ${config_folder})

file(RELATIVE_PATH LOOM_TO_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(${PROJECT_SOURCE_DIR}/cmake/loom.pc.in ${PROJECT_BINARY_DIR}/loom.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/loom.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(TARGET loom_cli AND PROJECT_IS_TOP_LEVEL AND UNIX AND NOT APPLE)
  include(cmake/package.cmake)
endif()
