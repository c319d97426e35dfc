"""weir info, and what is common to all of the command. Usage: info_test.py WEIR"""

from command import CommandTest, main


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
