"""Facts about who computed what are true, plain JSON, and never stand in the way."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from pipeline import provenance

ROOT = Path(__file__).parents[1]


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.org"]
    done = subprocess.run(
        ["git", "-C", str(folder), *who, *words], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def asked_in(folder: Path, question: str) -> object:
    """What a copy of the module says, in a process of its own."""
    code = f"import json, sys; sys.path.insert(0, {str(folder)!r}); from pipeline import provenance; "
    code += f"print(json.dumps({question}))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=folder
    )
    return json.loads(done.stdout)


def copied_to(folder: Path) -> Path:
    (folder / "pipeline").mkdir(parents=True)
    shutil.copy(ROOT / "pipeline" / "provenance.py", folder / "pipeline")
    (folder / "pipeline" / "__init__.py").touch()
    return folder


def test_all_facts_are_json() -> None:
    facts = [provenance.software(), provenance.platform_facts(), provenance.commit(), provenance.processor()]
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts


def test_the_time_is_iso_8601_in_utc() -> None:
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", provenance.now())


def test_versions_are_those_that_are_installed() -> None:
    versions = provenance.software()
    assert versions["numpy"] == metadata.version("numpy")
    assert versions["zarr"] == metadata.version("zarr")
    assert versions["python"].startswith(f"{sys.version_info.major}.{sys.version_info.minor}")


def test_the_processor_has_a_name_and_cores() -> None:
    processor = provenance.processor()
    assert processor["model"]
    assert 1 <= provenance.cores() <= 4096
    assert processor["cores"] == provenance.cores()


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_the_commit_is_that_of_the_source_and_changes_are_told(tmp_path: Path) -> None:
    folder = copied_to(tmp_path / "clone")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "first")
    head = git(folder, "rev-parse", "HEAD")
    assert asked_in(folder, "provenance.commit()") == {"commit": head, "modified": False}
    with (folder / "pipeline" / "provenance.py").open("a") as file:
        file.write("# changed\n")
    assert asked_in(folder, "provenance.commit()") == {"commit": head, "modified": True}
    assert f"commit {head} with local changes" in str(asked_in(folder, "provenance.source()"))


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_copy_inside_a_foreign_repository_is_not_taken_for_it(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "a thesis")
    folder = copied_to(tmp_path / "venv" / "site-packages")
    assert asked_in(folder, "provenance.commit()") == {}


def test_without_git_there_is_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert asked_in(copied_to(tmp_path / "bare"), "provenance.commit()") == {}
