"""The project agrees with itself: one version, one list of dependencies, sound scripts, a sound wheel."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import pipeline

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PYTHONS = ("3.11.7", "3.12.8", "3.13.1")
# Distributions whose import name differs from their own.
IMPORT_NAMES = {"hydra-core": "hydra", "dask-jobqueue": "dask_jobqueue", "pyyaml": "yaml"}
# Needed, but not imported by name: dask is what distributed schedules and xarray's lazy arrays are made of.
NOT_IMPORTED = {"dask"}


def lock(name: str) -> list[Requirement]:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return [Requirement(line) for line in lines if line.strip() and not line.startswith("#")]


def locked(requirements: list[Requirement], python: str) -> dict[str, str]:
    """Name to version of what `requirements` install on Linux under a Python version."""
    here = {
        "python_version": python.rpartition(".")[0],
        "python_full_version": python,
        "sys_platform": "linux",
        "platform_python_implementation": "CPython",
        "implementation_name": "cpython",
    }
    chosen = [r for r in requirements if r.marker is None or r.marker.evaluate(here)]
    return {canonicalize_name(r.name): next(iter(r.specifier)).version for r in chosen}


def test_one_version_everywhere() -> None:
    version = PYPROJECT["project"]["version"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    newest = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)[0]
    assert {pipeline.__version__, metadata.version("spheresweep"), citation["version"], newest} == {version}


def test_one_licence_everywhere() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert PYPROJECT["project"]["license"] == citation["license"] == "BSD-3-Clause"
    assert (ROOT / "LICENSE").read_text(encoding="utf-8").startswith("BSD 3-Clause License")


def test_citation_names_its_papers_by_doi() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert all(re.fullmatch(r"10\.\d{4,}/\S+", paper["doi"]) for paper in citation["references"])
    assert "10.48550/arXiv.2312.10794" in {paper["doi"] for paper in citation["references"]}


@pytest.mark.parametrize("name", sorted(path.name for path in ROOT.glob("requirements*.lock")))
def test_lock_pins_exact_versions_and_names_no_place(name: str) -> None:
    assert lock(name)
    for requirement in lock(name):
        assert requirement.url is None
        assert [s.operator for s in requirement.specifier] == ["=="], requirement
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    assert not [line for line in lines if "://" in line or line.startswith(("-", "/", "."))]


@pytest.mark.parametrize("python", PYTHONS)
def test_lock_satisfies_every_declared_dependency(python: str) -> None:
    project = PYPROJECT["project"]
    extras = project["optional-dependencies"]
    wanted = project["dependencies"] + [r for extra, rs in extras.items() if extra != "bench" for r in rs]
    pins = locked(lock("requirements.lock"), python)
    for requirement in map(Requirement, wanted + PYPROJECT["build-system"]["requires"]):
        assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)]), requirement


def test_dependencies_are_those_that_the_package_imports() -> None:
    declared = {canonicalize_name(Requirement(r).name) for r in PYPROJECT["project"]["dependencies"]}
    roots = set()
    for path in (ROOT / "pipeline").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                roots |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                roots.add(node.module.split(".")[0])
    third_party = roots - set(sys.stdlib_module_names) - {"pipeline"}
    imported = {IMPORT_NAMES.get(name, name) for name in declared - NOT_IMPORTED}
    assert third_party - NOT_IMPORTED == imported


SCRIPTS = (*ROOT.glob("workflows/*"), *ROOT.glob("tests/slurm/*.sh"), ROOT / ".ci" / "run")


@pytest.mark.parametrize("script", sorted(str(path.relative_to(ROOT)) for path in SCRIPTS))
def test_shell_scripts_parse_and_stop_at_the_first_error(script: str) -> None:
    text = (ROOT / script).read_text(encoding="utf-8")
    assert text.startswith("#!/usr/bin/env bash\n")
    assert "set -euo pipefail" in text
    assert os.access(ROOT / script, os.X_OK)
    subprocess.run(["bash", "-n", ROOT / script], check=True)


def test_make_knows_the_daily_vocabulary() -> None:
    done = subprocess.run(["make", "-s", "help"], cwd=ROOT, check=True, capture_output=True, text=True)
    words = re.findall(r"^  make (\w+)", done.stdout, re.MULTILINE)
    assert words == ["setup", "demo", "test", "lint", "bench", "docs", "clean"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's wheel, built from a copy without history, caches or what runs left."""
    source = tmp_path_factory.mktemp("source") / "spheresweep"
    ignore = shutil.ignore_patterns(".*", "__pycache__", "runs", "_build", "*.zarr", "build", "dist")
    shutil.copytree(ROOT, source, ignore=ignore)
    target = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "-w", target, source], check=True, capture_output=True)
    (built,) = target.glob("*.whl")
    return built


def test_wheel_carries_the_configuration_and_nothing_foreign(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    packed = {name.removeprefix("pipeline/conf/") for name in names if name.startswith("pipeline/conf/")}
    assert packed == {p.relative_to(ROOT / "conf").as_posix() for p in (ROOT / "conf").rglob("*.yaml")}
    roots = {name.split("/")[0] for name in names}
    assert roots == {"pipeline", f"spheresweep-{pipeline.__version__}.dist-info"}


def test_installed_wheel_plans_the_demo_from_an_empty_folder(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    empty = tmp_path / "empty"
    empty.mkdir()
    program = "import sys, pipeline, pipeline.cli; print(pipeline.__file__); sys.exit(pipeline.cli.main())"
    done = subprocess.run(
        [sys.executable, "-c", program, "plan", "experiment=demo", "store.path=demo.zarr"],
        cwd=empty,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(tmp_path / "site"))
    assert not list(empty.iterdir()), "a plan has no effects"
