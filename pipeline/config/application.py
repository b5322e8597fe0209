"""A Hydra application with all of Hydra's habits and our loader: -m, --cfg, --info, --help, tab completion.

`hydra.main` ends the process itself and hides what jobs return, so its dispatch is repeated here: bad input
comes back as a ValueError of one line, and what jobs return as the worst of their exit codes.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import shlex
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hydra._internal.hydra import Hydra
from hydra._internal.utils import get_args_parser
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from pipeline import config
from pipeline.config import composition

NAME = "spheresweep"
Task = Callable[[Callable[[], config.Settings], str], int]


def run(arguments: Sequence[str], task: Task) -> int:
    """Do what `arguments` say, and return the worst exit code of the jobs that they meant.

    Parameters
    ----------
    arguments
        The command line after the subcommand.
    task
        Called for each job with a function that gives its settings, or raises ValueError where they are
        bad, and with its label: number and overrides under ``-m``, else ''. It returns an exit code; what it
        raises is raised when all jobs had their turn, KeyboardInterrupt at once.

    Raises
    ------
    ValueError
        One line about a command line that means no job.
    """
    flags, parser = _flags(arguments)
    with _hydra(flags) as (hydra, name):
        try:
            return _dispatch(hydra, name, flags, parser, task)
        except composition.FAULTS as error:
            raise ValueError(composition.line(error, flags.overrides)) from error


def complete(line: str) -> list[str]:
    """Words that may stand at the end of `line`, the command line without program and subcommand."""
    head, _, last = line.rpartition(" ")
    if last.startswith("-"):
        options = [option for action in get_args_parser()._actions for option in action.option_strings]
        return sorted(option for option in options if option.startswith(last))
    with contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(Exception, SystemExit):
        words = [word for word in shlex.split(head) if len(word.split()) == 1]  # its plugin splits at blanks
        flags, _ = _flags(words)
        with _hydra(flags) as (hydra, name):
            hydra.config_loader = composition.Loader(hydra.config_loader.get_search_path(), hollow=True)
            plugin = Hydra.get_shell_to_plugin_map(hydra.config_loader)["bash"][0]
            return [str(word) for word in plugin._query(config_name=name, line=" ".join([*words, last]))]
    return []


def install_completion(shell: str, verb: str) -> None:
    """Print what a shell evaluates to complete this program's arguments, or (uninstall) to stop that."""
    flags, _ = _flags([])
    with _hydra(flags) as (hydra, _):
        plugins = Hydra.get_shell_to_plugin_map(hydra.config_loader)
        if shell not in plugins:
            raise ValueError(f"-sc {verb}: got {shell}; allowed: {', '.join(sorted(plugins))}")
        plugin = plugins[shell][0]
        plugin.install() if verb == "install" else plugin.uninstall()


def _flags(arguments: Sequence[str]) -> tuple[argparse.Namespace, argparse.ArgumentParser]:
    """Hydra's own flags, in any order with overrides; a fault is a ValueError of one line."""
    parser = get_args_parser()
    parser.prog = NAME
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            flags = parser.parse_intermixed_args(list(arguments))
    except SystemExit as error:
        if not error.code:  # --version has printed what it has to say
            raise
        told = said.getvalue().strip().splitlines()[-1].partition("error: ")[2]
        if found := re.match(r"argument (--[\w-]+)\S*: invalid choice: (.*?) \(choose from (.*)\)", told):
            raise ValueError(f"{found[1]}: got {found[2]}; allowed: {found[3]}") from None
        if found := re.match(r"argument (--[\w-]+)\S*: expected", told):
            raise ValueError(f"{found[1]}: got nothing; allowed: a value after it") from None
        unknown = told.replace("unrecognized arguments: ", "")
        raise ValueError(f"{unknown}: no such flag; allowed: those that --help lists") from None
    modes = ("run", "multirun", "cfg", "info", "shell_completion")
    given = [f"--{mode}".replace("_", "-") for mode in modes if getattr(flags, mode)]
    if len(given) > 1:
        raise ValueError(f"{given[0]}: got {' and '.join(given)}; allowed: one of them")
    if flags.resolve and not (flags.cfg or flags.help):
        raise ValueError("--resolve: got it alone; allowed: together with --cfg or --help")
    if flags.experimental_rerun is not None:
        raise ValueError("--experimental-rerun: not here; allowed: the same command, which resumes a dataset")
    return flags, parser


@contextlib.contextmanager
def _hydra(flags: argparse.Namespace) -> Iterator[tuple[Hydra, str]]:
    """Hydra for this command line, and the name of the primary file."""
    GlobalHydra.instance().clear()
    hydra = Hydra(NAME, composition.Loader(composition.search_path(flags.config_path, flags.config_dir)))
    GlobalHydra.instance().initialize(hydra)
    try:
        yield hydra, flags.config_name or composition.ROOT
    finally:
        GlobalHydra.instance().clear()


def _dispatch(
    hydra: Hydra, name: str, flags: argparse.Namespace, parser: argparse.ArgumentParser, task: Task
) -> int:
    overrides = list(flags.overrides)
    if flags.help or flags.cfg or flags.info:  # these would end the process at the first fault
        hydra.compose_config(name, overrides, RunMode.RUN)
    if flags.help:
        hydra.app_help(config_name=name, args_parser=parser, args=flags)
    elif flags.hydra_help:
        hydra.hydra_help(config_name=name, args_parser=parser, args=flags)
    elif flags.cfg:
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                hydra.show_cfg(name, overrides, flags.cfg, flags.package, resolve=flags.resolve)
        except SystemExit:
            raise ValueError(f"--package: got {flags.package}; allowed: a key of the configuration") from None
    elif flags.info:
        hydra.show_info(flags.info, config_name=name, overrides=overrides)
    elif flags.shell_completion:
        verb, _, shell = (overrides or [""])[0].partition("=")
        if verb not in ("install", "uninstall"):
            raise ValueError(f"-sc: got {verb or 'nothing'}; allowed: install=SHELL, uninstall=SHELL")
        install_completion(shell, verb)
    elif flags.multirun or hydra.get_mode(name, overrides) == RunMode.MULTIRUN:
        return _several(hydra, name, overrides, task)
    else:
        done = hydra.run(name, lambda cfg: _job(cfg, task), overrides, with_log_configuration=False)
        return _worst([done.return_value])
    return 0


def _several(hydra: Hydra, name: str, overrides: list[str], task: Task) -> int:
    # Hydra's sweeper cannot be kept from writing multirun.yaml: it goes where it is cleared away.
    with tempfile.TemporaryDirectory(prefix=f"{NAME}-") as folder:
        if not any(override.lstrip("+").startswith("hydra.sweep.dir=") for override in overrides):
            overrides = [f"hydra.sweep.dir='{folder}'", *overrides]
        overrides = [*overrides, "hydra.mode=MULTIRUN"]
        batches = hydra.multirun(name, lambda cfg: _job(cfg, task), overrides, with_log_configuration=False)
    return _worst([job.return_value for batch in batches for job in batch])


def _worst(results: list[int | Exception]) -> int:
    """The largest exit code; what a job raised is raised now that all had their turn."""
    for result in results:
        if isinstance(result, Exception):
            raise result
    return max((code for code in results if isinstance(code, int)), default=0)


def _job(cfg: DictConfig, task: Task) -> int | Exception:
    """Hand one job to `task`, its settings unread: reading them may fail, which is the job's own affair.

    What it raises is returned: Hydra would print words of its own about it.
    """
    hydra = HydraConfig.get()
    given = _texts(hydra.overrides.task)

    def settings() -> config.Settings:
        try:
            return config.settings(composition.plain(cfg))
        except composition.FAULTS as error:
            raise ValueError(composition.line(error, given)) from error

    try:
        return task(settings, f"#{hydra.job.num} {' '.join(given)}" if hydra.mode == RunMode.MULTIRUN else "")
    except Exception as error:
        return error


def _texts(overrides: Any) -> list[str]:
    """A list in a configuration as it was written: its interpolations are the job's, not Hydra's."""
    return [str(text) for text in OmegaConf.to_container(overrides, resolve=False) or []]
