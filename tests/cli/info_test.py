"""weir info, and the behaviour that all subcommands share. Usage: info_test.py WEIR"""

import re
import tempfile
from pathlib import Path

from command import CommandTest, fake_cuda, main

ROOT = Path(__file__).parents[2]


class Info(CommandTest):
    def test_tells_what_there_is(self):
        result = self.run_weir("info")
        self.assertEqual(result.returncode, 0, result.stderr)
        for words in ("weir 0.", "cpu", "libfftw3.so.3", "libopenblas.so.0", "Eigen 3.", "libsndfile.so.1", "WEIR_CPU_THREADS"):
            self.assertIn(words, result.stdout)

    def test_tells_what_to_install(self):
        result = self.run_weir("info", WEIR_FFTW_LIBRARY="/no/such/library.so")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("missing: cannot open /no/such/library.so", result.stdout)
        self.assertIn("libfftw3-double3", result.stdout)
        result = self.run_weir("info", WEIR_NVRTC_LIBRARY="/no/such/library.so")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("missing: cannot open /no/such/library.so, which WEIR_NVRTC_LIBRARY names", result.stdout)

        result = self.run_weir("info", WEIR_CUFFT_LIBRARY="/no/such/library.so")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("missing: cannot open /no/such/library.so, which WEIR_CUFFT_LIBRARY names", result.stdout)

        result = self.run_weir("info", WEIR_CUDSS_LIBRARY="/no/such/library.so")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("missing: cannot open /no/such/library.so, which WEIR_CUDSS_LIBRARY names", result.stdout)

        result = self.run_weir("info", WEIR_CUBLASLT_LIBRARY="/no/such/library.so")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("missing: cannot open /no/such/library.so, which WEIR_CUBLASLT_LIBRARY names", result.stdout)

        result = self.run_weir("info", WEIR_BLAS_LIBRARY="/no/such/library.so")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("missing: cannot open /no/such/library.so, which WEIR_BLAS_LIBRARY names", result.stdout)
        self.assertIn("libopenblas0", result.stdout)

    def info_on_cuda(self, **how):
        with tempfile.TemporaryDirectory() as folder:
            result = self.run_weir("info", **fake_cuda(folder, **how))
            self.assertEqual(result.returncode, 0, result.stderr)
            return {line[2:28].strip(): line[28:] for line in result.stdout.splitlines() if line.startswith("  ")}

    def test_tells_of_cuda_devices(self):
        said = self.info_on_cuda(WEIR_FAKE_CUDA_DEVICES="3")
        for device in ("cuda:0", "cuda:1", "cuda:2"):
            self.assertRegex(said[device], r"^Device of threads \d, sm_90, [\d.]+ GiB of memory, PCI [0-9a-f:.]+, "
                                           r"reaches cuda:\d, cuda:\d$")
        self.assertNotIn("cuda:3", said)
        self.assertRegex(said["driver"], r"libweir_fake_cuda\.so \(CUDA 13\.0; 11\.7 is the oldest that will do\)$")
        self.assertRegex(said["NVRTC"], r"libweir_fake_nvrtc\.so \(13\.0\)$")

    def test_tells_which_devices_reach_each_other(self):
        said = self.info_on_cuda(WEIR_FAKE_CUDA_DEVICES="3")
        self.assertRegex(said["cuda:1"], "0, reaches cuda:0, cuda:2$")
        self.assertRegex(self.info_on_cuda(WEIR_FAKE_CUDA_DEVICES="1")["cuda:0"], r"PCI [0-9a-f:.]+$")
        said = self.info_on_cuda(WEIR_FAKE_CUDA_PEERS="0")
        self.assertRegex(said["cuda:0"], "0, reaches no other device: copies to one go by way of the host$")

    def test_tells_which_later_functions_of_the_driver_there_are(self):
        later = ("cuLaunchKernelEx", "cuStreamGetId", "cuFuncGetName", "cuFuncLoad", "cuFuncGetParamInfo", "cuFuncGetParamCount",
                 "cuCtxRecordEvent")
        said = self.info_on_cuda()
        for name in later:
            self.assertTrue(said[name].startswith("found: "), said[name])
        said = self.info_on_cuda(without=["cuStreamGetId", "cuCtxRecordEvent"])
        for name in later:
            missing = name in ("cuStreamGetId", "cuCtxRecordEvent")
            self.assertTrue(said[name].startswith("missing (driver 12." if missing else "found: "), said[name])
        self.assertIn("adopted streams are known by their handles", said["cuStreamGetId"])

    def test_tells_why_there_is_no_cuda_device(self):
        said = self.info_on_cuda(WEIR_FAKE_CUDA_DEVICES="0")
        self.assertIn("the CUDA driver finds no device", said["no device"])
        said = self.info_on_cuda(without=["cuEventRecord"])
        self.assertIn("has no function cuEventRecord: install the driver for CUDA 11.7 or later", said["no device"])
        result = self.run_weir("info", WEIR_CUDA_DRIVER="/no/such/driver.so")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("the CUDA driver that WEIR_CUDA_DRIVER names cannot be opened (/no/such/driver.so:", result.stdout)
        self.assertIn("install NVIDIA's driver", result.stdout)

    def test_tells_of_simulated_cuda_devices(self):
        said = self.info_on_cuda(WEIR_SIMULATE="cuda:2")
        for device in ("cuda:0", "cuda:1"):
            self.assertRegex(said[device], r"^simulated, [\d.]+ GiB of memory; CUDA C\+\+, PTX and cubins do not run on it$")
        self.assertNotIn("cuda:2", said)
        self.assertNotIn("driver", said, "the driver is not asked")
        said = self.info_on_cuda(WEIR_SIMULATE="cuda:none")
        self.assertIn("WEIR_SIMULATE=cuda:none: say how many CUDA devices are simulated", said["no device"])

    def environment(self, **environment):
        """The line for each variable, and the standard error output."""
        result = self.run_weir("info", **environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = result.stdout.split("\nenvironment\n")[1].splitlines()
        return {line.split()[0]: line for line in lines}, result.stderr

    def test_tells_of_every_variable_that_is_read(self):
        said = {name for name, line in self.environment()[0].items() if "no such variable" not in line}
        # The interface for C reads no variable, and names its constants.
        sources = [path for folder in ("src", "python/src", "python/weir", "include", "tools")
                   for path in (ROOT / folder).rglob("*")
                   if path.suffix in (".cpp", ".hpp", ".py") and "c_api" not in path.parts]
        read = {name for path in sources for name in re.findall(r'"(WEIR_[A-Z_]+)"', path.read_text())} - {"WEIR_VERSION"}
        self.assertEqual(read, {name for name in said if name.startswith("WEIR_")})
        page = (ROOT / "docs/environment.md").read_text()
        self.assertEqual(said, set(re.findall(r"^\| `([A-Z_]+)` \|", page, re.MULTILINE)))

    def test_tells_what_is_set(self):
        said, complaints = self.environment(WEIR_LOG="debug", WEIR_WATCHDOG="5", WEIR_CPU_THREADS="3", WEIR_THRAEDS="4")
        self.assertRegex(said["WEIR_LOG"], " debug  ")
        self.assertRegex(said["WEIR_WATCHDOG"], " 5  ")
        self.assertRegex(said["WEIR_THRAEDS"], " 4  .*Weir has no such variable$")
        self.assertEqual(complaints, "")

    def test_no_bad_value_is_ignored_silently(self):
        for name, wrong, accepted in (
            ("WEIR_CPU_THREADS", "x", "say a number from 1 to 1024"),
            ("WEIR_CPU_THREADS", "0", "say a number from 1 to 1024"),
            ("WEIR_CPU_THREADS", "4 threads", "say a number from 1 to 1024"),
            ("WEIR_CPU_THREADS", "99999999999999999999", "say a number from 1 to 1024"),
            ("WEIR_LOG", "foo", "say debug"),
            ("WEIR_CHECK", "maybe", "say 1 or collect"),
            ("WEIR_TRACE", "trace.txt", "call it .weirlog"),
            ("WEIR_LIBRARY_PATH", "/no/such/folder", "there is no folder /no/such/folder"),
        ):
            _, complaints = self.environment(**{name: wrong})
            self.assertEqual(len(complaints.splitlines()), 1, complaints)
            for words in (name, wrong, accepted):
                self.assertIn(words, complaints)
            self.assertEqual(self.environment(**{name: ""})[1], "", "what is empty is not set")

    def test_version_and_help(self):
        self.assertIn("weir 0.", self.run_weir("--version").stdout)
        for arguments in (["--help"], ["demo", "--help"]):
            result = self.run_weir(*arguments)
            self.assertEqual(result.returncode, 0)
            self.assertIn("demo", result.stdout)

    def test_wrong_use(self):
        for arguments in ([], ["nonsense"], ["demo", "--streams", "two"], ["demo", "--streams", "1"],
                          ["demo", "--seconds", "-1"], ["info", "more"]):
            self.assertEqual(self.run_weir(*arguments).returncode, 2, arguments)

    def test_a_word_that_is_no_command(self):
        for wrong, meant in (("inf", "info"), ("vrify", "verify"), ("INFO", ""), ("nonsense", ""), ("", "")):
            said = self.expect_refusal(f"there is no command {wrong}", wrong).stderr
            self.assertIn(": there are info, demo, verify", said)
            self.assertEqual("did you mean" in said, meant != "", said)
            if meant:
                self.assertIn(f"(did you mean {meant}?)", said)
        self.expect_refusal("there is no command --nonsense", "--nonsense")


if __name__ == "__main__":
    main()
