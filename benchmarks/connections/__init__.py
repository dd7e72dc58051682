"""The parts of `benchmarks.connection_stall`."""
