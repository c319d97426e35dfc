# What `cmake --install` installs and where, and the Debian package that `cpack` makes from it. See docs/building.md.
include(CMakePackageConfigHelpers)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/weir)
set_property(TARGET weir PROPERTY EXPORT_NAME static)
set_property(TARGET weir_shared PROPERTY EXPORT_NAME shared)
install(TARGETS weir weir_shared EXPORT weir)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp" PATTERN "*.h")
if(WEIR_BUILD_CLI)
    install(TARGETS weir-cli weir-verify)
endif()

install(EXPORT weir NAMESPACE weir:: FILE weir-targets.cmake DESTINATION ${package_folder})
if(BUILD_SHARED_LIBS)
    set(WEIR_DEFAULT_LIBRARY shared)
else()
    set(WEIR_DEFAULT_LIBRARY static)
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/weir-config.cmake.in ${PROJECT_BINARY_DIR}/weir-config.cmake @ONLY)
# Before 1.0 each minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/weir-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/weir-config.cmake ${PROJECT_BINARY_DIR}/weir-config-version.cmake
    DESTINATION ${package_folder})

# The relative path from weir.pc to the installation prefix, so that the installation can be moved.
set(pkgconfig_folder ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH WEIR_PREFIX_FROM_PC /prefix/${pkgconfig_folder} /prefix)
string(REGEX REPLACE "/$" "" WEIR_PREFIX_FROM_PC "${WEIR_PREFIX_FROM_PC}")
configure_file(${PROJECT_SOURCE_DIR}/cmake/weir.pc.in ${PROJECT_BINARY_DIR}/weir.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/weir.pc DESTINATION ${pkgconfig_folder})

set(doc_folder ${CMAKE_INSTALL_DATADIR}/doc/weir)
install(FILES LICENSE NOTICE README.md DESTINATION ${doc_folder})
install(DIRECTORY docs DESTINATION ${doc_folder} FILES_MATCHING PATTERN "*.md" PATTERN "*.png" PATTERN "*.svg")
# Licences of the headers that are compiled in, from the folders of their Debian packages.
foreach(package IN ITEMS libcli11-dev libeigen3-dev libstb-dev nlohmann-json3-dev)
    if(EXISTS /usr/share/doc/${package}/copyright)
        install(FILES /usr/share/doc/${package}/copyright DESTINATION ${doc_folder}/licenses RENAME ${package})
    endif()
endforeach()

if(PROJECT_IS_TOP_LEVEL)
    install(FILES cmake/copyright DESTINATION ${doc_folder})
    set(CPACK_GENERATOR DEB)
    set(CPACK_PACKAGE_NAME weir)
    set(CPACK_PACKAGE_VENDOR "The Weir developers")
    set(CPACK_PACKAGE_CONTACT ${CPACK_PACKAGE_VENDOR})
    set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
    set(CPACK_PACKAGE_DESCRIPTION
"A C++20 library that orders work on streams: each operation says what it reads and writes, and Weir inserts exactly the
waits that are missing. With the shared and the static library, the headers, and the commands weir and weir-verify.")
    set(CPACK_STRIP_FILES ON)
    set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
    set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
    set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
    set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
    set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
    # Libraries that are opened at run time, and only by programs that need them.
    set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libfftw3-double3, libfftw3-single3, libopenblas0, libsndfile1")
    set(CPACK_DEBIAN_PACKAGE_SUGGESTS "g++, cmake")
    include(CPack)
endif()
