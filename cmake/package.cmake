# cpack -G DEB: the program, its notices, and what LOOM_MANUALS has: man pages and completions
# (scripts/release.sh). The program links the system's C library alone.
set(CPACK_PACKAGE_NAME loom)
set(CPACK_PACKAGE_VENDOR "The authors of Loom")
set(CPACK_PACKAGE_CONTACT "The authors of Loom <loom@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Trains networks and runs language models")
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_GENERATOR DEB)
set(CPACK_COMPONENTS_ALL program)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.28)")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "ca-certificates")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
else()
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE amd64)
endif()

install(FILES ${PROJECT_SOURCE_DIR}/packaging/NOTICE RENAME copyright
  DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/loom COMPONENT program)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/loom COMPONENT program)
install(FILES ${PROJECT_SOURCE_DIR}/packaging/loom.service DESTINATION lib/systemd/system COMPONENT program)
install(FILES ${PROJECT_SOURCE_DIR}/models/stories.entity DESTINATION ${CMAKE_INSTALL_DATADIR}/loom COMPONENT program)
if(LOOM_MANUALS)
  install(DIRECTORY ${LOOM_MANUALS}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program OPTIONAL)
  install(FILES ${LOOM_MANUALS}/completions/loom.bash RENAME loom
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT program OPTIONAL)
  install(FILES ${LOOM_MANUALS}/completions/loom.zsh RENAME _loom
    DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT program OPTIONAL)
  install(FILES ${LOOM_MANUALS}/completions/loom.fish
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT program OPTIONAL)
endif()
include(CPack)
