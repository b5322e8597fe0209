"""The command line: takes the subcommand off, hands the rest to Hydra or argparse, prints, returns codes.

0: all done; 1: some cells failed, or a dataset has faults; 2: bad input, told in one line; 130: interrupted.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import shlex
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pipeline

if TYPE_CHECKING:
    from pipeline import config, report

NAME = "spheresweep"
OK, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
MOST_FAILURES = 200  # lines about failed cells on a terminal

VERBS = {
    "run": "compute what the dataset still lacks",
    "plan": "cells, blocks, bytes and core-hours of that; runs nothing",
    "status": "done, failed and missing cells of a dataset; each failed cell with its error",
    "figures": "draw a dataset's figures as PNG and PDF",
    "validate": "check a dataset's schema, checksums and completeness",
}
HELP = f"""\
usage: {NAME} COMMAND ...

Maps how tokens cluster under self-attention: sweeps of particles on the sphere, as one labelled dataset.

  {NAME} run  [OVERRIDE ...]           {VERBS["run"]}
  {NAME} plan [OVERRIDE ...]           {VERBS["plan"]}
  {NAME} status DATASET [--json]       {VERBS["status"]}
  {NAME} figures DATASET [NAME ...]    {VERBS["figures"]}
  {NAME} validate DATASET              {VERBS["validate"]}

Begin with:  {NAME} run experiment=demo && {NAME} figures runs/demo.zarr
`{NAME} COMMAND --help` says more. Tab completion:  eval "$({NAME} -sc install=bash)"
Exit codes: 0 all done, 1 some cells failed or a dataset has faults, 2 bad input, 130 interrupted.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    is_run, is_alone = words[:1] == ["run"], arguments is None  # alone: signals of this process are ours
    try:
        if is_run and is_alone:
            signal.signal(signal.SIGTERM, signal.default_int_handler)  # what ends a batch job, at any moment
        code = _command(words)
        if sys.stdout is not None:  # closed by who called
            sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        if is_alone:
            for number in (signal.SIGINT, signal.SIGTERM):  # nothing is left to be interrupted but the exit
                signal.signal(number, signal.SIG_IGN)
        if is_run:
            print(f"{NAME}: interrupted; the same command goes on from here", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except (ValueError, OSError) as error:
        return _refuse(error)


def _refuse(error: Exception) -> int:
    """Tell bad input in one line. Raise what is none (it names no key before a colon): a fault of ours.

    With HYDRA_FULL_ERROR=1 everything is raised.
    """
    text = str(error)
    if not _is_told(error) or os.environ.get("HYDRA_FULL_ERROR") == "1":
        raise error
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    print(f"{NAME}: {' '.join(text.split())}", file=sys.stderr)
    return BAD_INPUT


def _is_told(error: Exception) -> bool:
    """Whether an error says in one line what is wrong with the input."""
    text = str(error)
    return isinstance(error, OSError) or "; allowed: " in text or bool(re.match(r"[^\s:]+: ", text))


def _damaged(path: Path, error: Exception) -> ValueError:
    """What to say of an error from within a library that reads a dataset."""
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return ValueError(
        f"DATASET: got {str(path)!r}, which cannot be read ({what}); allowed: a dataset that "
        f"`{NAME} validate` finds sound"
    )


def _command(words: list[str]) -> int:
    verb, rest = (words[0], words[1:]) if words else ("--help", [])
    if verb in ("-h", "--help", "help"):
        print(HELP, end="")
    elif verb == "--version":
        print(f"{NAME} {pipeline.__version__}")
    elif verb in ("-sc", "--shell-completion"):
        _completion(rest)
    elif verb in ("run", "plan"):
        from pipeline.config import application

        return application.run(rest, _run if verb == "run" else _plan)
    elif verb in VERBS:
        flags = _parser(verb).parse_args(rest)
        try:
            return _INSPECT[verb](flags)
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
            if isinstance(error, ValueError) and _is_told(error):
                raise
            raise _damaged(flags.dataset, error) from error
    else:
        near = difflib.get_close_matches(verb, VERBS, n=1)
        hint = (
            f" (did you mean {NAME} run {verb}?)"
            if "=" in verb
            else f" (did you mean {near[0]}?)"
            if near
            else ""
        )
        raise ValueError(f"{verb}: not a command; allowed: {', '.join(VERBS)}{hint}")
    return OK


def _run(read: Callable[[], config.Settings], label: str) -> int:
    """Compute one job's dataset, and say where it is and what to do next."""
    from pipeline import run, workers

    if label:
        print(label, flush=True)
    try:
        given = read()
        price = run.plan(given.sweep, given.path)  # refuses before workers start
        is_idle = not price.blocks_pending and not given.retry_failed
        with (workers.InProcess() if is_idle else given.workers).open() as executor:
            summary = run.run(
                given.sweep,
                given.path,
                executor=executor,
                task_seconds=given.task_seconds,
                retries=given.retries,
                retry_failed=given.retry_failed,
                listeners=[run.Reporter()],
                config=given.config,
                attrs=given.about,
            )
    except (ValueError, OSError) as error:
        return _refuse(error)
    where = shlex.quote(str(given.path))
    print(f"dataset: {given.path}")
    if summary.failed:
        print(f"{summary.failed} of {summary.cells} cells failed. See why:  {NAME} status {where}")
        return FAILED
    print(f"next:    {NAME} figures {where}")
    return OK


def _plan(read: Callable[[], config.Settings], label: str) -> int:
    """Print what `_run` would do."""
    from pipeline import run

    if label:
        print(label, flush=True)
    try:
        given = read()
        price = run.plan(
            given.sweep,
            given.path,
            task_seconds=given.task_seconds,
            workers=given.workers.places,
            threads=given.workers.threads,
        )
    except (ValueError, OSError) as error:
        return _refuse(error)
    print(f"{'dataset':14}{given.path}\n{price}")
    return OK


class _Parser(argparse.ArgumentParser):
    """Refuses with a ValueError of one line, as everything here does."""

    def error(self, message: str) -> NoReturn:
        """Refuse."""
        raise ValueError(f"{message}; allowed: {self.format_usage().split(': ', 1)[1].strip()}")


def _parser(verb: str) -> _Parser:
    parser = _Parser(f"{NAME} {verb}", description=VERBS[verb], allow_abbrev=False)
    parser.add_argument("dataset", metavar="DATASET", type=Path, help="folder of a dataset")
    if verb == "status":
        parser.add_argument("--json", action="store_true", help="everything, for a program to read")
    if verb == "figures":
        parser.add_argument(
            "names", metavar="NAME", nargs="*", default=[], help="figures to draw; all of them by default"
        )
        parser.add_argument(
            "--out", metavar="DIR", type=Path, help="folder for them; DATASET-figures by default"
        )
    return parser


def _status(flags: argparse.Namespace) -> int:
    from pipeline import report

    found = report.read(flags.dataset)
    if flags.json:
        print(json.dumps({"path": str(flags.dataset), **found.to_dict()}, indent=1, allow_nan=False))
    else:
        _show(flags.dataset, found)
    return OK


def _show(path: Path, found: report.Report) -> None:
    """The report on a terminal, or as the same lines in a file."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, soft_wrap=True)
    console.print(f"{path}: {found.title}", markup=False)
    counts = (
        f"{found.done:,} of {found.cells:,} cells done, {found.failed:,} failed, {found.missing:,} missing"
    )
    spent = "" if found.core_hours is None else f"; {found.core_hours:.3g} core-hours"
    console.print(f"{counts}{spent}", markup=False)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("n", "d", "done", "failed", "missing", "evaluations per cell", "steps per cell"):
        table.add_column(name, justify="right")
    for row in found.rows:
        means = ("-" if mean is None else f"{mean:,.0f}" for mean in (row.evaluations, row.steps))
        table.add_row(str(row.n), str(row.d), f"{row.done:,}", f"{row.failed:,}", f"{row.missing:,}", *means)
    console.print(table)
    for cell in found.failures[:MOST_FAILURES]:
        at = ", ".join(f"{name}={cell[name]}" for name in ("n", "d", "beta", "seed"))
        console.print(f"failed {at}: {cell['error']}", markup=False)
    if len(found.failures) > MOST_FAILURES:
        print(f"... and {len(found.failures) - MOST_FAILURES:,} more: --json tells all of them")


def _figures(flags: argparse.Namespace) -> int:
    from pipeline import analyse, figures, report

    dataset = flags.dataset if flags.dataset.name else Path(os.path.abspath(flags.dataset))
    out = flags.out or dataset.with_name(f"{dataset.name.removesuffix('.zarr')}-figures")
    for name in flags.names:
        if name not in figures.FIGURES:
            raise ValueError(f"NAME: got {name}; allowed: {', '.join(figures.FIGURES)}")
    with report.opened(dataset, in_parts=True) as data:
        summary = analyse.summary(data)
        absent = int(summary["cells_missing"].sum())
        if absent:
            print(f"{NAME}: {absent:,} cells are missing; the figures show the others", file=sys.stderr)

        def left_out(reason: str) -> None:
            print(f"{NAME}: left out: {reason.removeprefix('figures: ')}", file=sys.stderr)

        drawn = figures.draw(summary, flags.names or None, out, left_out)
    for file in drawn:
        print(file)
    return OK


def _validate(flags: argparse.Namespace) -> int:
    from pipeline import run, store

    try:
        faults = run.validate(flags.dataset)
    except Exception as error:
        if not (flags.dataset / store.FOLDER).is_dir():  # no dataset of ours
            raise
        faults = [" ".join((str(error) or type(error).__name__).split())]
    for fault in faults:
        print(fault)
    if any(", block " in fault for fault in faults):
        print("a damaged block is computed again after its file status/c.BLOCK is deleted, by the same run")
    many = f"{len(faults)} fault{'s' if len(faults) > 1 else ''}"
    print(f"{flags.dataset}: {many if faults else 'valid and complete'}")
    return FAILED if faults else OK


_INSPECT: dict[str, Callable[[argparse.Namespace], int]] = {
    "status": _status,
    "figures": _figures,
    "validate": _validate,
}


def _completion(rest: list[str]) -> None:
    """``-sc install=SHELL`` prints what a shell evaluates, ``-sc query=SHELL`` what may follow at Tab."""
    from pipeline.config import application

    verb, _, shell = (rest or [""])[0].partition("=")
    if verb == "query":
        line = os.environ.get("COMP_LINE", "")[: int(os.environ.get("COMP_POINT") or sys.maxsize)]
        print(("\n" if shell == "fish" else " ").join(_candidates(line)))
    elif verb in ("install", "uninstall"):
        application.install_completion(shell, verb)
    else:
        raise ValueError(f"-sc: got {verb or 'nothing'}; allowed: install=SHELL, uninstall=SHELL")


def _candidates(line: str) -> list[str]:
    """Words that may stand at the end of a command line; nothing where the shell should offer files."""
    _, _, line = line.lstrip().partition(" ")
    verb, blank, rest = line.lstrip().partition(" ")
    if not blank:
        return [word for word in (*VERBS, "--help", "--version") if word.startswith(verb)]
    if verb in ("run", "plan"):
        from pipeline.config import application

        return application.complete(rest.lstrip())
    before, _, last = rest.lstrip().rpartition(" ")
    if last.startswith("-"):
        options = (
            [o for action in _parser(verb)._actions for o in action.option_strings]
            if verb in _INSPECT
            else []
        )
        return [option for option in options if option.startswith(last)]
    if verb == "figures" and before and not before.endswith("--out"):
        from pipeline import figures

        return [name for name in figures.FIGURES if name.startswith(last)]
    return []
