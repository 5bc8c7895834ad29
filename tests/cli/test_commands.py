"""The other commands, usage errors, and bad configs as the program reports them."""

import json
import unittest

from support import CONFIGS, SOURCE, TINY, Case, run


class Commands(Case):
    def test_help_teaches_with_examples_and_every_command_has_its_own(self):
        done = self.ok("--help")
        self.assertIn("Examples:", done.stdout)
        for command in ["run", "step", "config", "configs", "init", "schema", "formats", "policies", "policy"]:
            self.assertIn(command, done.stdout)
            self.assertIn(command, self.ok(command, "--help").stdout)

    def test_version_names_the_compiler_the_flags_and_the_targets(self):
        text = self.ok("--version").stdout
        for word in ["scaletrace", "compiler:", "build:", "targets compiled:", "target in use:", "-ffp-contract=off"]:
            self.assertIn(word, text)

    def test_wrong_usage_is_one_line_and_exit_2(self):
        for args in [["nonsense"], ["run"], ["run", "a", "b"], ["run", "--nonsense", "x"], ["step", "--format"], ["init"]]:
            with self.subTest(args):
                self.assertIn("--help", self.fails(2, *args))
        self.assertEqual(run().returncode, 2)
        self.assertIn("did you mean 'run'", self.fails(2, "rnu", "config.yaml"))

    def test_config_prints_every_default_and_reads_back_to_itself(self):
        for config in CONFIGS:
            text = self.ok("config", config).stdout
            self.assertEqual(self.ok("config", self.write("again.yaml", text)).stdout, text)
        self.assertIn("lr: 0.25", self.ok("config", CONFIGS[0], "--set", "optimizer.lr=0.25").stdout)

    def test_a_policy_for_tensors_is_refused_in_one_clear_sentence(self):
        message = self.fails(2, "config", CONFIGS[0], "--set", "scaler={policy: te-delayed}")
        self.assertIn("a run cannot use it: scaletrace policy te-delayed --amax-file drives it", message)

    def test_an_override_that_is_wrong_names_its_key(self):
        self.assertRegex(self.fails(2, "config", CONFIGS[0], "--set", "optimizer.lrr=1"), r"^--set: optimizer\.lrr: .*did you mean 'lr'")
        self.assertRegex(self.fails(2, "config", CONFIGS[0], "--set", "steps=many"), r"^--set: steps: found many")
        self.fails(2, "config", CONFIGS[0], "--set", "steps")

    def test_configs_lists_the_shipped_ones_and_init_copies_one_that_runs(self):
        listed = self.ok("configs").stdout
        for config in CONFIGS:
            self.assertIn(config.stem, listed)
        for config in CONFIGS:
            self.ok("init", config.stem, cwd=self.folder)
            self.assertEqual((self.folder / config.name).read_bytes(), config.read_bytes())
            self.ok("run", config.name, "--quiet", cwd=self.folder)
        self.assertIn("exists already", self.fails(2, "init", "quickstart", cwd=self.folder))
        self.ok("init", "quickstart", "--force", cwd=self.folder)
        self.assertIn("did you mean 'quickstart'", self.fails(2, "init", "quickstrat", cwd=self.folder))

    def test_the_schema_is_json_schema_draft_07_and_names_every_key(self):
        schema = json.loads(self.ok("schema").stdout)
        self.assertEqual(schema["$schema"], "http://json-schema.org/draft-07/schema#")
        self.assertFalse(schema["additionalProperties"])
        for line in self.ok("config", CONFIGS[0]).stdout.splitlines():
            if line and line[0] not in " #-":
                self.assertIn(line.split(":")[0], schema["properties"])

    def test_formats_and_policies_are_listed(self):
        formats = self.ok("formats").stdout
        for fact in ["bfloat16", "65504", "57344", "448", "5.9604645e-08"]:
            self.assertIn(fact, formats)
        self.assertIn("jax-step", self.ok("policies").stdout)

    def test_output_that_cannot_be_written_is_an_error(self):
        with open("/dev/full", "w") as full:
            import subprocess
            from support import PROGRAM
            done = subprocess.run([PROGRAM, "schema"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 3)
        self.assertIn("cannot write", done.stderr)


class BadConfigs(Case):
    def test_every_bad_config_gets_its_message_and_exit_2(self):
        folder = SOURCE / "tests" / "bad" / "config"
        inputs = sorted(p for p in folder.iterdir() if p.suffix != ".expected")
        self.assertGreaterEqual(len(inputs), 45)
        for path in inputs:
            with self.subTest(path.name):
                for command in (["config", path.name], ["run", path.name, "--out", str(self.folder / "out")]):
                    self.check(self.fails(2, *command, cwd=folder), path)
                self.assertFalse((self.folder / "out").exists())

    def check(self, message, path):
        expected = path.with_suffix(".expected").read_text().rstrip("\n")
        message = message.replace(str(path.parent) + "/", "", 1)
        if expected.endswith("..."):
            self.assertTrue(message.startswith(expected[:-3]), message)
        else:
            self.assertEqual(message, expected)

    def test_every_bad_data_file_gets_its_message_and_exit_3(self):
        for kind, settings in (("given", ""), ("csv", ", targets: [y]")):
            folder = SOURCE / "tests" / "bad" / kind
            inputs = sorted(p for p in folder.iterdir() if p.suffix != ".expected")
            self.assertGreaterEqual(len(inputs), 10)
            for path in inputs:
                with self.subTest(path.name):
                    config = self.write("bad.yaml", "data: {kind: %s, file: %s%s}\n" % (kind, json.dumps(str(path)), settings))
                    self.check(self.fails(3, "run", config, "--out", self.folder / "out", "--force"), path)

    def test_strange_files_are_errors_within_a_second_or_two(self):
        self.write("deep.yaml", "data: " + "[" * 10_000)
        self.write("deeper.yaml", "\n".join(" " * i + "a:" for i in range(10_000)))
        self.write("junk.yaml", "x" * 100_000_000)
        (self.folder / "nul.yaml").write_bytes(b"name: a\0b\n")
        for name in ["deep.yaml", "deeper.yaml", "nul.yaml", "junk.yaml", ".", "nowhere.yaml", "/dev/null"]:
            with self.subTest(name):
                done = run("config", self.folder / name, timeout=20)
                self.assertIn(done.returncode, (2, 3))
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_memory_that_does_not_exist_is_an_error(self):
        config = self.write("huge.yaml", TINY.format(steps=1))
        done = run("run", config, "--out", self.folder / "out", "--set", "data.samples=60000000", "--set", "data.features=1000000")
        self.assertIn(done.returncode, (2, 3))
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
