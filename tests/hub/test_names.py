"""Models that were pulled: list, show, rm, names for paths; huggingface_hub as the other reader
and writer of the cache, where a Python has it.
"""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

from hub_case import BIG, DEADLINE, ROOT, HubTest, model_files


class WhatIsHere(HubTest):
    def setUp(self):
        super().setUp()
        self.mirror.add(
            "org/name", {"config.json": b"{}", "m-Q8_0.gguf": b"eight", "m-Q4_0.gguf": b"four"}
        )
        self.first = self.mirror.add("one/Model-1.7B", model_files())
        self.good(self.pull("hf:one/Model-1.7B"))
        self.good(self.pull("hf:org/name:Q8_0"))

    def test_list_names_size_revision_and_kind(self):
        table = self.good(self.loom("list"))
        self.assertRegex(table, r"one/Model-1\.7B +3000\.\d kB .* main \([0-9a-f]{7}\) +safe")
        self.assertRegex(table, r"org/name +5 B .* gguf Q8_0")
        self.assertEqual(
            json.loads(self.good(self.loom("list", "--json")))[0]["commit"], self.first.commit
        )

    def test_an_empty_cache_says_how_to_fill_it(self):
        ran = self.loom("list", HF_HOME=str(self.home / "none"))
        self.assertIn("loom pull", ran.stderr)
        self.assertEqual(self.good(ran), "")

    def test_show_tells_the_files(self):
        shown = self.good(self.loom("show", "model-1.7b"))
        for text in [
            "one/Model-1.7B",
            "safetensors",
            "3000.0 kB  model.safetensors",
            self.first.commit[:7],
        ]:
            self.assertIn(text, shown)

    def test_a_missing_name_says_what_to_pull(self):
        for verb in [
            ["run", "Modle-1.7B", "-p", "x"],
            ["info", "modle-1.7B"],
            ["tokenize", "modle-1.7b", "x"],
        ]:
            self.refused(self.loom(*verb), 3, "did you mean 'Model-1.7B'", "loom pull")
        self.refused(self.loom("info", "Q.nothing"), 3, "no such file or folder")

    def test_names_are_taken_wherever_a_path_is(self):
        story = ROOT / "models" / "stories.entity"
        self.mirror.add("org/stories", {"stories.entity": story.read_bytes()})
        path = self.good(self.pull("hf:org/stories:stories.entity")).strip()
        words = {
            "run": ["-p", "Once", "--max-tokens", "2"],
            "info": [],
            "tokenize": ["Once"],
            "perplexity": [],
        }
        for verb, more in words.items():
            for name in ["hf:org/stories:stories.entity", "stories:stories.entity"]:
                ran = self.loom(verb, name, *more)
                self.assertNotIn("no such", ran.stderr)
                self.assertEqual(ran.stdout, self.loom(verb, path, *more).stdout)
        self.good(self.loom("diff", "stories:stories.entity", str(story)))
        out = self.home / "out.gguf"
        self.good(self.loom("convert", "stories:stories.entity", str(out)))

    def test_rm_asks_and_frees_what_nothing_else_needs(self):
        self.refused(self.loom("rm", "name"), 2, "--yes")
        second = self.mirror.add("one/Model-1.7B", model_files(config__json=b'{"new": 1}'))
        self.good(self.pull("hf:one/Model-1.7B"))
        self.assertEqual(len(self.blobs("one/Model-1.7B")), 5)
        self.good(self.loom("rm", f"one/model-1.7b@{self.first.commit}", "--yes"))
        self.assertEqual(len(self.blobs("one/Model-1.7B")), 4)
        path = self.repo_folder("one/Model-1.7B") / "snapshots" / second.commit
        self.assertEqual((path / "model.safetensors").read_bytes(), BIG)
        self.good(self.loom("rm", "model-1.7b", "--yes"))
        self.assertFalse(self.repo_folder("one/Model-1.7B").exists())
        self.refused(self.loom("rm", "model-1.7b", "--yes"), 3, "no model of that name")

    def test_rm_of_one_file_leaves_the_others(self):
        self.good(self.pull("hf:org/name:Q4_0"))
        ran = self.loom("run", "name", "-p", "x")  # the bytes are not a model
        self.refused(ran, 3, "org/name: Q4_0 (4 B) of 2 GGUF files; hf:org/name:Q8_0 takes")
        self.good(self.loom("rm", "hf:org/name:Q8_0", "--yes"))
        self.assertEqual(json.loads(self.good(self.loom("list", "--json")))[1]["kind"], "gguf Q4_0")

    def test_two_models_of_one_name_have_to_be_told_apart(self):
        self.mirror.add("two/Model-1.7B", model_files())
        self.good(self.pull("hf:two/Model-1.7B"))
        self.refused(self.loom("show", "model-1.7b"), 2, "one/Model-1.7B, two/Model-1.7B")

    def test_folders_that_are_no_models_are_left_alone(self):
        (self.home / "hub" / "datasets--a--b" / "snapshots").mkdir(parents=True)
        (self.home / "hub" / "models--..--..").mkdir()
        (self.home / "hub" / "models--broken--x" / "snapshots" / "c").mkdir(parents=True)
        (self.home / "hub" / "models--broken--x" / "snapshots" / "c" / "gone").symlink_to(
            "../../blobs/none"
        )
        self.assertEqual(len(json.loads(self.good(self.loom("list", "--json")))), 2)


class WithHuggingfaceHub(HubTest):
    """Its own client against the same mirror and the same cache."""

    def setUp(self):
        super().setUp()
        self.python = os.environ.get("LOOM_HUB_PYTHON", sys.executable)
        if (
            subprocess.run(
                [self.python, "-c", "import huggingface_hub"], capture_output=True
            ).returncode
            != 0
        ):
            self.skipTest("no huggingface_hub; name a Python that has it in LOOM_HUB_PYTHON")

    def hub(self, code: str) -> str:
        env = self.clean_env(self.home) | {
            "HF_ENDPOINT": self.mirror.url,
            "HF_HUB_DISABLE_XET": "1",
        }
        ran = subprocess.run(
            [self.python, "-c", "import huggingface_hub as hub\n" + code],
            env=env,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
        )
        self.assertEqual(ran.returncode, 0, ran.stderr)
        return ran.stdout.strip()

    def test_it_reads_what_we_wrote(self):
        self.mirror.add("org/name", model_files())
        path = self.good(self.pull("hf:org/name")).strip()
        self.assertEqual(
            self.hub(
                "print(hub.hf_hub_download('org/name', 'config.json', local_files_only=True))"
            ),
            path + "/config.json",
        )
        self.assertEqual(
            self.hub("print(hub.snapshot_download('org/name', local_files_only=True))"), path
        )
        told = self.hub(
            "i = hub.scan_cache_dir()\nprint(len(i.warnings), [r.repo_id for r in i.repos], "
            "i.size_on_disk)"
        )
        size = sum(
            len(model_files()[n])
            for n in [
                "config.json",
                "generation_config.json",
                "model.safetensors",
                "tokenizer.json",
            ]
        )
        self.assertEqual(told, f"0 ['org/name'] {size}")

    def test_we_read_what_it_wrote(self):
        repo = self.mirror.add("org/name", model_files())
        path = self.hub("print(hub.hf_hub_download('org/name', 'model.safetensors'))")
        self.assertEqual(
            json.loads(self.good(self.loom("list", "--json")))[0]["commit"], repo.commit
        )
        told = json.loads(self.good(self.pull("hf:org/name", "--json")))
        self.assertEqual(told["path"], str(Path(path).parent))
        self.assertLess(told["loaded_bytes"], 1000)  # the weights were there

    def test_it_goes_on_from_nothing_of_ours_and_removes_it(self):
        self.mirror.add("org/name", model_files())
        self.good(self.pull("hf:org/name"))
        self.hub(
            "i = hub.scan_cache_dir()\n"
            "i.delete_revisions(*[v.commit_hash for r in i.repos for v in r.revisions]).execute()"
        )
        self.assertEqual(json.loads(self.good(self.loom("list", "--json"))), [])


if __name__ == "__main__":
    unittest.main()
