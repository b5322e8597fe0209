"""The shape of the package: imports point strictly down, wings stay apart, each library has its doors.

A module is a file or a folder right under ``pipeline/``. Imports inside functions and under
``TYPE_CHECKING`` count like any other.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "pipeline"

FLOORS: tuple[frozenset[str], ...] = (
    frozenset({"sphere", "theory", "schema", "provenance", "workers"}),
    frozenset({"dynamics", "integrate", "store"}),
    frozenset({"observe", "analyse", "figures", "package"}),
    frozenset({"cell", "report"}),
    frozenset({"sweep"}),
    frozenset({"run"}),
    frozenset({"config"}),
    frozenset({"cli", "explore"}),
)
WINGS: dict[str, frozenset[str]] = {
    "numbers": frozenset({"sphere", "theory", "dynamics", "integrate", "observe"}),
    "labels": frozenset({"schema", "analyse", "figures"}),
    "world": frozenset({"provenance", "workers", "store", "package"}),
}
ANYONE_MAY_IMPORT = frozenset({"schema", "theory"})
SIMULATION = frozenset({"dynamics", "integrate", "observe"})  # theory is its check, so neither sees the other

ONLY: dict[str, frozenset[str]] = {
    "zarr": frozenset({"store", "package"}),
    "xarray": frozenset({"analyse", "figures", "store", "package", "cell", "report", "explore"}),
    "dask": frozenset({"workers"}),
    "distributed": frozenset({"workers"}),
    "dask_jobqueue": frozenset({"workers"}),
    "hydra": frozenset({"config", "cli"}),
    "omegaconf": frozenset({"config", "cli"}),
    "pydantic": frozenset({"config"}),
    "yaml": frozenset({"config"}),
    "matplotlib": frozenset({"figures"}),
    "numba": WINGS["numbers"],
    "llvmlite": WINGS["numbers"],
    "scipy": WINGS["numbers"],
    "finufft": WINGS["numbers"],
    "ducc0": WINGS["numbers"],
    "random": frozenset(),
}
LONGEST_FILE = 400
SUBJECTLESS = ("utils", "util", "helpers", "helper", "common", "misc")


def files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def module_of(path: Path) -> str:
    """The file's or the folder's name right under the package; ``__init__`` for the package's own."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(source: str, package: tuple[str, ...]) -> Iterator[str]:
    """Dotted names that a file imports, anywhere in it; `package` is the package the file lies in."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            stem = ".".join((*above, *([node.module] if node.module else [])))
            yield from (f"{stem}.{alias.name}" for alias in node.names)


def imports(path: Path) -> set[str]:
    package = ("pipeline", *path.relative_to(PACKAGE).parts[:-1])
    return set(imported(path.read_text(encoding="utf-8"), package))


def neighbours(path: Path) -> set[str]:
    """Other modules of this package that a file imports (``pipeline.__version__`` is not one)."""
    inside = {name.split(".")[1] for name in imports(path) if name.startswith("pipeline.")}
    return {name for name in inside if not name.startswith("__")} - {module_of(path)}


def below(module: str) -> frozenset[str]:
    height = next(height for height, floor in enumerate(FLOORS) if module in floor)
    return frozenset().union(*FLOORS[:height])


def wing_of(module: str) -> str | None:
    return next((wing for wing, modules in WINGS.items() if module in modules), None)


def standing() -> list[Path]:
    """Every file that stands on a floor: all but the package's own front door."""
    return [path for path in files() if module_of(path) not in {"__init__", "__main__"}]


def test_every_file_has_a_floor() -> None:
    floors = frozenset().union(*FLOORS)
    assert {module_of(path) for path in standing()} <= floors
    assert sum(map(len, FLOORS)) == len(floors), "a module stands on two floors"


def test_imports_point_strictly_down() -> None:
    climbing = {
        (str(path.relative_to(PACKAGE)), name)
        for path in standing()
        for name in neighbours(path) - below(module_of(path))
    }
    assert not climbing


def test_wings_do_not_import_one_another() -> None:
    crossing = {
        (str(path.relative_to(PACKAGE)), name)
        for path in standing()
        for name in neighbours(path) - ANYONE_MAY_IMPORT
        if wing_of(module_of(path)) is not None and wing_of(name) != wing_of(module_of(path))
    }
    assert not crossing


def test_simulation_and_theory_do_not_know_each_other() -> None:
    simulation = [path for path in standing() if module_of(path) in SIMULATION]
    assert not {str(path) for path in simulation if "theory" in neighbours(path)}


@pytest.mark.parametrize("library", sorted(ONLY))
def test_library_comes_in_only_through_its_doors(library: str) -> None:
    users = {module_of(path) for path in files() for name in imports(path) if name.split(".")[0] == library}
    assert users <= ONLY[library]


def test_nothing_is_imported_by_a_string() -> None:
    """What the other tests cannot see does not happen; the package's front door is lazy and may."""
    hidden = {
        str(path.relative_to(PACKAGE))
        for path in standing()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Attribute) and node.attr == "import_module")
        or (isinstance(node, ast.Name) and node.id in {"import_module", "__import__"})
    }
    assert not hidden


def test_files_are_subjects_and_short() -> None:
    long = {
        str(path.relative_to(PACKAGE)): lines
        for path in files()
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > LONGEST_FILE
    }
    assert not long
    named = {part.removesuffix(".py") for path in files() for part in path.relative_to(PACKAGE).parts}
    assert not {name for name in named if set(name.split("_")) & set(SUBJECTLESS)}


def test_the_reader_of_imports_sees_deferred_relative_and_aliased_ones() -> None:
    source = (
        "import zarr.storage as z\n"
        "def f():\n    from pipeline import run\n    from . import tableau\n"
        "    from ..schema import NAMES as n\n"
    )
    names = set(imported(source, ("pipeline", "integrate")))
    assert names == {"zarr.storage", "pipeline.run", "pipeline.integrate.tableau", "pipeline.schema.NAMES"}
