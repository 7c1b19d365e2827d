# SPDX-License-Identifier: Apache-2.0
"""Bad input: one clear sentence, exit code 2, nothing lost."""

from __future__ import annotations

import os
import sqlite3
import subprocess

from harness import BINARY, PYTHON, RELU, Case, main


class CommandLine(Case):
    def test_unknown_command_option_and_values(self) -> None:
        self.write("relu.py", RELU)
        for arguments, word in [
            (["frobnicate"], "frobnicate"),
            (["optimize"], "problem"),
            (["optimize", "relu.py", "--stepz", "3"], "--stepz"),
            (["optimize", "relu.py", "--steps", "many"], "steps"),
            (["optimize", "relu.py", "--steps", "0"], "steps"),
            (["optimize", "relu.py", "--time", "soon"], "soon"),
            (["optimize", "relu.py", "--target", "abacus"], "abacus"),
            (["optimize", "relu.py", "--target", "cuda"], "choose another --target"),
            (["optimize", "relu.py", "--policy", "oracle"], "oracle"),
            (["optimize", "relu.py", "--proposers", "muse"], "muse"),
            (["optimize", "relu.py", "--precision", "sloppy"], "precision"),
            (["optimize", "relu.py", "--libraries", "no_such_library"], "no_such_library"),
            (["optimize", "relu.py", "--libraries", "/lib/x"], "/lib/x"),
            (["optimize", "relu.py", "--determinism", "mostly"], "--determinism"),
            (["graph", "show", "1"], "experience graph"),
            (["suite", "run", "nowhere"], "nowhere"),
            (["suite", "report", "nowhere.jsonl"], "nowhere.jsonl"),
            (["resume"], "workspace"),
            (["export", "1"], "experience graph"),
        ]:
            with self.subTest(arguments=arguments):
                self.assert_refused(self.run_binary(*arguments), word)
                self.assertEqual(os.listdir(self.folder), ["relu.py"], "something was left behind")

    def test_help_and_version_succeed(self) -> None:
        texts = ["--help", "optimize --help", "suite run --help", "--version"]
        for arguments in (text.split() for text in texts):
            ran = self.run_binary(*arguments)
            self.assertEqual(ran.returncode, 0)
            self.assertTrue(ran.stdout.strip())


class ProblemFile(Case):
    def refused(self, text: str, *words: str) -> None:
        path = self.write("problem.py", text)
        self.assert_refused(self.run_binary("optimize", path, "--steps", "2"), *words)

    def test_absent(self) -> None:
        self.assert_refused(self.run_binary("optimize", "absent.py"), "absent.py", "does not exist")

    def test_syntax_error(self) -> None:
        self.refused("def broken(:\n", "syntax")

    def test_lacks_a_function(self) -> None:
        self.refused(RELU.replace("def get_inputs", "def got_inputs"), "get_inputs")

    def test_returns_the_wrong_thing(self) -> None:
        self.refused(RELU.replace("[torch.randn(64, 1000)]", "7"), "get_inputs")
        self.refused(RELU.replace("torch.relu(x)", "'relu'"), "forward")

    def test_raises_exits_or_needs_a_package(self) -> None:
        self.refused(RELU.replace("torch.relu(x)", "x.no_such_method()"), "no_such_method")
        self.refused("import sys\nsys.exit(0)\n", "exit")
        self.refused("import os\nos._exit(0)\n", "ended")
        self.refused("import no_such_package\n", "no_such_package")


class Machine(Case):
    def test_no_compiler(self) -> None:
        self.write("relu.py", RELU)
        empty = self.folder / "bin"
        empty.mkdir()
        self.assert_refused(self.run_binary("optimize", "relu.py", PATH=str(empty)), "g++")

    def test_python_without_torch(self) -> None:
        self.write("relu.py", RELU)
        fake = self.write("fake_python", "#!/bin/sh\nexit 1\n")
        fake.chmod(0o755)
        ran = subprocess.run(
            [BINARY, "optimize", "relu.py", "--steps", "1"],
            cwd=self.folder,
            env=dict(os.environ, KE_PYTHON=str(fake)),
            capture_output=True,
            text=True,
            timeout=480,
        )
        self.assert_refused(ran, "PyTorch")


    def test_sandbox_required_where_a_protection_is_missing(self) -> None:
        """A user namespace of its own in which no further one may be made."""
        self.write("relu.py", RELU)
        command = f"{BINARY} verify relu.py relu.py --sandbox required"
        script = f"echo 0 > /proc/sys/user/max_user_namespaces && {command}"
        ran = subprocess.run(
            ["unshare", "-Ur", "sh", "-c", script],
            cwd=self.folder,
            env=dict(os.environ, KE_PYTHON=PYTHON),
            capture_output=True,
            text=True,
            timeout=480,
        )
        if "unshare" in ran.stderr or "Permission denied" in ran.stderr:
            self.skipTest("this machine forbids user namespaces")
        self.assert_refused(ran, "--sandbox required", "lacks user")


class WorkspaceFolder(Case):
    def setUp(self) -> None:
        super().setUp()
        self.write("relu.py", RELU)
        self.workspace = self.folder / "ws"

    def refused(self, *words: str) -> None:
        ran = self.run_binary("optimize", "relu.py", "--steps", "1", "--workspace", self.workspace)
        self.assert_refused(ran, *words)

    def test_damaged(self) -> None:
        self.workspace.mkdir()
        (self.workspace / "experience.db").write_bytes(b"this is not a database" * 100)
        self.refused("experience.db")

    def test_newer_version(self) -> None:
        self.run_binary("optimize", "relu.py", "--steps", "1", "--workspace", self.workspace)
        with sqlite3.connect(self.workspace / "experience.db") as database:
            database.execute("PRAGMA user_version = 9999")
        self.refused("newer")

    def test_locked(self) -> None:
        import fcntl

        self.workspace.mkdir()
        with open(self.workspace / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.refused("in use")

    def test_not_a_folder(self) -> None:
        self.workspace.write_text("a file")
        self.refused("ws")

    def refused_on_a_mount(self, options: str, *words: str) -> None:
        """The workspace is a memory file system of its own, mounted with the given options."""
        self.workspace.mkdir(exist_ok=True)
        flags = "-m" if os.geteuid() == 0 else "-rm"
        mount = f"mount -t tmpfs -o {options} tmpfs {self.workspace}"
        room = ["unshare", flags, "sh", "-c", f'{mount} || exit 77; exec "$@"', "sh"]
        ran = subprocess.run(
            [*room, BINARY, "optimize", "relu.py", "--steps", "3", "--workspace", self.workspace],
            cwd=self.folder,
            env=dict(os.environ, KE_PYTHON=PYTHON),
            capture_output=True,
            text=True,
            timeout=900,
        )
        if ran.returncode in (1, 77) and "kernelevolve" not in ran.stderr:
            self.skipTest("mounting is not allowed here")
        self.assert_refused(ran, *words)

    def test_read_only(self) -> None:
        self.refused_on_a_mount("ro", "ws")

    def test_full_disk(self) -> None:
        for size in ("8k", "200k", "600k"):  # full at once, and while the run grows
            with self.subTest(size=size):
                self.refused_on_a_mount(f"size={size}", "full")


if __name__ == "__main__":
    main()
