#!/usr/bin/env python3
"""Tests of scripts/check_layers.py: includes planted against the direction are found, others are not."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
import check_layers  # noqa: E402


class CheckLayers(unittest.TestCase):
    def messages(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name, text in files.items():
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return check_layers.check_tree(root)[0]

    def test_the_direction_is_accepted(self):
        self.assertEqual([], self.messages({
            "src/frontier/frontier.hpp": "#include <vector>\n",
            "src/order/history.hpp": '#include "frontier/frontier.hpp"\n',
            "src/order/history.cpp": '#include "history.hpp"\n',
            "src/array/array.cpp": '#include <weir/array.hpp>\n#include "../order/history.hpp"\n',
            "include/weir/array.hpp": "#include <weir/stream.hpp>\n",
            "include/weir/stream.hpp": "",
        }))

    def test_an_include_upwards_is_found(self):
        messages = self.messages({
            "src/frontier/frontier.cpp": '#include <vector>\n#include "order/history.hpp"\n',
            "src/order/history.hpp": "",
        })
        self.assertEqual(1, len(messages))
        self.assertIn("src/frontier/frontier.cpp:2:", messages[0])
        self.assertIn("frontier may not include order", messages[0])

    def test_an_include_upwards_by_relative_path_is_found(self):
        messages = self.messages({
            "src/frontier/frontier.cpp": '#include "../order/history.hpp"\n',
            "src/order/history.hpp": "",
        })
        self.assertEqual(1, len(messages))

    def test_an_include_upwards_between_public_headers_is_found(self):
        messages = self.messages({
            "include/weir/stream.hpp": "#include <weir/array.hpp>\n",
            "include/weir/array.hpp": "",
        })
        self.assertEqual(1, len(messages))
        self.assertIn("runtime may not include array", messages[0])

    def test_the_runtime_may_not_include_its_observers(self):
        for layer in ("check", "trace"):
            messages = self.messages({
                "src/runtime/streams/stream.cpp": f'#include "{layer}/report.hpp"\n',
                f"src/{layer}/report.hpp": "",
            })
            self.assertEqual(1, len(messages))

    def test_observers_may_include_the_observer_interface_and_nothing_of_the_runtime(self):
        messages = self.messages({
            "src/check/detector.cpp": '#include "observe/observer.hpp"\n#include "runtime/queue.hpp"\n',
            "src/observe/observer.hpp": "",
            "src/runtime/queue.hpp": "",
        })
        self.assertEqual(1, len(messages))
        self.assertIn("runtime/queue.hpp", messages[0])

    def test_a_backend_is_named_in_one_place(self):
        backends = {"src/backend/cuda/device/driver.hpp": '#include "backend/cuda/device/context.hpp"\n',
                    "src/backend/cuda/device/context.hpp": "", "src/backend/cpu/driver.hpp": ""}
        both = '#include "backend/cpu/driver.hpp"\n#include "backend/cuda/device/driver.hpp"\n'
        self.assertEqual([], self.messages({**backends, "src/runtime/devices/devices.cpp": both}))
        for file in ("src/array/transfer.cpp", "src/memory/block.cpp", "src/cli/main.cpp", "src/runtime/streams/stream.cpp",
                     "src/backend/timeline.cpp"):
            messages = self.messages({**backends, file: both})
            self.assertEqual([f"{file}:1:", f"{file}:2:"], [message.split(" ")[0] for message in messages])
            self.assertIn("ask the driver for a capability", messages[0])

    def test_a_backend_does_not_name_another(self):
        messages = self.messages({"src/backend/sim/driver.cpp": '#include "../cuda/device/driver.hpp"\n',
                                  "src/backend/cuda/device/driver.hpp": ""})
        self.assertEqual(1, len(messages))
        self.assertIn("name the backend cuda", messages[0])

    def test_capabilities_are_for_all(self):
        self.assertEqual([], self.messages({"src/array/transfer.cpp": '#include "backend/capability/copies.hpp"\n',
                                            "src/backend/capability/copies.hpp": ""}))

    def test_the_files_that_name_backends_exist(self):
        for file in check_layers.MAY_NAME_BACKENDS:
            self.assertTrue((Path(check_layers.__file__).parent.parent / file).is_file(), file)

    def test_a_public_header_without_a_layer_is_found(self):
        messages = self.messages({"include/weir/unheard_of.hpp": ""})
        self.assertEqual(1, len(messages))
        self.assertIn("belongs to no layer", messages[0])

    def test_a_header_that_states_another_layer_is_found(self):
        messages = self.messages({"include/weir/array.hpp": "// An array. Layer: runtime.\n"})
        self.assertEqual(["include/weir/array.hpp:1: says layer runtime, but the tables say array"], messages)

    def test_an_include_of_a_missing_file_is_found(self):
        self.assertEqual(1, len(self.messages({"src/order/history.cpp": '#include "missing.hpp"\n'})))

    def test_the_verifier_includes_itself_and_others_libraries(self):
        self.assertEqual([], self.messages({
            "tools/verify/main.cpp": '#include <vector>\n#include <nlohmann/json.hpp>\n#include "clock.hpp"\n',
            "tools/verify/clock.hpp": "",
        }))

    def test_the_verifier_includes_nothing_of_weir(self):
        messages = self.messages({
            "tools/verify/main.cpp": '#include <weir/array.hpp>\n#include "frontier/frontier.hpp"\n'
                                     '#include "../../src/frontier/frontier.hpp"\n#include <frontier/frontier.hpp>\n'
                                     '#include "missing.hpp"\n',
            "src/frontier/frontier.hpp": "",
            "include/weir/array.hpp": "",
        })
        self.assertEqual([1, 2, 3, 4, 5], [int(message.split(":")[1]) for message in messages])
        self.assertIn("shares no code", messages[0])

    def test_every_layer_in_the_tables_exists(self):
        layers = set(check_layers.MAY_INCLUDE)
        self.assertLessEqual({layer for allowed in check_layers.MAY_INCLUDE.values() for layer in allowed}, layers)
        self.assertLessEqual(set(check_layers.PUBLIC_HEADERS.values()), layers)


if __name__ == "__main__":
    unittest.main()
