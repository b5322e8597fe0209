"""Look at what `make demo` left, as a stranger would: with xarray alone, every warning an error."""

import sys
from pathlib import Path

import numpy as np
import xarray as xr
from PIL import Image

root = Path(sys.argv[1])
dataset = xr.open_zarr(root / "runs" / "demo.zarr")
assert "pipeline" not in sys.modules

assert dataset.sizes["beta"] >= 20
assert dataset.sizes["d"] >= 2
assert (dataset["status"] == 1).all(), "a cell of the demo is not done"
share = dataset["pair_sync_fraction"].mean("seed")
assert float(share.min()) < 0.1
assert float(share.max()) == 1.0, "the diagram must show both phases"
assert np.isfinite(share).all()
for name, variable in dataset.variables.items():
    assert variable.attrs["long_name"], name
    assert "units" in variable.attrs, name

pictures = sorted((root / "runs").rglob("*.png"))
assert pictures, "no picture"
for picture in pictures:
    pixels = np.asarray(Image.open(picture).convert("L"))
    assert min(pixels.shape) > 300, picture
    assert pixels.std() > 10, f"{picture} is all but blank"
    assert picture.with_suffix(".pdf").read_bytes().startswith(b"%PDF"), picture
print("opened", dict(dataset.sizes), "and looked at", *(str(p.relative_to(root)) for p in pictures))
