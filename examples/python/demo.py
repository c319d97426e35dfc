"""The demonstration of `weir demo`, in Python: takes the beats out of a recording, on six streams.

Three acts: not ordered (wrong), ordered by hand (right), ordered by Weir (right, and no event in the program).
The samples are those of the command, bit for bit: src/cli/demo says what is computed and why.

Usage: demo.py RECORDING.wav [FOLDER] [DEVICE]

DEVICE is "cpu" or a CUDA device, such as "cuda:0". There the kernels are the command's own, in CUDA C++.
"""

import math
import sys
import wave
from pathlib import Path

import numpy as np
import weir
from weir.testing import Gate

STAGES = ("load", "analyse", "filter", "synthesise", "add", "store")
FRAMES_PER_BLOCK = 32
OVERLAP = 8  # frames that lie over each sample
LATE = ("filter", "load", "add", "analyse", "synthesise", "store")  # act 1: stages that stand still, in turn


class Recording:
    """Samples between -1 and 1, as (length, channels) float32."""

    def __init__(self, rate, samples):
        self.rate = rate
        self.samples = samples

    @classmethod
    def read(cls, path):
        with wave.open(str(path)) as file:
            if file.getsampwidth() != 2:
                raise SystemExit(f"{path}: give a recording of 16 bits a sample")
            raw = np.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, file.getnchannels())
            return cls(file.getframerate(), raw.astype(np.float32) / np.float32(32768))

    def write(self, path):
        scaled = np.rint(self.samples * np.float32(0x7FFFFFFF)).astype(np.float64)
        raw = np.clip(scaled, -(2.0**31), 2.0**31 - 1).astype(np.int64) >> 16
        with wave.open(str(path), "wb") as file:
            file.setparams((self.samples.shape[1], 2, self.rate, 0, "NONE", ""))
            file.writeframes(raw.astype("<i2").tobytes())


class Layout:
    """How a recording is cut: into frames that overlap, and into blocks of frames, with silence before and after."""

    def __init__(self, sound):
        self.rate = sound.rate
        self.length, self.channels = sound.samples.shape
        self.frame = 1 << (max(sound.rate // 7, 64).bit_length() - 1)
        if self.length < self.frame:
            raise SystemExit(f"the recording is too short: {self.frame} samples are needed")
        self.hop = self.frame // OVERLAP
        self.bins = self.frame // 2 + 1
        self.step = FRAMES_PER_BLOCK * self.hop
        self.tail = self.frame - self.hop
        self.span = self.step + self.tail
        self.blocks = (self.tail + self.length + self.step - 1) // self.step
        self.padded = self.blocks * self.step + self.tail
        self.batch = self.channels * FRAMES_PER_BLOCK


class Kernels:
    """What is computed, without a word about when. Streams call these with views of NumPy's."""

    def __init__(self, cut):
        self.cut = cut
        self.memory = np.float32(math.exp(-cut.hop / cut.rate / 0.3))
        self.reach = min(max(1, math.floor(125 * cut.frame / cut.rate + 0.5)), cut.bins - 1)
        fade = [math.sin(math.pi * k / cut.frame) for k in range(cut.frame)]
        self.fade = np.array(fade, np.float32)
        self.fade_back = np.array([one * 2 / OVERLAP for one in fade], np.float32)

    def window(self, samples, frames):
        for index in range(self.cut.batch):
            channel, frame = divmod(index, FRAMES_PER_BLOCK)
            first = frame * self.cut.hop
            np.multiply(samples[first : first + self.cut.frame, channel], self.fade, out=frames[index])

    def keep_tones(self, spectrum, level):
        one, share = np.float32(1), np.float32(1) / np.float32(2 * self.reach + 1)
        silence = np.float32(1e-9)
        floor = silence * silence * silence * silence
        reach, bins = self.reach, self.cut.bins
        here = np.zeros(bins + 2 * reach, np.float32)  # with zeros on either side
        for channel in range(self.cut.channels):
            tone = level[channel]
            for frame in range(FRAMES_PER_BLOCK):
                row = spectrum[channel * FRAMES_PER_BLOCK + frame]
                magnitude = np.sqrt(row.real * row.real + row.imag * row.imag)
                here[reach : reach + bins] = magnitude
                tone[:] = self.memory * tone + (one - self.memory) * magnitude
                # A running sum: what enters at the front, minus what leaves at the back, one after the other.
                turns = np.empty(2 * reach + 2 * bins, np.float32)
                turns[: 2 * reach] = here[: 2 * reach]
                turns[2 * reach :: 2] = here[2 * reach :]
                turns[2 * reach + 1 :: 2] = -here[:bins]
                around = np.add.accumulate(turns)[2 * reach :: 2]
                steady = tone * tone * tone
                mean = np.maximum(around, np.float32(0)) * share
                beat = mean * mean * mean
                row.view(np.float32).reshape(bins, 2)[:] *= (steady / (steady + beat + floor))[:, None]

    def overlap_add(self, frames, part, following):
        cut = self.cut
        part, following = (each.reshape(cut.step, cut.channels) for each in (part, following))
        for channel in range(cut.channels):
            for frame in range(FRAMES_PER_BLOCK):
                faded = frames[channel * FRAMES_PER_BLOCK + frame] * self.fade_back
                begin = frame * cut.hop
                inside = min(cut.frame, cut.step - begin)
                part[begin : begin + inside, channel] += faded[:inside]
                following[: cut.frame - inside, channel] += faded[inside:]

    def store(self, part, result):
        result[:] = part
        part[:] = 0


class HostWork:
    """What is put into streams where the host computes: NumPy's functions, and Weir's transforms."""

    def __init__(self, cut, _device):
        self.kernels = Kernels(cut)

    def window(self, stream, samples, frames):
        weir.host_task(self.kernels.window, weir.In(samples), weir.Out(frames), stream=stream)

    def transform(self, stream, frames, spectrum):
        weir.fft.rfft(frames, out=spectrum, stream=stream)

    def keep_tones(self, stream, spectrum, level):
        weir.host_task(self.kernels.keep_tones, spectrum, level, stream=stream)

    def transform_back(self, stream, spectrum, frames):
        weir.fft.irfft(spectrum, out=frames, stream=stream)

    def overlap_add(self, stream, frames, part, following):
        weir.host_task(self.kernels.overlap_add, weir.In(frames), part, following, stream=stream)

    def store(self, stream, part, result):
        weir.host_task(self.kernels.store, part, weir.Out(result), stream=stream)


class DeviceWork:
    """The same on a CUDA device, in the command's kernels: a thread for each sample or bin. Sums are taken in another
    order there, so that samples differ from the host's by rounding."""

    SOURCE = Path(__file__).parents[2] / "src" / "cli" / "demo" / "device_source.cpp"
    THREADS = 256

    def __init__(self, cut, device):
        host = Kernels(cut)
        source = self.SOURCE.read_text().partition('R"(')[2].rpartition(')"')[0]
        numbers = {
            "CHANNELS": cut.channels,
            "FRAME": cut.frame,
            "HOP": cut.hop,
            "FRAMES_PER_BLOCK": FRAMES_PER_BLOCK,
            "REACH": host.reach,
            "MEMORY": f"({round(math.ldexp(float(host.memory), 24))}.0f / 16777216.0f)",
        }
        options = (*(f"-D{name}={value}" for name, value in numbers.items()), "--fmad=false")

        def kernel(name, signature):
            return weir.Kernel(source, name, signature, options=options, device=device)

        self.cut = cut
        self.kernels = {
            "window": kernel("window", "in float* samples, in float* fade, out float* frames"),
            "transform": kernel("transform", "in float* frames, in float2* turns, out float2* spectrum"),
            "keep_tones": kernel("keep_tones", "inout float2* spectrum, inout float* level, inout float* magnitudes"),
            "transform_back": kernel("transform_back", "in float2* spectrum, in float2* turns, out float* frames"),
            "overlap_add": kernel("overlap_add", "in float* frames, in float* fade, inout float* a, inout float* b"),
            "store": kernel("store", "inout float* part, out float* result"),
        }
        angles = [-2 * math.pi * k / cut.frame for k in range(cut.frame // 2)]
        turns = np.array([complex(math.cos(angle), math.sin(angle)) for angle in angles], np.complex64)
        with weir.Stream(device) as setup:
            self.fade, self.fade_back, self.turns = map(weir.array, (host.fade, host.fade_back, turns))
            self.magnitudes = weir.zeros((cut.channels, cut.bins), "float32")
            setup.synchronize()

    def one_for_each(self, name, count, stream):
        return self.kernels[name][-(-count // self.THREADS), self.THREADS, stream]

    def one_block_for_each_frame(self, name, stream):
        return self.kernels[name][self.cut.batch, self.THREADS, stream, 8 * self.cut.frame]

    def window(self, stream, samples, frames):
        self.one_for_each("window", self.cut.batch * self.cut.frame, stream)(samples, self.fade, frames)

    def transform(self, stream, frames, spectrum):
        self.one_block_for_each_frame("transform", stream)(frames, self.turns, spectrum)

    def keep_tones(self, stream, spectrum, level):
        launcher = self.kernels["keep_tones"][self.cut.channels, 4 * self.THREADS, stream]
        launcher(spectrum, level, self.magnitudes)

    def transform_back(self, stream, spectrum, frames):
        self.one_block_for_each_frame("transform_back", stream)(spectrum, self.turns, frames)

    def overlap_add(self, stream, frames, part, following):
        count = self.cut.span * self.cut.channels
        self.one_for_each("overlap_add", count, stream)(frames, self.fade_back, part, following)

    def store(self, stream, part, result):
        self.one_for_each("store", part.size, stream)(part, result)


class Place:
    """What is under way of one block."""

    def __init__(self, cut):
        self.samples = weir.zeros((cut.span, cut.channels), "float32")
        self.frames = weir.zeros((cut.batch, cut.frame), "float32")
        self.spectrum = weir.zeros((cut.batch, cut.bins), "complex64")
        self.cleaned = weir.zeros((cut.batch, cut.frame), "float32")
        names = ("loaded", "windowed", "transformed", "filtered", "synthesised", "added")
        self.done = {name: weir.Event() for name in names}


class Sum:
    """The sum over the frames of one block and the last of the block before."""

    def __init__(self, cut):
        self.samples = weir.zeros(cut.step * cut.channels, "float32")
        self.stored = weir.Event()


class Pipeline:
    """The program. Each stage works on a stream of its own.

    The lines below `if self.by_hand` are what a careful author writes today; nothing else differs between the acts.
    """

    device = weir.Device("cpu")

    @property
    def make_work(self):
        return DeviceWork if self.device.kind == "cuda" else HostWork

    def __init__(self, sound, by_hand):
        self.by_hand = by_hand
        self.cut = cut = Layout(sound)
        self.work = self.make_work(cut, self.device)
        self.streams = {name: weir.Stream(self.device, name=name) for name in STAGES}
        with self.streams["load"] as setup:
            padded = np.zeros((cut.padded, cut.channels), np.float32)
            padded[cut.tail : cut.tail + cut.length] = sound.samples
            self.recording = weir.array(padded)
            self.level = weir.zeros((cut.channels, cut.bins), "float32")
            self.result = weir.zeros((cut.blocks, cut.step * cut.channels), "float32")
            self.places = [Place(cut) for _ in range(2)]
            self.sums = [Sum(cut) for _ in range(3)]
            setup.synchronize()

    def load(self, block):
        p, cut = self.places[block % 2], self.cut
        stream = self.streams["load"]
        if self.by_hand:
            stream.wait(p.done["windowed"])  # the samples that were here
        first = block * cut.step
        weir.copy(p.samples, self.recording[first : first + cut.span], stream=stream)
        if self.by_hand:
            p.done["loaded"].record(stream)

    def analyse(self, block):
        p = self.places[block % 2]
        stream = self.streams["analyse"]
        if self.by_hand:
            stream.wait(p.done["loaded"])
        self.work.window(stream, p.samples, p.frames)
        if self.by_hand:
            p.done["windowed"].record(stream)
        if self.by_hand:
            stream.wait(p.done["synthesised"])  # the spectra that were here
        self.work.transform(stream, p.frames, p.spectrum)
        if self.by_hand:
            p.done["transformed"].record(stream)

    def filter(self, block):
        p = self.places[block % 2]
        stream = self.streams["filter"]
        if self.by_hand:
            stream.wait(p.done["transformed"])
        self.work.keep_tones(stream, p.spectrum, self.level)
        if self.by_hand:
            p.done["filtered"].record(stream)

    def synthesise(self, block):
        p = self.places[block % 2]
        stream = self.streams["synthesise"]
        if self.by_hand:
            stream.wait(p.done["filtered"])
        if self.by_hand:
            stream.wait(p.done["added"])  # the frames that were here
        self.work.transform_back(stream, p.spectrum, p.cleaned)
        if self.by_hand:
            p.done["synthesised"].record(stream)

    def add(self, block):
        p, here, following = self.places[block % 2], self.sums[block % 3], self.sums[(block + 1) % 3]
        stream = self.streams["add"]
        if self.by_hand:
            stream.wait(p.done["synthesised"])
        if self.by_hand:
            stream.wait(following.stored)  # and cleared
        self.work.overlap_add(stream, p.cleaned, here.samples, following.samples)
        if self.by_hand:
            p.done["added"].record(stream)

    def store(self, block):
        p, here = self.places[block % 2], self.sums[block % 3]
        stream = self.streams["store"]
        if self.by_hand:
            stream.wait(p.done["added"])
        self.work.store(stream, here.samples, self.result[block])
        if self.by_hand:
            here.stored.record(stream)

    def enqueue(self):
        for block in range(self.cut.blocks):
            for stage in STAGES:
                getattr(self, stage)(block)

    def finish(self):
        for stream in self.streams.values():
            stream.synchronize()
        cut = self.cut
        samples = self.result.numpy(copy=True).reshape(-1, cut.channels)
        return Recording(cut.rate, samples[cut.tail : cut.tail + cut.length])


def run(sound, mode, by_hand=False):
    with weir.ordering(mode):
        program = Pipeline(sound, by_hand)
        program.enqueue()
        return program.finish()


def schedule_with_delays(blocks):
    """An order that nothing in a program without events forbids: six times one stream stands still for some blocks."""
    lasts = max(blocks // 20, 3)
    begins = [(2 * i + 1) * blocks // (2 * len(LATE) + 1) for i in range(len(LATE))]
    steps: list[tuple[str, int]] = []
    waiting: list[tuple[str, int]] = []
    late = None
    for block in range(blocks):
        if late is not None and block >= begins[late] + lasts:
            steps, waiting, late = steps + waiting, [], None
        for i, begin in enumerate(begins):
            if late is None and begin == block:
                late = i
        for stage in STAGES:
            is_late = late is not None and stage == LATE[late]
            (waiting if is_late else steps).append((stage, block))
    return steps + waiting


def run_delayed(sound):
    """Opens a gate before each step, in the order of a schedule: so it happens on any machine."""
    with weir.ordering("manual"):
        program = Pipeline(sound, by_hand=False)
        held = {}
        for block in range(program.cut.blocks):
            for stage in STAGES:
                gate = Gate()
                gate.hold(program.streams[stage])
                getattr(program, stage)(block)
                held[stage, block] = gate, program.streams[stage].record()
        for step in schedule_with_delays(program.cut.blocks):
            gate, done = held[step]
            gate.open()
            done.wait()
        return program.finish()


def main(file, folder):
    sound = Recording.read(file)
    folder.mkdir(parents=True, exist_ok=True)

    broken = run_delayed(sound)
    broken.write(folder / "act1-broken.wav")
    with weir.check() as report:
        safe = run(sound, "manual")
    (folder / "act1-check.txt").write_text(str(report))
    print(f"act 1  without ordering: wrong; check finds {len(report)} pairs of lines that race")

    with weir.check() as report:
        by_hand = run(sound, "manual", by_hand=True)
    by_hand.write(folder / "act2-by-hand.wav")
    print(f"act 2  ordered by hand: right; check finds {len(report)} races")

    with weir.trace([folder / "timeline.html", folder / "evidence.weirlog"]) as trace:
        by_weir = run(sound, "auto")
    by_weir.write(folder / "act3-by-weir.wav")
    same = np.array_equal(by_weir.samples, by_hand.samples) and np.array_equal(safe.samples, by_hand.samples)
    wrong = 100 * np.mean(broken.samples != by_hand.samples)
    print(f"act 3  ordered by Weir: {'bit for bit the result of act 2' if same else 'WRONG'}")
    print(
        f"       in act 1 {wrong:.1f} % of the samples are wrong; the fewest waits: {trace.summary()['waits_minimal']}"
    )
    print(f"written to {folder}/")
    return 0 if same and wrong > 0 and len(report) == 0 else 1


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3, 4):
        sys.exit(__doc__)
    if len(sys.argv) == 4:
        Pipeline.device = weir.Device(sys.argv[3])
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2] if len(sys.argv) > 2 else "weir-demo")))
