"""The program that a flex template's launcher starts."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from apache_beam.options.pipeline_options import PipelineOptions, WorkerOptions

from templates import launch
from templates.metadata import TEMPLATES

if TYPE_CHECKING:
    from collections.abc import Sequence

IMAGE = "europe-west1-docker.pkg.dev/my-project/beam-hedge/pipeline:1"
EACH = pytest.mark.parametrize("pipeline", [template.pipeline for template in TEMPLATES])


@pytest.fixture
def environment(pipeline: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the variables that an image sets."""
    monkeypatch.setenv(launch.PIPELINE, pipeline)
    monkeypatch.setenv(launch.IMAGE, IMAGE)


@EACH
@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize(("given", "image"), [([], IMAGE), (["--sdk_container_image=mine"], "mine")])
def test_workers_run_in_the_launchers_image(
    pipeline: str, given: list[str], image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers have the pipeline's code without anybody naming the image at a launch; who does is obeyed."""
    runs: list[Sequence[str]] = []
    monkeypatch.setattr(import_module(f"pipelines.{pipeline}"), "run", runs.append)
    launch.main(["--topic=projects/p/topics/orders", *given])
    [arguments] = runs
    assert arguments[1:] == ["--topic=projects/p/topics/orders", *given]
    options = PipelineOptions(list(arguments)).view_as(WorkerOptions)
    assert options.sdk_container_image == image


@EACH
@pytest.mark.usefixtures("environment")
def test_it_runs_as_a_file_from_anywhere(pipeline: str, tmp_path: Path) -> None:
    """The launcher starts it by its path; the pipeline's own parameters are there, and a wrong one is named."""
    environment = {**os.environ, "PYTHONPATH": str(Path(launch.__file__).parents[1])}
    ran = [
        subprocess.run(
            [sys.executable, launch.__file__, argument],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        for argument in ("--help", "--hedge_dely=1s")
    ]
    assert [each.returncode for each in ran] == [0, 2]
    assert f"python -m pipelines.{pipeline}" in ran[0].stdout
    assert "--hedge_dely" in ran[1].stderr
