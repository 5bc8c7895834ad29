"""The floors of DESIGN.md hold: a file includes only its own folder, lower floors, and the third parties that live on its floor."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Floor -> the floors it may include directly or through others, and the third parties whose home it is.
FLOORS = {
    "base": ([], {"nlohmann", "openssl", "Random123"}),
    "numerics": (["base"], set()),
    "data": (["base"], set()),
    "scaling": (["base"], set()),
    "trace": (["base"], set()),
    "compare": (["trace", "base"], set()),
    "kernels": (["numerics", "base"], {"hwy"}),
    "model": (["kernels", "numerics", "base"], set()),
    "train": (["model", "kernels", "numerics", "data", "scaling", "trace", "base"], set()),
    "config": (["train", "model", "kernels", "numerics", "data", "scaling", "trace", "base"], {"yaml-cpp"}),
    "check": (["config", "compare", "train", "model", "kernels", "numerics", "data", "scaling", "trace", "base"], set()),
    "sweep": (["config", "train", "model", "kernels", "numerics", "data", "scaling", "trace", "base"], set()),
}
ANYONES = re.compile(r"[a-z_0-9]+(/[a-z_0-9]+)?(\.h)?$")  # the standard library and the system, in <>


def includes(path):
    return re.findall(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', path.read_text(), re.M)


class Floors(unittest.TestCase):
    def test_every_folder_of_lib_is_a_floor_of_this_table_and_of_design_md(self):
        folders = {p.name for p in (ROOT / "lib").iterdir() if p.is_dir()}
        self.assertEqual(folders, set(FLOORS))
        for floor in FLOORS:
            self.assertIn("lib/" + floor, (ROOT / "DESIGN.md").read_text())

    def test_a_file_includes_only_its_own_folder_and_lower_floors(self):
        seen = 0
        for floor, (lower, homes) in FLOORS.items():
            for path in (ROOT / "lib" / floor).iterdir():
                for bracket, name in includes(path):
                    seen += 1
                    first = name.split("/")[0]
                    with self.subTest(file=str(path.relative_to(ROOT)), include=name):
                        if (ROOT / "lib" / first).is_dir() and "/" in name:
                            self.assertIn(first, [floor, *lower])
                        elif bracket == "<":
                            self.assertTrue(first in homes or (first in {"sys"} or "/" not in name), "a third party off its floor")
                            if "/" not in name:
                                self.assertRegex(name, ANYONES)
                        else:
                            self.assertIn(first, homes, "a third party off its floor")
        self.assertGreater(seen, 200)

    def test_the_libraries_link_only_lower_floors(self):
        text = (ROOT / "lib" / "libraries.cmake").read_text()
        for name, deps in re.findall(r"scaletrace_library\((\w+)\s+SOURCES[^)]*?DEPS([^)]*)\)", text):
            for dep in re.findall(r"scaletrace_(\w+)", deps):
                if dep != "highway":
                    self.assertIn(dep, FLOORS[name][0], name)

    def test_the_library_neither_prints_nor_exits(self):
        for path in (ROOT / "lib").glob("*/*"):
            code = re.sub(r"//.*", "", path.read_text())
            for word in [r"std::c(out|err)\b", r"\bprintf\(", r"\bexit\(", r"\babort\(", r"\bspdlog\b", r"\bassert\("]:
                self.assertIsNone(re.search(r"(?<![\w:])" + word if not word.startswith("std") else word, code), (path, word))


if __name__ == "__main__":
    unittest.main()
