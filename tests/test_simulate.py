"""What `simulate` refuses: in one line, by the name of the argument."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pipeline import simulate
from pipeline.integrate import Layers


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("x0", {"x0": "tokens"}),
        ("x0", {"x0": None}),
        ("x0", {"x0": [[1.0, 0.0], [1.0]]}),
        ("x0", {"x0": np.ones(3)}),
        ("x0", {"x0": np.ones((1, 3))}),
        ("x0", {"x0": np.ones((3, 1))}),
        ("x0", {"x0": np.zeros((3, 3))}),
        ("x0", {"x0": [[1.0, 0.0], [np.nan, 1.0]]}),
        ("x0", {"x0": [[1.0, 0.0], [1e308, 1e308]]}),
        ("beta", {"beta": -1}),
        ("beta", {"beta": None}),
        ("beta", {"beta": "cold"}),
        ("beta", {"beta": [1.0, 2.0]}),
        ("beta", {"beta": np.inf}),
        ("tolerance", {"tolerance": 0}),
        ("tolerance", {"tolerance": "small"}),
        ("weights", {"weights": [1.0, 1.0]}),
        ("weights", {"weights": ["a", "b", "c"]}),
        ("weights", {"weights": [1.0, 1.0, 0.0]}),
        ("weights", {"weights": [1.0, 1.0, 1e308]}),
        ("weights", {"weights": [1.0, 1.0, 1e-320]}),
        ("weights", {"weights": [1.0, 1.0, np.nan]}),
        ("times", {"times": "now"}),
        ("times", {"times": [-1.0]}),
        ("times", {"times": [2.0, 1.0]}),
        ("times", {"times": [1.0], "log_times": [0.0]}),
        ("log_times", {"log_times": {}}),
        ("horizon", {"horizon": "end"}),
        ("horizon", {"horizon": 0}),
        ("horizon", {"horizon": None}),
        ("horizon", {"horizon": 1, "times": [2.0]}),
        ("horizon", {"integrator": Layers(step=0.1)}),
        ("integrator", {"integrator": "layers"}),
        ("integrator", {"integrator": Layers}),
        ("dynamics", {"dynamics": 3}),
        ("dynamics.name", {"dynamics": "softmax"}),
    ],
)
def test_bad_input_is_refused_in_one_line_that_names_the_argument(key: str, given: dict[str, Any]) -> None:
    arguments = {"x0": np.eye(3), "beta": 1.0} | given
    with pytest.raises(ValueError, match=rf"^{key}: got [^\n]*; allowed: [^\n]*$"):
        simulate(**arguments)


def test_weights_count_by_their_ratios_only() -> None:
    rng = np.random.default_rng(0)
    x0, weights = rng.standard_normal((5, 3)), rng.uniform(0.5, 2.0, 5)
    runs = [
        simulate(x0, 2.0, weights=scale * weights, times=[0.5, 2.0]) for scale in (1.0, 2.0**300, 2.0**-300)
    ]
    for run in runs[1:]:
        assert np.array_equal(run.tokens, runs[0].tokens)
        assert np.array_equal(run.log_time_to_clusters, runs[0].log_time_to_clusters)
