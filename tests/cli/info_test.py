"""weir info, and what is common to all of the command. Usage: info_test.py WEIR"""

import tempfile

from command import CommandTest, fake_cuda, main


class Info(CommandTest):
    def test_tells_what_there_is(self):
        result = self.run_weir("info")
        self.assertEqual(result.returncode, 0, result.stderr)
        for words in ("weir 0.", "cpu", "libfftw3.so.3", "libsndfile.so.1", "WEIR_CPU_THREADS"):
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

    def info_on_cuda(self, **how):
        with tempfile.TemporaryDirectory() as folder:
            result = self.run_weir("info", **fake_cuda(folder, **how))
            self.assertEqual(result.returncode, 0, result.stderr)
            return {line[2:28].strip(): line[28:] for line in result.stdout.splitlines() if line.startswith("  ")}

    def test_tells_of_cuda_devices(self):
        said = self.info_on_cuda(WEIR_FAKE_CUDA_DEVICES="3")
        for device in ("cuda:0", "cuda:1", "cuda:2"):
            self.assertRegex(said[device], r"^Device of threads \d, compute capability 9\.0, \d+ multiprocessors, "
                                           r"[\d.]+ GiB of memory, [\d.]+ GiB free, reaches cuda:\d, cuda:\d$")
        self.assertNotIn("cuda:3", said)
        self.assertRegex(said["driver"], r"libweir_fake_cuda\.so \(CUDA 13\.0; 11\.7 is the oldest that will do\)$")
        self.assertRegex(said["NVRTC"], r"libweir_fake_nvrtc\.so \(13\.0\)$")

    def test_tells_which_devices_reach_each_other(self):
        said = self.info_on_cuda(WEIR_FAKE_CUDA_DEVICES="3")
        self.assertRegex(said["cuda:1"], "free, reaches cuda:0, cuda:2$")
        self.assertRegex(self.info_on_cuda(WEIR_FAKE_CUDA_DEVICES="1")["cuda:0"], "GiB free$")
        said = self.info_on_cuda(WEIR_FAKE_CUDA_PEERS="0")
        self.assertRegex(said["cuda:0"], "free, reaches no other device: copies to one go by way of the host$")

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
        self.assertIn("there is no CUDA driver on this machine (/no/such/driver.so:", result.stdout)
        self.assertIn("install NVIDIA's driver", result.stdout)

    def test_tells_of_simulated_cuda_devices(self):
        said = self.info_on_cuda(WEIR_SIMULATE="cuda:2")
        for device in ("cuda:0", "cuda:1"):
            self.assertRegex(said[device], r"^simulated, [\d.]+ GiB of memory; CUDA C\+\+, PTX and cubins do not run on it$")
        self.assertNotIn("cuda:2", said)
        self.assertNotIn("driver", said, "the driver is not asked")
        said = self.info_on_cuda(WEIR_SIMULATE="cuda:none")
        self.assertIn("WEIR_SIMULATE=cuda:none: say how many CUDA devices are simulated", said["no device"])

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


if __name__ == "__main__":
    main()
