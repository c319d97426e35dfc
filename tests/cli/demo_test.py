"""weir demo with good and bad recordings. Usage: demo_test.py WEIR"""

import json
import math
import struct
import tempfile
import wave
from pathlib import Path

from command import CommandTest, cuda, fake_cuda, main


def write_wav(path, seconds, rate=8000, channels=1, loudness=0.3):
    """A tone with a click four times a second."""
    with wave.open(str(path), "wb") as out:
        out.setparams((channels, 2, rate, 0, "NONE", ""))
        samples = []
        for i in range(int(seconds * rate)):
            sample = math.sin(2 * math.pi * 440 * i / rate) + (1 if i % (rate // 4) < 8 else 0)
            samples += [int(32767 * loudness * sample)] * channels
        out.writeframes(struct.pack(f"<{len(samples)}h", *samples))
    return path


class Demo(CommandTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.output = self.folder / "results"

    def play(self, file, *more, **environment):
        result = self.run_weir("demo", file, "--output", self.output, *more, **environment)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout

    def test_three_acts(self):
        said = self.play(write_wav(self.folder / "music.wav", 5))
        for words in ("% of the samples are wrong", "pairs of lines race", "bit for bit the right result; check finds nothing",
                      "bit for bit the result of act 2", "To mend it, add:", "waits issued"):
            self.assertIn(words, said)
        self.assertNotIn("\r", said, "plain where there is no terminal")
        results = {path.name: path.read_bytes() for path in self.output.iterdir()}
        self.assertEqual(results["act2-by-hand.wav"], results["act3-by-weir.wav"])
        self.assertNotEqual(results["act1-broken.wav"], results["act3-by-weir.wav"])
        for name in ("act1-broken.png", "act2-by-hand.png", "act3-by-weir.png"):
            self.assertTrue(results[name].startswith(b"\x89PNG"))
        for name in ("act1-check.txt", "timeline.html", "evidence.weirlog"):
            self.assertTrue(results[name])

    def test_stereo_and_more_streams(self):
        self.play(write_wav(self.folder / "stereo.wav", 2, rate=22050, channels=2), "--streams", "8")

    def test_a_simulated_device(self):
        said = self.play(write_wav(self.folder / "music.wav", 2), "--device", "sim:0")
        self.assertIn("6 streams of sim:0", said)
        self.assertIn("bit for bit the right result; check finds nothing", said)

    def test_an_older_driver(self):
        older = fake_cuda(self.folder, without=["cuLaunchKernelEx", "cuFuncLoad", "cuFuncGetParamInfo",
                                                "cuFuncGetParamCount", "cuStreamGetId", "cuCtxRecordEvent"])
        said = self.play(write_wav(self.folder / "music.wav", 1), "--device", "cuda:0", **older)
        self.assertIn("bit for bit the result of act 2", said)

    def test_a_cuda_device(self):
        said = self.play(write_wav(self.folder / "music.wav", 1), "--device", "cuda:0", **cuda(self.folder))
        for words in ("6 streams of cuda:0", "% of the samples are wrong", "the right result within", "check finds nothing",
                      "bit for bit the result of act 2"):
            self.assertIn(words, said)
        steps = [json.loads(line) for line in (self.output / "evidence.weirlog").read_text().splitlines()]
        streams = [one for one in steps if one.get("type") == "stream"]
        self.assertTrue(any(one["device"] == "cuda:0" for one in streams), streams)
        times = [one for one in steps if one.get("type") == "execution"]
        self.assertTrue(any(one["end"] > one["start"] for one in times), times)
        self.assertEqual(self.run_weir("verify", self.output / "evidence.weirlog", "--strict").returncode, 0)

    def test_devices_that_are_not_there(self):
        music = write_wav(self.folder / "music.wav", 1)
        self.refuse("there is no device cuda:0: the CUDA driver that WEIR_CUDA_DRIVER names cannot be opened (/no/such/driver.so:", music, "--device", "cuda:0",
                    WEIR_CUDA_DRIVER="/no/such/driver.so")
        self.refuse('there is no device "gpu"', music, "--device", "gpu")

    def test_seconds_that_are_none(self):
        music = write_wav(self.folder / "music.wav", 1)
        for wrong in ("nan", "inf", "-1", "0.1", "3600.5", "2x"):
            self.expect_refusal(f"--seconds: {wrong} is no number from 0.2 to 3600", "demo", music, f"--seconds={wrong}")
        self.play(write_wav(self.folder / "long.wav", 1), "--seconds", "0.2")

    def test_some_seconds(self):
        said = self.play(write_wav(self.folder / "long.wav", 9), "--seconds", "3", "--streams", "4")
        self.assertIn("3.0 s", said)

    def refuse(self, words, file, *more, **environment):
        result = self.expect_refusal(words, "demo", file, "--output", self.output, *more, **environment)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)

    def test_files_that_are_no_recordings(self):
        self.refuse("there is no such file", self.folder / "missing.wav")
        self.refuse("is a directory", self.folder)
        text = self.folder / "text.wav"
        text.write_text("This is not music.\n" * 100)
        self.refuse("no sound file that libsndfile can read", text)
        empty = self.folder / "empty.wav"
        empty.touch()
        self.refuse("is empty", empty)
        cut = self.folder / "cut.wav"
        cut.write_bytes(write_wav(self.folder / "whole.wav", 1).read_bytes()[:30])
        self.refuse("cut.wav", cut)

    def test_recordings_that_cannot_be_used(self):
        self.refuse("holds no samples", write_wav(self.folder / "none.wav", 0))
        self.refuse("too short", write_wav(self.folder / "short.wav", 0.05))
        self.refuse("6 channels", write_wav(self.folder / "many.wav", 1, channels=6))
        self.refuse("nothing but silence", write_wav(self.folder / "silent.wav", 2, loudness=0))

    def test_an_output_that_cannot_be_made(self):
        self.output = write_wav(self.folder / "music.wav", 1)
        self.refuse("cannot make the directory", self.output)

    def test_a_missing_library(self):
        music = write_wav(self.folder / "music.wav", 1)
        self.refuse("install the package libsndfile1", music, WEIR_SNDFILE_LIBRARY="/no/such/library.so")
        self.refuse("install the package libfftw3-single3", music, WEIR_FFTW_LIBRARY_F="/no/such/library.so")


if __name__ == "__main__":
    main()
