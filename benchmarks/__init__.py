"""What the program costs, beside its peers and its limits; `make bench` runs all of it.

Each script asks one question, which is its name, and runs alone: ``python -m benchmarks.NAME [--quick]``. Every
figure is a ratio of times taken in turns in the same process, so that a busy machine harms both sides.
"""
