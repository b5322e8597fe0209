"""What a worker does with a task: compute its blocks, write each one, and tell the driver in a few numbers.

A task may run twice, here or elsewhere, at the same time or after a crash: a block that is there is not
computed again, and a block that is written twice is written with the same bits.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from pipeline import cell, provenance, schema, store


def compute_task(
    path: str,
    recipe: cell.Recipe,
    blocks: tuple[cell.Block, ...],
    threads: int = 1,
    skip: Mapping[cell.Place, str] | None = None,
) -> list[dict[str, Any]]:
    """Compute and write whole blocks; one receipt for each. `skip` is for a task of one block."""
    return [_receipt(path, recipe, block, threads, skip) for block in blocks]


def _receipt(
    path: str,
    recipe: cell.Recipe,
    block: cell.Block,
    threads: int,
    skip: Mapping[cell.Place, str] | None,
) -> dict[str, Any]:
    started = time.perf_counter()
    facts = {
        "block": block.index,
        "n": block.n,
        "d": block.d,
        "cells": block.cells,
        "date": provenance.now(),
        "host": provenance.host(),
        "processor": provenance.processor()["model"],
        "pid": os.getpid(),
        "threads": threads,
    }
    if store.has_block(path, block.index):
        return facts | {
            "failed": len(store.block_failures(path, block.index)),
            "seconds": 0.0,
            "present": True,
        }
    data = cell.compute_block(recipe, block, threads=threads, skip=skip)
    computed = time.perf_counter()
    store.write_block(path, data)
    return facts | {
        "failed": int((data[schema.STATUS] == schema.FAILED).sum()),
        "evaluations": int(data[schema.EVALUATIONS].sum()),
        "steps": int(data[schema.STEPS].sum()),
        "seconds": computed - started,
        "write_seconds": time.perf_counter() - computed,
    }


def probe(recipe: cell.Recipe, block: cell.Block, places: tuple[cell.Place, ...]) -> None:
    """Compute some cells of a block for nothing but to see whether the worker survives it."""
    chosen = set(places)
    others = {
        (b, s): "" for b in range(len(block.beta)) for s in range(len(block.seed)) if (b, s) not in chosen
    }
    cell.compute_block(recipe, block, skip=others)
