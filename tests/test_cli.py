"""The command line: exit codes, one line for every bad input, Hydra's habits, completion in a real bash."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zarr

import pipeline
from pipeline import cli, config, run, store

ROOT = Path(__file__).resolve().parents[1]
SMALL = ["workers=none", "grid.n=4", "grid.d=2", "grid.beta=[1,4]", "grid.seed=2", "horizon=5"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every command runs in an empty folder of its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small finished dataset, made by the command line."""
    path = tmp_path_factory.mktemp("made") / "small.zarr"
    assert cli.main(["run", *SMALL, f"store.path={path}"]) == cli.OK
    return path


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which `spheresweep` is this package's program."""
    folder = tmp_path_factory.mktemp("bin")
    program = folder / "spheresweep"
    program.write_text(
        f"#!{sys.executable}\nimport sys\nfrom pipeline.cli import main\n"
        "if __name__ == '__main__':\n    sys.exit(main())\n"
    )
    program.chmod(0o755)
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "PATH": f"{folder}:{os.environ['PATH']}",
        "PYTHONPATH": ":".join(paths),
        "TERM": "dumb",
    }


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The one line that is all a command says to bad input."""
    code = cli.main(words)
    out, err = capsys.readouterr()
    assert code == cli.BAD_INPUT, out + err
    assert out == ""
    assert len(err.splitlines()) == 1, err
    assert "Traceback" not in err
    assert err.startswith("spheresweep: ")
    assert "allowed" in err
    return err.removeprefix("spheresweep: ").strip()


# --- bad input: one line that names the key, what was given and what is allowed

BAD: dict[str, tuple[list[str], str, str]] = {
    "unknown key": (["grid.bta=3"], "grid.bta", "grid.beta"),
    "unknown key at the root": (["horizn=3"], "horizn", "horizon"),
    "unknown key of the workers": (["workers.proceses=3"], "workers.proceses", "workers.processes"),
    "unknown key, added": (["+foo=3"], "foo", "3"),
    "unknown key in an axis": (["grid.beta={start: 1, stop: 2, nun: 3}"], "grid.beta.nun", "num"),
    "unknown choice": (["dynamics=uas"], "dynamics", "usa"),
    "unknown experiment": (["experiment=dmeo"], "experiment", "demo"),
    "a number for a group": (["grid=3"], "grid", "paper"),
    "text for a number": (["tolerance=small"], "tolerance", "small"),
    "quoted number": (["tolerance='1'"], "tolerance", "'1'"),
    "bool for a number": (["root_seed=true"], "root_seed", "true"),
    "fraction for a whole number": (["clusters_kept=1.5"], "clusters_kept", "1.5"),
    "number for a path": (["store.path=3"], "store.path", "3"),
    "negative beta": (["grid.beta=[1,-1]"], "grid.beta", "-1"),
    "nan beta": (["grid.beta=nan"], "grid.beta", "nan"),
    "infinite beta": (["grid.beta=[1,inf]"], "grid.beta", "inf"),
    "bool beta": (["grid.beta=true"], "grid.beta", "true"),
    "one token": (["grid.n=1"], "grid.n", "1"),
    "one dimension": (["grid.d=[1,2]"], "grid.d", "1"),
    "fractional n": (["grid.n=2.5"], "grid.n", "2.5"),
    "no n at all": (["grid.n=null"], "grid.n", "null"),
    "empty axis": (["grid.beta=[]"], "grid.beta", "empty"),
    "duplicate value": (["grid.beta=[0.3,0.30000000000000004]"], "grid.beta", "twice"),
    "fractional seed": (["grid.seed=[0,0.5]"], "grid.seed", "0.5"),
    "textual seed": (["grid.seed='4'"], "grid.seed", "'4'"),
    "negative seed": (["grid.seed=[-1]"], "grid.seed", "-1"),
    "no seeds": (["grid.seed=0"], "grid.seed", "0"),
    "number of seeds with a point": (["grid.seed=1e3"], "grid.seed", "1000.0"),
    "horizon of 0": (["horizon=0"], "horizon", "0"),
    "negative horizon": (["horizon=-1"], "horizon", "-1"),
    "nan horizon": (["horizon=nan"], "horizon", "nan"),
    "word for a horizon": (["horizon=forever"], "horizon", "forever"),
    "consensus with times up to it": (["horizon=consensus"], "times.stop", "log_time"),
    "horizon before the last save time": (["horizon=2", "times=[0,3]"], "horizon", "3"),
    "negative time": (["times=[-1,1]"], "times", "-1"),
    "consensus with a value matrix": (
        ["horizon=consensus", "times=1", "dynamics.value={kind: diagonal, diagonal: [1, 2]}", "grid.d=2"],
        "horizon",
        "consensus",
    ),
    "consensus with layers": (["integrator=layers", "horizon=consensus", "times=1"], "horizon", "layers"),
    "tolerance too small": (["tolerance=1e-10"], "tolerance", "1e-10"),
    "tolerance too large": (["tolerance=2.5"], "tolerance", "2.5"),
    "unknown variable": (["variables=[energi]"], "variables", "energi"),
    "matrix of another size": (
        ["dynamics.key={kind: diagonal, diagonal: [1, 2]}", "grid.d=3"],
        "dynamics.key.diagonal",
        "3",
    ),
    "unknown kind of matrix": (["dynamics.key.kind=goee"], "dynamics.key.kind", "goe"),
    "matrix file that is not there": (
        ["dynamics.key={kind: file, path: k.npy}"],
        "dynamics.key.path",
        "k.npy",
    ),
    "integrator's tolerance of 0": (["integrator.tolerance=0"], "integrator.tolerance", "0"),
    "key of another integrator": (
        ["integrator=layers", "+integrator.tolerance=1"],
        "integrator.tolerance",
        "step",
    ),
    "step of 0": (["integrator=layers", "integrator.step=0"], "integrator.step", "0"),
    "more layers than can be": (["integrator=layers", "integrator.step=1e-18"], "integrator.step", "1e-18"),
    "more evaluations than can be": (
        ["integrator.max_evaluations=99999999999999999999"],
        "integrator.max_evaluations",
        "99999999999999999999",
    ),
    "half a block": (["block=[2]"], "block", "[2]"),
    "no workers": (["workers.processes=0"], "workers.processes", "0"),
    "scheduler without port": (["workers=connect", "workers.address=foo"], "workers.address", "foo"),
    "scheduler without address": (["workers=connect"], "workers.address", "scheduler_file"),
    "not an override": (["demo"], "demo", "experiment=demo"),
    "unreadable value": (["grid.beta=[1,,2]"], "grid.beta", "[1,,2]"),
    "unquoted braces": (["grid.beta=start:1", "grid.beta=stop:2", "grid.beta=num:3"], "grid.beta", "quote"),
    "unquoted blanks": (["grid.beta={start:", "1}"], "grid.beta", "quote"),
    "sweep without -m": (["grid.beta=1,2"], "grid.beta", "-m"),
    "lost interpolation": (["horizon=${horizn}"], "horizon", "horizn"),
    "unknown flag": (["--foo"], "--foo", "--help"),
    "unknown information": (["--info", "foo"], "--info", "searchpath"),
    "two modes": (["--cfg", "job", "--info"], "--cfg", "--info"),
    "folder that is not there": (["--config-dir", "nowhere"], "--config-dir", "nowhere"),
}


@pytest.mark.parametrize(("words", "key", "said"), BAD.values(), ids=BAD)
def test_bad_input_is_one_line(
    words: list[str], key: str, said: str, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    line = refused(capsys, "run", *words)
    assert line.startswith(f"{key}: ")
    assert said in line
    assert not list(folder.iterdir()), "bad input leaves nothing behind"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rnu"], "did you mean run?"),
        (["experiment=demo"], "did you mean spheresweep run experiment=demo?"),
        (["status"], "DATASET"),
        (["status", "x", "--jsn"], "--jsn"),
        (["figures"], "DATASET"),
        (["-sc", "install=tcsh"], "bash"),
        (["-sc"], "install=SHELL"),
    ],
)
def test_a_command_that_does_not_exist_is_one_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refused(capsys, *words)


def test_a_damaged_configuration_file_is_one_line(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    (folder / "experiment").mkdir()
    (folder / "experiment" / "mine.yaml").write_text("# @package _global_\ngrid: {n: [1, 2\n")
    assert cli.main(["plan", "--config-dir", ".", "experiment=mine"]) == cli.BAD_INPUT
    assert len(capsys.readouterr().err.splitlines()) == 1


# --- bad paths and stores


def foreign(path: Path) -> None:
    zarr.create_group(str(path)).create_array("x", shape=(2,), dtype="int8")


def truncated(path: Path) -> None:
    folder = path / "energy"
    shutil.rmtree(folder)


PLACES: dict[str, Callable[[Path], Any]] = {
    "a file": Path.touch,
    "a folder of other things": lambda path: (path.mkdir(), (path / "thesis.tex").touch()),
    "a foreign Zarr store": foreign,
    "half a zarr.json": lambda path: (path.mkdir(), (path / "zarr.json").write_text('{"zarr_format": 3')),
}


@pytest.mark.parametrize("make", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("verb", ["run", "plan", "status", "figures", "validate"])
def test_a_path_that_is_not_a_dataset_is_one_line_and_untouched(
    verb: str, make: Callable[[Path], Any], capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    make(folder / "x.zarr")
    before = sorted(folder.rglob("*"))
    words = [*SMALL, "store.path=x.zarr"] if verb in ("run", "plan") else ["x.zarr"]
    line = refused(capsys, verb, *words)
    assert line.startswith("store.path: ")
    assert "x.zarr" in line
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("verb", ["status", "figures", "validate"])
def test_a_dataset_that_does_not_exist_is_one_line(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "nowhere.zarr" in refused(capsys, verb, "nowhere.zarr")


@pytest.mark.parametrize("verb", ["run", "plan", "status", "figures"])
def test_a_truncated_dataset_is_one_line(
    verb: str, dataset: Path, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    shutil.copytree(dataset, folder / "x.zarr")
    truncated(folder / "x.zarr")
    words = [*SMALL, "store.path=x.zarr"] if verb in ("run", "plan") else ["x.zarr"]
    assert "energy" in refused(capsys, verb, *words)


def test_a_truncated_dataset_is_a_fault(
    dataset: Path, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    shutil.copytree(dataset, folder / "x.zarr")
    truncated(folder / "x.zarr")
    assert cli.main(["validate", "x.zarr"]) == cli.FAILED
    assert "energy is missing" in capsys.readouterr().out


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 0xFF
    file.write_bytes(content)


DAMAGE: dict[str, Callable[[Path], Any]] = {
    "a flipped byte of status": lambda path: flip(next((path / "status").glob("c.*"))),
    "a short shard of evaluations": lambda path: next((path / "evaluations").glob("c.*")).write_bytes(
        b"short"
    ),
    "no beta": lambda path: next((path / "beta").glob("c*")).unlink(),
    "an empty record of failures": lambda path: _written(path / ".spheresweep/failures/0.0.0.0.json", ""),
    "a record of failures of another kind": lambda path: _written(
        path / ".spheresweep/failures/0.0.0.0.json", "[]"
    ),
    "an edited tolerance": lambda path: (path / "zarr.json").write_text(
        (path / "zarr.json").read_text().replace('\\"tolerance\\": 0.001', '\\"tolerance\\": 0.01')
    ),
}


def _written(file: Path, text: str) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_a_fault_and_never_a_traceback(
    kind: str, dataset: Path, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    shutil.copytree(dataset, folder / "x.zarr")
    assert cli.main(["validate", "x.zarr"]) == cli.OK
    DAMAGE[kind](folder / "x.zarr")
    for words in (["status", "x.zarr"], ["figures", "x.zarr"], ["run", *SMALL, "store.path=x.zarr"]):
        capsys.readouterr()
        code = cli.main(words)
        out, err = capsys.readouterr()
        assert code in (cli.OK, cli.BAD_INPUT)
        if code == cli.BAD_INPUT:
            assert "; allowed: " in err.splitlines()[-1], out + err
    assert cli.main(["validate", "x.zarr"]) == cli.FAILED


@pytest.mark.parametrize(
    "content", ["{}", '{"pid": 1, "heartbeat": null}', '{"pid": 1, "heartbeat": 1e12}', "[1]"]
)
def test_a_lease_that_nobody_can_hold_is_taken_over(
    content: str, dataset: Path, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    shutil.copytree(dataset, folder / "x.zarr")
    (folder / "x.zarr/.spheresweep/lease.json").write_text(content)
    assert cli.main(["run", *SMALL, "store.path=x.zarr"]) == cli.OK


def test_stray_files_among_the_blocks_are_no_blocks(
    dataset: Path, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    shutil.copytree(dataset, folder / "x.zarr")
    (folder / "x.zarr/status/c.9.9.9.9").write_text("x")
    (folder / "x.zarr/status/c.0.0.0.77").mkdir()
    for receipts in (folder / "x.zarr/.spheresweep/receipts").glob("*"):
        receipts.write_bytes(b'\xff\xfe\n[1]\n{"seconds": 1, "threads": null}\n')
    assert cli.main(["run", *SMALL, "store.path=x.zarr"]) == cli.OK
    assert cli.main(["status", "x.zarr"]) == cli.OK


def test_a_place_where_nothing_can_be_made_is_one_line(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    (folder / "file").touch()
    assert refused(capsys, "run", *SMALL, "store.path=file/x.zarr").startswith("store.path: ")


@pytest.mark.parametrize(
    ("change", "key"),
    [("grid.beta=[1,5]", "grid.beta"), ("tolerance=1e-2", "tolerance"), ("dynamics=usa", "dynamics.name")],
)
def test_another_sweep_is_refused_and_the_axis_or_key_is_named(
    change: str, key: str, dataset: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [word for word in SMALL if word.split("=")[0] != change.split("=")[0]]
    assert refused(capsys, "run", *words, change, f"store.path={dataset}").startswith(f"{key}: ")


# --- the commands


def test_run_ends_with_the_dataset_and_a_next_step_and_leaves_nothing_else(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    assert cli.main(["run", *SMALL, "store.path=out/x.zarr"]) == cli.OK
    out, err = capsys.readouterr()
    assert out.splitlines() == ["dataset: out/x.zarr", "next:    spheresweep figures out/x.zarr"]
    assert "4 of 4 cells done" in err
    assert [path.name for path in folder.iterdir()] == ["out"]
    assert [path.name for path in (folder / "out").iterdir()] == ["x.zarr"]
    assert Path.cwd() == folder
    found = store.inspect(folder / "out" / "x.zarr")
    assert json.loads(found.attrs["config"])["grid"]["beta"] == [1, 4]


def test_run_on_a_finished_dataset_computes_nothing(
    dataset: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["run", *SMALL, "workers=local", f"store.path={dataset}"]) == cli.OK
    assert "nothing to compute" in capsys.readouterr().err


def test_plan_prints_a_price_and_runs_nothing(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert cli.main(["plan", "experiment=paper_phase_diagram"]) == cli.OK
    out = capsys.readouterr().out
    assert "1,105,920" in out
    assert "core-hours" in out
    assert not list(folder.iterdir())


def test_what_a_new_dataset_says_of_itself_can_be_given(folder: Path) -> None:
    assert cli.main(["run", *SMALL, "store.path=x.zarr", "about.creator_name='A. Turing'"]) == cli.OK
    assert store.inspect(folder / "x.zarr").attrs["creator_name"] == "A. Turing"


def test_failed_cells_give_1_and_status_tells_each_with_its_error(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    words = [*SMALL, "integrator.max_evaluations=20", "store.path=x.zarr"]
    assert cli.main(["run", *words]) == cli.FAILED
    assert "4 of 4 cells failed" in capsys.readouterr().out
    assert cli.main(["status", "x.zarr"]) == cli.OK
    out = capsys.readouterr().out
    assert "0 of 4 cells done, 4 failed, 0 missing" in out
    assert out.count("max_evaluations") == 4
    assert "failed n=4, d=2, beta=4.0, seed=1: " in out
    assert cli.main(["validate", "x.zarr"]) == cli.FAILED


def test_status_is_text_or_json(dataset: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["status", str(dataset)]) == cli.OK
    assert "4 of 4 cells done, 0 failed, 0 missing" in capsys.readouterr().out
    assert cli.main(["status", str(dataset), "--json"]) == cli.OK
    found = json.loads(capsys.readouterr().out)
    assert (found["cells"], found["done"], found["failures"]) == (4, 4, [])
    assert found["rows"][0]["evaluations"] > 0
    assert found["core_hours"] > 0


def test_validate_says_valid_or_names_each_fault(
    dataset: Path, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    assert cli.main(["validate", str(dataset)]) == cli.OK
    assert "valid and complete" in capsys.readouterr().out
    shutil.copytree(dataset, folder / "x.zarr")
    (shard,) = (folder / "x.zarr" / "energy").glob("c.*")
    flip(shard)
    assert cli.main(["validate", "x.zarr"]) == cli.FAILED
    assert "energy" in capsys.readouterr().out


def test_figures_are_drawn_beside_the_dataset_or_where_told(
    dataset: Path, capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    shutil.copytree(dataset, folder / "x.zarr")
    assert cli.main(["figures", "x.zarr"]) == cli.OK
    drawn = [Path(line) for line in capsys.readouterr().out.splitlines()]
    assert {path.suffix for path in drawn} == {".png", ".pdf"}
    assert all(path.is_file() and path.parent == Path("x-figures") for path in drawn)
    name = drawn[0].stem
    assert cli.main(["figures", "x.zarr", name, "--out", "here"]) == cli.OK
    assert {path.name for path in (folder / "here").iterdir()} == {f"{name}.png", f"{name}.pdf"}
    assert capsys.readouterr().out.splitlines() == [f"here/{name}.png", f"here/{name}.pdf"]
    assert name in refused(capsys, "figures", "x.zarr", f"{name}s")


def test_help_and_version_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == cli.main(["--help"]) == cli.OK
    out = capsys.readouterr().out
    assert all(f"spheresweep {verb}" in out for verb in cli.VERBS)
    assert cli.main(["--version"]) == cli.OK
    assert capsys.readouterr().out == f"spheresweep {pipeline.__version__}\n"


# --- interruption


def test_an_interrupted_run_gives_130_and_says_how_to_resume(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs: list[Any] = []

    def interrupted(*args: Any, **options: Any) -> None:
        jobs.append(args)
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "run", interrupted)
    assert cli.main(["run", *SMALL]) == cli.INTERRUPTED
    assert "the same command" in capsys.readouterr().err
    assert cli.main(["run", *SMALL, "-m", "dynamics=sa,usa"]) == cli.INTERRUPTED
    assert len(jobs) == 2, "the other jobs are not started"


def test_a_fault_of_the_program_is_not_taken_for_bad_input(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **options: Any) -> None:
        raise ValueError("cannot reshape array")

    monkeypatch.setattr(run, "run", broken)
    with pytest.raises(ValueError, match="reshape"):
        cli.main(["run", *SMALL])


# --- Hydra's habits


def test_multirun_runs_each_job_and_returns_the_worst_code(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    path = "store.path=${dynamics.name}.zarr"
    assert cli.main(["run", "-m", *SMALL, "dynamics=sa,usa", path]) == cli.OK
    assert sorted(p.name for p in folder.iterdir()) == ["sa.zarr", "usa.zarr"]
    out = capsys.readouterr().out
    assert "#0 " in out
    assert "#1 " in out
    # one job of four is refused, the others are done; flags may stand anywhere
    words = [word for word in SMALL if not word.startswith("grid.beta")]
    words += ["-m", "dynamics=sa,usa", "grid.beta=[1,4],[5]", "store.path=${dynamics.name}.zarr"]
    assert cli.main(["run", *words]) == cli.BAD_INPUT
    out, err = capsys.readouterr()
    assert out.count("dataset: ") == 2
    assert err.count("grid.beta: got") == 2
    assert sorted(p.name for p in folder.iterdir()) == ["sa.zarr", "usa.zarr"]


def test_a_sweep_may_be_written_in_an_experiment(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    (folder / "experiment").mkdir()
    (folder / "experiment" / "mine.yaml").write_text(
        "# @package _global_\n"
        "hydra: {mode: MULTIRUN, sweeper: {params: {grid.n: '4,8', grid.d: '[2,3],7'}}}\n"
    )
    assert cli.main(["plan", "--config-dir", ".", "experiment=mine", *SMALL[3:]]) == cli.OK
    assert capsys.readouterr().out.count("core-hours") == 4


def test_cfg_shows_the_job_with_whole_axes(capsys: pytest.CaptureFixture[str]) -> None:
    axis = "grid.beta={start: 1, stop: 2, num: 3}"
    assert cli.main(["run", "--cfg", "job", axis, "--package", "grid", "experiment=metastability"]) == cli.OK
    out = capsys.readouterr().out
    assert "beta:\n  start: 1\n  stop: 2\n  num: 3\n" in out
    assert "spacing" not in out
    assert cli.main(["plan", "--cfg", "job", "--resolve"]) == cli.OK
    assert "stop: 30" in capsys.readouterr().out


def test_what_cfg_shows_is_a_configuration(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    words = ["experiment=demo", "grid.seed=3", "grid.d={start: 2, stop: 4, num: 3}", "integrator=layers"]
    assert cli.main(["run", "--cfg", "job", *words]) == cli.OK
    (folder / "again.yaml").write_text(capsys.readouterr().out)
    flags = ["--config-dir", ".", "--config-name", "again"]
    assert cli.main(["run", "--cfg", "job", *flags]) == cli.OK
    assert capsys.readouterr().out == (folder / "again.yaml").read_text()


@pytest.mark.parametrize("words", [["--help"], ["--info", "defaults"], ["--info"], ["--hydra-help"]])
def test_hydra_answers_about_itself(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", *words]) == cli.OK
    assert "dynamics" in capsys.readouterr().out or words == ["--hydra-help"]


def test_experiments_of_ones_own_come_from_config_dir(folder: Path) -> None:
    (folder / "mine" / "experiment").mkdir(parents=True)
    (folder / "mine" / "experiment" / "mine.yaml").write_text(
        "# @package _global_\ndefaults: [smoke, override /dynamics: usa]\ngrid: {n: 5}\n"
    )
    settings = config.load(["experiment=mine"], extra="mine")
    assert settings.sweep.n == (5,)
    assert settings.sweep.dynamics.name == "usa"
    assert cli.main(["plan", "experiment=mine", "--config-dir", "mine"]) == cli.OK


# --- through a real shell


def shell(script: str, programs: dict[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-c", script],
        env=programs,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_the_program_ends_with_the_code_and_one_line(programs: dict[str, str], folder: Path) -> None:
    done = shell("spheresweep run grid.n=1", programs, folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("spheresweep: grid.n: got 1; allowed: ")
    assert len(done.stderr.splitlines()) == 1


def test_braces_that_bash_expands_are_refused_with_advice_and_quoted_ones_work(
    programs: dict[str, str], folder: Path
) -> None:
    done = shell("spheresweep plan grid.beta={start:1,stop:2,num:3}", programs, folder)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "quoted" in done.stderr
    done = shell("spheresweep plan 'grid.beta={start:1,stop:2,num:3}' grid.seed=1", programs, folder)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reader_that_has_seen_enough_is_no_error(programs: dict[str, str], folder: Path) -> None:
    assert shell("spheresweep plan experiment=demo | true", programs, folder).stderr == ""


def completed(line: str, programs: dict[str, str], cwd: Path) -> list[str]:
    """What bash offers after `line` and a Tab."""
    script = f"""
        eval "$(spheresweep -sc install=bash)"
        COMP_LINE={line!r}; COMP_POINT=${{#COMP_LINE}}; COMP_WORDS=($COMP_LINE)
        [ "${{COMP_LINE: -1}}" = " " ] && COMP_WORDS+=("")
        COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 ))
        hydra_bash_completion
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = shell(script, programs, cwd)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("spheresweep st", {"status"}),
        ("spheresweep ", {*cli.VERBS, "--help", "--version"}),
        ("spheresweep run experiment=d", {"experiment=demo"}),
        ("spheresweep run dynamics=", {"dynamics=sa", "dynamics=usa"}),
        ("spheresweep plan experiment=demo grid.", {"grid.n=", "grid.d=", "grid.beta=", "grid.seed="}),
        ("spheresweep run integrator=layers integrator.s", {"integrator.step="}),
        ("spheresweep run --c", {"--cfg", "--config-dir", "--config-name", "--config-path"}),
        ("spheresweep status --", {"--help", "--json"}),
    ],
)
def test_bash_completes(line: str, offered: set[str], programs: dict[str, str], folder: Path) -> None:
    assert set(completed(line, programs, folder)) == offered


def test_an_interactive_bash_completes_at_tab(programs: dict[str, str], folder: Path) -> None:
    (folder / "some.zarr").mkdir()
    main, other = pty.openpty()
    bash = subprocess.Popen(
        ["bash", "--noprofile", "--norc", "-i"],
        env={**programs, "PS1": "ready> ", "INPUTRC": "/dev/null"},
        cwd=folder,
        stdin=other,
        stdout=other,
        stderr=other,
        start_new_session=True,
    )
    os.close(other)
    seen = ""

    def until(text: str) -> None:
        nonlocal seen
        limit = time.monotonic() + 30
        while text not in seen:
            assert time.monotonic() < limit, f"{text!r} not in {seen!r}"
            if select.select([main], [], [], 0.5)[0]:
                seen += os.read(main, 4096).decode()
        seen = seen.partition(text)[2]

    try:
        until("ready> ")
        os.write(main, b'eval "$(spheresweep -sc install=bash)"; echo in"stalled"\n')
        until("installed\r\n")
        os.write(main, b"spheresweep run experiment=paper_phase_diagram_\t")
        until("experiment=paper_phase_diagram_usa")
        os.write(main, b"\x15spheresweep status so\t")
        until("some.zarr")
    finally:
        bash.kill()
        bash.wait()
        os.close(main)
