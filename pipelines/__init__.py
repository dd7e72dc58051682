"""Pipelines that run as programs: options are parsed, a pipeline is built from them, and it is run."""
