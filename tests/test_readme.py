"""What the README tells a newcomer to type works as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the README's commands were typed, one after the other, as in a checkout after `make setup`."""
    folder = tmp_path_factory.mktemp("checkout")
    (folder / ".venv").symlink_to(Path(sys.prefix))
    first, commands = blocks("bash")
    assert [line.split("#")[0].strip() for line in first.splitlines()] == ["make demo", "make test"]
    script = "set -euo pipefail\n" + commands
    done = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_commands_leave_a_dataset_and_figures(folder: Path) -> None:
    assert (folder / "runs" / "mine.zarr" / "zarr.json").is_file()
    assert (folder / "runs" / "mine-figures" / "phase_diagram.png").is_file()


@pytest.mark.parametrize("program", blocks("python"), ids=["dataset", "trajectory"])
def test_programs_run_as_they_stand(program: str, folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_what_it_points_to_is_there() -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", README)
    folders = re.findall(r"`(\w+)/`", README)
    assert links
    assert not [path for path in (*links, *folders) if not (ROOT / path).exists()]
