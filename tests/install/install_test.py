#!/usr/bin/env python3
"""Tests what users get: an installation, a package, a source folder to add to their own project.

Usage: install_test.py SETTINGS TEST...
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


class InstallTest(unittest.TestCase):
    """`stage` installs; `find_package` and `pkg_config` use what it installed; the others stand alone."""

    maxDiff = None

    def setUp(self):
        self.work = Path(settings["work"])
        self.prefix = self.work / "stage" / "usr"
        self.libdir = self.prefix / settings["libdir"]

    def run_ok(self, *command, **environment):
        result = self.start(*command, **environment)
        self.assertEqual(result.returncode, 0, f"{command}\n{result.stdout}{result.stderr}")
        return result.stdout

    def start(self, *command, **environment):
        return subprocess.run(
            [str(word) for word in command],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
            cwd=self.work,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **{name: str(value) for name, value in environment.items()}},
        )

    def fresh(self, name):
        folder = self.work / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        return folder

    def configure(self, folder, *arguments):
        return self.start(
            settings["cmake"], "-S", HERE / "consumer", "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug",
            f"-DCMAKE_CXX_COMPILER={settings['compiler']}", *arguments)

    def expect_works(self, program, **environment):
        """The program runs, and WEIR_TRACE works in it although it never mentions traces."""
        self.assertIn("sum 9000", self.run_ok(program, **environment))
        self.assertTrue(self.traces(program, **environment))

    def traces(self, program, **environment):
        log = program.with_suffix(".weirlog")
        log.unlink(missing_ok=True)
        self.run_ok(program, WEIR_TRACE=log, **environment)
        return log.is_file()

    def needed(self, program):
        """The shared libraries of Weir's that a program asks for."""
        return re.findall(r"\(NEEDED\).*\[(libweir[^]]*)\]", self.run_ok("readelf", "--dynamic", "--wide", program))

    def expect_complete(self, prefix, libdir):
        """Everything is there, and nothing but that."""
        files = {path.relative_to(prefix).as_posix() for path in prefix.rglob("*") if not path.is_dir()}
        headers = {path.relative_to(ROOT).as_posix() for path in (ROOT / "include").rglob("*.h*")}
        self.assertEqual({name for name in files if name.startswith("include/")}, headers)
        doc = {name for name in files if name.startswith("share/doc/weir/")}
        pages = {f"share/doc/weir/docs/{path.name}" for path in (ROOT / "docs").glob("*.md")}
        texts = {f"share/doc/weir/{name}" for name in ("LICENSE", "NOTICE", "README.md", "copyright")}
        self.assertLessEqual(pages | texts, doc)
        shared = f"{libdir}/libweir.so"
        rest = {name for name in files - headers - doc if not name.startswith(f"{libdir}/cmake/weir/weir-targets")}
        self.assertEqual(rest, {
            "bin/weir", "bin/weir-verify", f"{libdir}/libweir.a", shared, f"{libdir}/{settings['soname']}",
            f"{shared}.{settings['version']}", f"{libdir}/cmake/weir/weir-config.cmake",
            f"{libdir}/cmake/weir/weir-config-version.cmake", f"{libdir}/pkgconfig/weir.pc"})
        self.assertEqual((prefix / shared).resolve().name, f"libweir.so.{settings['version']}")
        self.assertEqual(self.run_ok(prefix / "bin/weir", "--version", PATH=""), f"weir {settings['version']}\n")
        # The other command is found beside it.
        self.assertIn("log", self.run_ok(prefix / "bin/weir", "verify", "--help", PATH=""))
        self.assertEqual(self.needed(prefix / "bin/weir"), [])

    def test_stage(self):
        """An installation is complete, has the version in its name, and knows nothing of where it was made."""
        made = self.fresh("made")
        self.run_ok(settings["cmake"], "--install", settings["build"], "--prefix", "/usr", DESTDIR=made)
        made.rename(self.fresh("stage"))
        self.expect_complete(self.prefix, settings["libdir"])
        library = self.libdir / f"libweir.so.{settings['version']}"
        self.assertIn(f"[{settings['soname']}]", self.run_ok("readelf", "--dynamic", "--wide", library))
        for path in [*self.libdir.rglob("*.cmake"), *self.libdir.rglob("*.pc")]:
            for folder in (str(ROOT), settings["build"], str(made), "/usr/"):
                self.assertNotIn(folder, path.read_text(encoding="utf-8"), path)

    def test_find_package(self):
        """CMake finds the moved installation; both libraries do; a version with another interface is refused."""
        folder = self.fresh("find_package")
        where = f"-DCMAKE_PREFIX_PATH={self.prefix}"
        major, minor, _ = settings["version"].split(".")
        refused = self.configure(folder, where, f"-DWEIR_VERSION={major}.{int(minor) + 1}")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("compatible", refused.stderr)
        found = self.configure(folder, where, f"-DWEIR_VERSION={major}.{minor}")
        self.assertEqual(found.returncode, 0, found.stderr)
        self.run_ok(settings["cmake"], "--build", folder)
        needed = {"static": [], "shared": [settings["soname"]]}
        needed["weir"] = needed[settings["default"]]
        for library, names in needed.items():
            with self.subTest(library):
                self.assertEqual(self.needed(folder / f"consumer-{library}"), names)
                self.expect_works(folder / f"consumer-{library}")

    def test_pkg_config(self):
        """pkg-config names the shared library, and what a static one needs besides."""
        folder = self.fresh("pkg_config")
        folder.mkdir()
        search = {"PKG_CONFIG_LIBDIR": self.libdir / "pkgconfig"}
        self.assertEqual(self.run_ok("pkg-config", "--modversion", "weir", **search).strip(), settings["version"])

        def ask(*what):
            return shlex.split(self.run_ok("pkg-config", *what, "weir", **search))

        program = folder / "consumer.o"
        compiler = settings["compiler"]
        self.run_ok(compiler, "-std=c++20", "-c", HERE / "consumer/consumer.cpp", "-o", program, *ask("--cflags"))
        self.run_ok(compiler, program, "-o", folder / "shared", *ask("--libs"))
        self.assertEqual(self.needed(folder / "shared"), [settings["soname"]])
        self.expect_works(folder / "shared", LD_LIBRARY_PATH=self.libdir)

        static = ["-l:libweir.a" if word == "-lweir" else word for word in ask("--static", "--libs")]
        self.run_ok(compiler, program, "-o", folder / "static", *static)
        self.assertEqual(self.needed(folder / "static"), [])
        self.expect_works(folder / "static")

    def test_plain_static(self):
        """A compiler's plain command links the static library, and the program heeds WEIR_TRACE and WEIR_CHECK."""
        folder = self.fresh("plain_static")
        folder.mkdir()
        for name in ("small", "consumer"):
            program = folder / name
            self.run_ok(
                settings["compiler"], "-std=c++20", f"-I{self.prefix / 'include'}", HERE / f"consumer/{name}.cpp",
                self.libdir / "libweir.a", "-pthread", "-ldl", "-o", program)
            self.assertEqual(self.needed(program), [])
            with self.subTest(name, variable="WEIR_TRACE"):
                self.assertTrue(self.traces(program))
            with self.subTest(name, variable="WEIR_CHECK"):
                self.assertIn("weir check: no races found", self.start(program, WEIR_CHECK="1").stderr)
                self.assertNotIn("weir check", self.start(program, WEIR_CHECK="").stderr)  # the control

    def test_plain_c(self):
        """A C compiler takes the installed weir.h, and links either library without being told of C++."""
        folder = self.fresh("plain_c")
        folder.mkdir()
        source = ROOT / "examples/plain_c.c"
        self.run_ok(
            settings["c_compiler"], "-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", f"-I{self.prefix / 'include'}",
            source, f"-L{self.libdir}", "-lweir", "-o", folder / "shared")
        self.assertEqual(self.needed(folder / "shared"), [settings["soname"]])
        self.expect_works(folder / "shared", LD_LIBRARY_PATH=self.libdir)
        self.run_ok(
            settings["c_compiler"], "-std=c11", f"-I{self.prefix / 'include'}", source, self.libdir / "libweir.a",
            "-lstdc++", "-pthread", "-ldl", "-lm", "-o", folder / "static")
        self.expect_works(folder / "static")

    def test_first_program(self):
        """The commands of docs/first-program.md do what the page says, in a shell, with what was installed."""
        folder = self.fresh("first_program")
        (folder / "bin").mkdir(parents=True)
        (folder / "bin/c++").symlink_to(shutil.which(settings["compiler"]))
        shutil.copy(ROOT / "examples/first_program.cpp", folder)
        page = (ROOT / "docs/first-program.md").read_text(encoding="utf-8")
        block = re.compile(r"<!-- (run|printed) by (?:tests/install/install_test.py|it) -->\n```\w+\n(.*?)```", re.DOTALL)
        printed = ""
        count = {"run": 0, "printed": 0}
        for kind, text in block.findall(page):
            count[kind] += 1
            if kind == "run":
                printed = self.run_ok(
                    "bash", "-euc", f"exec 2>&1; cd {shlex.quote(str(folder))}; {text}",
                    PATH=f"{folder / 'bin'}:{self.prefix / 'bin'}:{os.environ['PATH']}",
                    PKG_CONFIG_LIBDIR=self.libdir / "pkgconfig", LD_LIBRARY_PATH=self.libdir)
            else:
                self.assertIn(text, printed)
        self.assertEqual(count, {"run": 5, "printed": 4})
        self.assertIn("verified", printed)
        self.assertIn("<html", (folder / "timeline.html").read_text(encoding="utf-8"))

    def test_add_subdirectory(self):
        """Weir's source, added to a project, brings the library alone.

        The program is compiled and linked with that project's own commands. The library is not compiled again from the
        same source, but taken from this build (scripts/chroot.sh compiles it).
        """
        folder = self.fresh("add_subdirectory")
        configured = self.configure(folder, f"-DWEIR_SOURCE={ROOT}")
        self.assertEqual(configured.returncode, 0, configured.stderr)
        targets = self.run_ok(settings["cmake"], "--build", folder, "--target", "help")
        self.assertIn("\nweir: ", targets)
        for name in ("weir-cli", "weir-tests", "weir-benchmarks", "weir-examples", "weir_verify_engine"):
            self.assertNotIn(name, targets)
        self.run_ok(settings["cmake"], "--build", folder, "--target", "consumer_object")
        shutil.copy(Path(settings["build"]) / "src/libweir.a", folder / "weir/src")
        commands = self.run_ok("ninja", "-C", folder, "-t", "commands", "consumer-weir").splitlines()
        self.assertIn("weir/src/libweir.a", commands[-1])
        self.run_ok("sh", "-c", f"cd {shlex.quote(str(folder))} && {commands[-1]}")
        self.expect_works(folder / "consumer-weir")

    def test_package(self):
        """The Debian package has what an installation has, and depends on what its programs load."""
        folder = self.fresh("package")
        self.run_ok(ROOT / "scripts/package.sh", settings["build"], folder, CMAKE=settings["cmake"])
        packages = list(folder.glob("*.deb"))
        self.assertEqual(len(packages), 1)
        package = packages[0]
        fields = dict(re.findall(r"^(\S+): (.*)$", self.run_ok("dpkg-deb", "--field", package), re.M))
        self.assertEqual((fields["Package"], fields["Version"]), ("weir", settings["version"]))
        self.assertEqual(fields["Architecture"], self.run_ok("dpkg", "--print-architecture").strip())
        loaded = {name.split()[0] for name in fields["Depends"].split(", ")}
        self.assertLessEqual({"libc6", "libstdc++6"}, loaded)
        self.assertFalse(loaded & {"libfftw3-double3", "libsndfile1", "weir"})
        owners = {line.split()[1] for line in self.run_ok("dpkg-deb", "--contents", package).splitlines()}
        self.assertEqual(owners, {"root/root"})
        self.run_ok("dpkg-deb", "--raw-extract", package, folder / "files")
        self.expect_complete(folder / "files/usr", settings["libdir"])
        shlibs = (folder / "files/DEBIAN/shlibs").read_text(encoding="utf-8")
        self.assertEqual(shlibs.split()[:3], ["libweir", settings["soname"].removeprefix("libweir.so."), "weir"])


if __name__ == "__main__":
    settings = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    Path(settings["work"]).mkdir(parents=True, exist_ok=True)
    unittest.main(argv=[sys.argv[0], *(f"InstallTest.test_{name}" for name in sys.argv[2:])])
