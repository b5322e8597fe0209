"""Every benchmark in turn: ``python -m benchmarks [--quick]``."""

from __future__ import annotations

import argparse
import subprocess
import sys

SCRIPTS = (
    "how_near_the_limit",
    "how_fast_beside_torch",
    "how_fast_beside_peers",
    "what_does_a_merger_cost",
    "how_does_cost_grow",
    "how_long_do_a_million_tokens_take",
    "how_exact_are_the_times",
    "what_does_the_tolerance_change",
    "how_long_is_the_paper_diagram",
    "what_does_a_sweep_add",
)


def main() -> int:
    """Run all, each in a process of its own; the number that failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes: only see that all runs")
    options = ["--quick"] if parser.parse_args().quick else []
    failed = [
        name
        for name in SCRIPTS
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *options], check=False).returncode
    ]
    for name in failed:
        print(f"failed: benchmarks.{name}", file=sys.stderr)
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
