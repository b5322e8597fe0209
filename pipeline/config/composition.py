"""Composition with Hydra's habits, and two of its own: an axis is replaced whole, an error is one line.

Hydra 1.3 cannot replace: it merges a mapping into a mapping (an old ``spacing`` survives unseen) and refuses
a list over a mapping. So every axis that is not one number travels through the merges as a sealed text, which
any other value replaces, and is opened when the configuration stands. Only the loader is extended; Hydra has
no other hook for it, which is why its ``_internal`` modules are used here and in `application`.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from hydra import version
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.utils import create_config_search_path
from hydra.core.config_search_path import ConfigSearchPath, SearchPathQuery
from hydra.core.default_element import ResultDefault
from hydra.core.object_type import ObjectType
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from hydra.types import RunMode
from omegaconf import Container, DictConfig, Node, OmegaConf, flag_override
from omegaconf.errors import (
    ConfigAttributeError,
    ConfigKeyError,
    MissingMandatoryValue,
    OmegaConfBaseException,
)

AXES = ("grid.n", "grid.d", "grid.beta", "grid.seed", "times")
GROUPS = ("grid", "dynamics", "integrator", "workers", "store", "experiment")  # chosen by the primary file
ROOT = "config"  # the primary file
FAULTS = (HydraException, OmegaConfBaseException, yaml.YAMLError)

_SEAL = "sealed axis "
_OVERRIDE = re.compile(r"^(?P<sign>\+\+|\+|~)?(?P<key>[\w./@-]+)=(?P<value>.*)$", re.DOTALL)
_AMBIGUOUS = re.compile(r"^(?:Ambiguous value for argument|Sweep parameters) '(.*?)'(?: requires|$)", re.M)
_BRACE_PART = re.compile(r"^\w+:(?!/)")


def directory() -> Path:
    """The folder ``conf``: inside an installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    for place in (package / "conf", package.parent / "conf"):
        if (place / f"{ROOT}.yaml").is_file():
            return place
    raise ValueError(
        f"conf: not found beside {package}; allowed: an installation with its configuration files"
    )


def search_path(main: str | None = None, extra: str | None = None) -> ConfigSearchPath:
    """Where Hydra looks for files: `main` or the program's own, and `extra` (``--config-dir``) before it."""
    for key, folder in (("--config-path", main), ("--config-dir", extra)):
        if folder is not None and not Path(folder).is_dir():
            raise ValueError(f"{key}: got {folder!r}; allowed: a folder with configuration files")
    version.setbase("1.3")
    path = create_config_search_path(str(directory() if main is None else Path(main).resolve()))
    if extra is not None:
        path.prepend(
            provider="command-line",
            path=f"file://{Path(extra).resolve()}",
            anchor=SearchPathQuery(provider="schema"),
        )
    return path


class Loader(ConfigLoaderImpl):
    """Hydra's loader of configurations, in which an axis given later replaces an earlier one whole.

    With ``hollow`` the axes are left empty: what tab completion should see, for no part of an axis is a key.
    """

    def __init__(self, config_search_path: ConfigSearchPath, *, hollow: bool = False) -> None:
        super().__init__(config_search_path)
        self.hollow = hollow

    def _load_single_config(self, default: ResultDefault, repo: Any) -> Any:
        result = super()._load_single_config(default, repo)
        with flag_override(result.config, ["readonly", "struct"], [False, False]):
            for parent, name, node in _axes(result.config):
                if isinstance(node, Container) and not node._is_interpolation():
                    parent[name] = _sealed(OmegaConf.to_container(node))
        return result

    def _parse_overrides_and_create_caching_repo(
        self, config_name: str | None, overrides: list[str]
    ) -> tuple[list[Override], Any]:
        check(overrides)
        parsed, repo = super()._parse_overrides_and_create_caching_repo(config_name, overrides)
        for override in parsed:
            key, value = override.key_or_group, override.value()
            if key in AXES:
                if override.is_add():
                    override.type = OverrideType.FORCE_ADD
                if isinstance(value, dict | list):
                    override._value = _sealed(value)
            elif key == "grid" and isinstance(value, dict):
                override._value = {
                    k: _sealed(v) if isinstance(v, dict | list) else v for k, v in value.items()
                }
            elif key in GROUPS and override.package is None:
                _choose(override, repo)
        return parsed, repo

    def load_configuration(
        self,
        config_name: str | None,
        overrides: list[str],
        run_mode: RunMode,
        from_shell: bool = True,
        validate_sweep_overrides: bool = True,
    ) -> DictConfig:
        """The composed configuration, its axes opened again."""
        config = super().load_configuration(
            config_name, overrides, run_mode, from_shell, validate_sweep_overrides
        )
        with flag_override(config, ["readonly", "struct"], [False, False]):
            for parent, name, node in _axes(config):
                text = node._value()
                if self.hollow:
                    parent[name] = None
                elif isinstance(text, str) and text.startswith(_SEAL):
                    parent[name] = json.loads(bytes.fromhex(text.removeprefix(_SEAL)))
        return config


def compose(
    overrides: Sequence[str] = (), *, main: str | None = None, extra: str | None = None
) -> dict[str, Any]:
    """What the command line would compose from `overrides`, as plain data, interpolations resolved."""
    loader = Loader(search_path(main, extra))
    try:
        config = loader.load_configuration(ROOT, list(overrides), RunMode.RUN)
        return plain(config)
    except FAULTS as error:
        raise ValueError(line(error, overrides)) from error


def plain(config: DictConfig) -> dict[str, Any]:
    """`config` without Hydra's own node, as built-in types, interpolations resolved, nothing at ``???``."""
    bare = OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])
    container = OmegaConf.to_container(bare, resolve=True, throw_on_missing=True)
    return {str(key): value for key, value in container.items()} if isinstance(container, dict) else {}


def check(overrides: Sequence[str]) -> None:
    """Refuse what a shell makes of unquoted braces, and parts of axes; Hydra would take the last silently."""
    seen: dict[str, str] = {}
    for text in overrides:
        if text.startswith("~"):
            continue
        found = _OVERRIDE.match(text)
        if found is None:
            raise ValueError(_unreadable(text))
        key, value = found["key"], found["value"]
        if not set(value) & set("'\"") and any(value.count(a) != value.count(b) for a, b in ("[]", "{}")):
            raise ValueError(
                f"{key}: got {value}, which a shell cut at a space; allowed: the whole argument in quotes, "
                f"as in '{key}={{start: 1, stop: 9, num: 5}}' or '{key}=[1, 2, 5]'"
            )
        for axis in AXES:
            if key.startswith(f"{axis}."):
                raise ValueError(
                    f"{axis}: got {text}, a part of it; allowed: the whole axis, quoted, "
                    f"as in '{axis}={{start: 1, stop: 9, num: 5}}'"
                )
        repeated = key in seen and (key in AXES or _BRACE_PART.match(seen[key]) or _BRACE_PART.match(value))
        if repeated or (key in AXES and _BRACE_PART.match(value)):
            given = f"{key}={seen[key]} {text}" if key in seen else text
            raise ValueError(
                f"{key}: got {given}, twice or as a shell splits unquoted braces; allowed: once, quoted, "
                f"as in '{key}={{start: 1, stop: 9, num: 5}}' or '{key}=[1, 2, 5]'"
            )
        seen[key] = value


def line(error: BaseException, overrides: Sequence[str] = ()) -> str:
    """A fault of Hydra, OmegaConf or a YAML file as one line: the key, what was given, what is allowed."""
    if isinstance(error, OverrideParseException):
        return _unreadable(str(error.override))
    if isinstance(error, MissingConfigException) and error.options is not None and error.missing_cfg_file:
        group, _, choice = str(error.missing_cfg_file).rpartition("/")
        allowed = ", ".join(sorted(error.options)) + _nearest(choice, error.options)
        return f"{group}: got {choice}; allowed: {allowed}"
    if found := _AMBIGUOUS.search(str(error)):
        key, _, value = found[1].partition("=")
        listed = "" if "(" in value else f" a list {key}=[{value}],"
        return f"{key}: got {value}; allowed: one value,{listed} or -m to run each of them"
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, OmegaConfBaseException):
        cause = cause.__cause__
    if cause is None or not cause.full_key:
        return f"{' '.join(str(error).split()) or type(error).__name__}; allowed: what --help shows"
    key, value = cause.full_key, given(cause.full_key, overrides)
    if isinstance(cause, MissingMandatoryValue):
        return f"{key}: got nothing (???); allowed: a value, which this key needs"
    if isinstance(cause, ConfigKeyError | ConfigAttributeError) and not key.startswith("hydra"):
        from pipeline.config import models

        parent, _, _ = key.rpartition(".")
        beside = [str(name) for name in cause.parent_node or () if name != "hydra"]
        known = {f"{parent}.{name}" if parent else name for name in beside}
        return models.unknown(key, value or "a value", sorted(known | set(models.keys())))
    said = next(iter(str(cause).splitlines()), type(cause).__name__).strip()
    return f"{key}: got {value or 'a value'} ({said}); allowed: what --help shows"


def given(key: str, overrides: Sequence[str]) -> str | None:
    """The text that `overrides` give for `key`, of which the last counts."""
    values = [m["value"] for text in overrides if (m := _OVERRIDE.match(text)) and m["key"] == key]
    return values[-1] if values else None


def _unreadable(text: str) -> str:
    found = _OVERRIDE.match(text)
    if found is None:
        is_experiment = text.isidentifier() and (directory() / "experiment" / f"{text}.yaml").is_file()
        return f"{text}: not an override; allowed: key=value, group=choice, or a flag; --help lists them " + (
            f"(did you mean experiment={text}?)" if is_experiment else "(quote what has spaces or braces)"
        )
    try:
        OverridesParser.create().parse_override(f"{found['key']}=null")
    except HydraException:
        return f"{found['key']}: not a key; allowed: names joined by dots, as in grid.beta"
    return (
        f"{found['key']}: got {found['value']}, which cannot be read; allowed: a number, a word, [list], "
        "{key: value}, or other text in quotes twice, as in " + f"'{found['key']}=\"any text\"'"
    )


def _nearest(choice: str, options: Sequence[str]) -> str:
    near = difflib.get_close_matches(choice, options, n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def _axes(config: Container) -> Iterator[tuple[DictConfig, str, Node]]:
    """Each axis that `config` has: its parent, its name there, and its node, unresolved."""
    for key in AXES:
        *folders, name = key.split(".")
        parent: Any = config
        for folder in folders:
            parent = parent._get_node(folder) if isinstance(parent, DictConfig) else None
        if not isinstance(parent, DictConfig) or parent._is_none():
            continue
        node = parent._get_node(name)
        if isinstance(node, Node):
            yield parent, name, node


def _choose(override: Override, repo: Any) -> None:
    """Read ``+group=choice`` as a choice, a habit where a group has no default, ``group=null`` as none."""
    value = override.value()
    if value is None and not override.is_delete():
        override.type = OverrideType.DEL
    elif isinstance(value, int | float) or value == "":
        choices = ", ".join(repo.get_group_options(override.key_or_group, results_filter=ObjectType.CONFIG))
        raise ValueError(f"{override.key_or_group}: got {value or repr(value)}; allowed: {choices}")
    elif override.is_add() and isinstance(value, str):
        override.type = OverrideType.CHANGE


def _sealed(value: Any) -> str:
    # In hexadecimal, so that an interpolation inside it sleeps until it is opened.
    return _SEAL + json.dumps(value, default=str).encode().hex()
