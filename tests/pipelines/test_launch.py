"""Launching a pipeline as the launcher of a flex template does, up to the job graph."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from apache_beam.io.gcp import gcsio
from apache_beam.portability.api import beam_runner_api_pb2
from apache_beam.runners.dataflow.internal import apiclient

from tests.pipelines.flags import LAUNCHABLE

if TYPE_CHECKING:
    from pathlib import Path

    from google.protobuf.message import Message

TEMPLATE = "gs://a-bucket/staging/template_launches/job/job_object"
# What a launcher passes besides the parameters of the template.
LAUNCHER = [
    "--runner=DataflowRunner",
    "--project=my-project",
    "--region=us-east1",
    "--job_name=my-job",
    "--temp_location=gs://a-bucket/tmp",
    "--staging_location=gs://a-bucket/staging",
    "--service_account_email=worker@my-project.iam.gserviceaccount.com",
    "--sdk_container_image=us-docker.pkg.dev/my-project/images/pipelines:latest",
    "--num_workers=1",
    "--max_num_workers=2",
    f"--template_location={TEMPLATE}",
]


class Launch:
    """What a launch has left in the storage that takes Cloud Storage's place.

    Attributes:
        files: Their contents by their names.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.files: dict[str, bytes] = {}

        def stage(_: object, folder: str, name: str, stream: Any, *__: object, **___: object) -> None:
            self.files[f"{folder}/{name}"] = stream.read()

        monkeypatch.setattr(apiclient.DataflowApplicationClient, "stage_file", stage)
        monkeypatch.setattr(apiclient, "create_storage_client", lambda *_, **__: SimpleNamespace())
        monkeypatch.setattr(apiclient, "get_service_credentials", lambda _: None)
        # It would ask whether the bucket keeps deleted files.
        monkeypatch.setattr(gcsio.GcsIO, "is_soft_delete_enabled", lambda *_: False)
        monkeypatch.setattr(gcsio, "create_storage_client", lambda *_, **__: SimpleNamespace())

    @property
    def job(self) -> dict[str, Any]:
        """The job's description, as a launcher hands it on to Dataflow."""
        description: dict[str, Any] = json.loads(self.files[TEMPLATE])
        return description

    @property
    def graph(self) -> Message:
        """The job's graph."""
        (name,) = (name for name in self.files if name.endswith("pipeline.pb"))
        return beam_runner_api_pb2.Pipeline.FromString(self.files[name])

    def steps(self) -> dict[str, dict[str, Any]]:
        """Returns the display data of the steps by their names."""
        graph: Any = self.graph
        found: dict[str, dict[str, Any]] = {}
        for step in graph.components.transforms.values():
            payloads = [
                beam_runner_api_pb2.LabelledPayload.FromString(each.payload) for each in step.display_data
            ]
            found[step.unique_name] = {
                each.key: getattr(each, str(each.WhichOneof("value"))) for each in payloads
            }
        return found


@pytest.fixture
def launch(monkeypatch: pytest.MonkeyPatch) -> Launch:
    """Return where a launch leaves what it makes; no network and no account is used."""
    return Launch(monkeypatch)


STEPS = {
    "text_to_pubsub": {
        "Read lines/Skip empty lines": "pipelines.lines._SkipEmpty",
        "Parse JSON/Parse/ParDo(_ParseFn)": "pipelines.json_lines._ParseFn",
    },
    "pubsub_to_pubsub": {
        "Read messages/Read": "apache_beam.io.gcp.pubsub._PubSubSource",
        "Relay": "pipelines.relay_fn.RelayFn",
    },
}
PUBLISHING = {
    "Publish/Publish/ParDo(TrackingWriteFn)": "beam_hedge.tracking_write_fn.TrackingWriteFn",
    "Publish dead letters/Give reasons": "pipelines.dead_letter_topic._ToDeadLetter",
    "Publish dead letters/Publish/Publish/ParDo(WriteFn)": "beam_hedge.write_fn.WriteFn",
}
MORE = {
    "text_to_pubsub": ["--input_format=json", "--attribute_fields=a,b"],
    "pubsub_to_pubsub": ["--filter_key=country", "--add_attributes=a=1,b=2"],
}


@pytest.mark.parametrize("name", LAUNCHABLE)
def test_a_launcher_gets_a_job_graph(name: str, launch: Launch, tmp_path: Path) -> None:
    """A template starts: what the launcher passes is understood, and it gets the job that was meant."""
    pipeline = LAUNCHABLE[name]
    parameters = ["--hedge_delay=250ms", "--connections=3", "--enable_hedging=true", *MORE[name]]
    dead = "--dead_letter_topic=projects/my-project/topics/dead"
    # Parameters that were left empty.
    blank = [f"--{flag}=" for flag in ("id_label", "pubsub_endpoint", "batch_max_messages", "total_timeout")]
    result = pipeline.module.run([*pipeline.enough(tmp_path), *parameters, dead, *blank, *LAUNCHER])
    assert not result.has_job
    steps = launch.steps()
    sink = steps["Publish/Publish/ParDo(TrackingWriteFn)"]
    assert (sink["hedge_delay"], sink["connections"], sink["dead_letter"]) == (0.25, 3, True)
    expected = {**STEPS[name], **PUBLISHING}
    assert {step: steps[step].get("fn", steps[step].get("source")) for step in expected} == expected
    # There is nothing that only a runner in this process needs.
    assert [step for step in steps if "Settle" in step] == []
    streams = name == "pubsub_to_pubsub"
    assert launch.job["type"] == ("JOB_TYPE_STREAMING" if streams else "JOB_TYPE_BATCH")


@pytest.mark.parametrize("name", LAUNCHABLE)
def test_the_job_shows_what_it_was_started_with(name: str, launch: Launch, tmp_path: Path) -> None:
    """The console shows each parameter that was given, as it was understood."""
    pipeline = LAUNCHABLE[name]
    given = {**pipeline.flags, "enable_hedging": (True, "true", True)}
    for flag in ("input", *pipeline.required, "filter_regex"):
        given.pop(flag, None)
    parameters = [f"--{flag}={text}" for flag, (_, text, _) in given.items()]
    json_lines = ["--input_format=json"] if name == "text_to_pubsub" else []
    pipeline.module.run([*pipeline.enough(tmp_path), *parameters, *json_lines, *LAUNCHER])
    shown = {
        item["key"]: item["value"] for item in launch.job["environment"]["sdkPipelineOptions"]["display_data"]
    }
    different = {flag: value for flag, (default, _, value) in given.items() if value != default}
    assert {flag: shown[flag] for flag in different} == different


@pytest.mark.parametrize("name", LAUNCHABLE)
def test_without_more_flags_the_cheapest_step_publishes(name: str, launch: Launch, tmp_path: Path) -> None:
    """Who asks for no ids, no dead letters and no outcomes does not pay for them."""
    pipeline = LAUNCHABLE[name]
    pipeline.module.run([*pipeline.enough(tmp_path), *LAUNCHER])
    assert launch.steps()["Publish/Publish/ParDo(WriteFn)"]["fn"] == "beam_hedge.write_fn.WriteFn"


def test_a_launch_with_a_misspelt_parameter_ends_with_its_name(
    launch: Launch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who starts a template with a misspelt parameter reads in the launcher's log which one it is."""
    pipeline = LAUNCHABLE["pubsub_to_pubsub"]
    required = [f"--{flag}={value}" for flag, value in pipeline.required.items()]
    with pytest.raises(SystemExit) as stopped:
        pipeline.module.run([*required, "--hedge_dely=1", *LAUNCHER])
    assert stopped.value.code == 2
    assert "unknown flag --hedge_dely: did you mean --hedge_delay?" in capsys.readouterr().err
    assert launch.files == {}
