"""The notebooks run from top to bottom, on a small sweep in place of the demo, and are kept as run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def small_demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with runs/demo.zarr: the demo on a coarser grid."""
    folder = tmp_path_factory.mktemp("project")
    program = Path(sys.executable).with_name("spheresweep")
    coarser = ["grid.seed=4", "grid.beta={start: 1, stop: 9, num: 5}", "times={start: 0, stop: 30, num: 13}"]
    command = [program, "run", "experiment=demo", *coarser, "workers=none", "store.path=runs/demo.zarr"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=300)
    (folder / "notebooks").mkdir()
    return folder


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_notebook_runs_from_top_to_bottom(notebook: Path, small_demo: Path) -> None:
    content = nbformat.read(notebook, as_version=4)
    here = str(small_demo / "notebooks")
    client = NotebookClient(content, timeout=300, resources={"metadata": {"path": here}})
    client.execute(env={key: value for key, value in os.environ.items() if key != "MPLBACKEND"})
    outputs = [output for cell in content.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in outputs)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_kept_as_it_was_run(notebook: Path) -> None:
    cells = [cell for cell in nbformat.read(notebook, as_version=4).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell.outputs]
    assert not [o for o in outputs if o.output_type == "error" or o.get("name") == "stderr"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_defines_nothing(notebook: Path) -> None:
    """A notebook shows; what it would define belongs in the package."""
    source = "\n".join(c.source for c in nbformat.read(notebook, as_version=4).cells if c.cell_type == "code")
    assert "def " not in source
    assert "class " not in source
