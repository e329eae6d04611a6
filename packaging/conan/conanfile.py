"""Loom for Conan 2, from the clone that this file is in: conan create packaging/conan --build=missing."""

from pathlib import Path

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy


class LoomRecipe(ConanFile):
    name = "loom-engine"
    version = "0.2.0"
    license = "Apache-2.0"
    description = "Trains networks and runs language models, with the same bits on every CPU"
    topics = ("neural-network", "machine-learning", "llm", "inference", "training")
    package_type = "static-library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"fPIC": [True, False]}
    default_options = {"fPIC": True}

    def export_sources(self):
        root = str(Path(self.recipe_folder).parent.parent)
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "src/*", "cli/CMakeLists.txt",
                        "packaging/NOTICE"):  # fmt: skip
            copy(self, pattern, root, self.export_sources_folder)

    def requirements(self):
        self.requires("nlohmann_json/3.11.3")
        self.requires("xxhash/0.8.2")
        self.requires("pcre2/10.42")
        self.requires("zlib/[>=1.2.11 <2]")
        self.requires("libpng/[>=1.6 <2]")
        self.requires("libjpeg-turbo/3.0.2")

    def validate(self):
        check_min_cppstd(self, 20)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables.update(LOOM_BUILD_CLI=False, LOOM_INSTALL=True)
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, str(Path(self.package_folder, "licenses")))
        copy(self, "NOTICE", str(Path(self.source_folder, "packaging")),
             str(Path(self.package_folder, "licenses")))  # fmt: skip
        CMake(self).install()

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "Loom")
        self.cpp_info.set_property("cmake_target_name", "loom::loom")
        self.cpp_info.libs = ["loom"]
        if self.settings.os in ("Linux", "FreeBSD"):
            self.cpp_info.system_libs = ["pthread", "dl", "m"]
