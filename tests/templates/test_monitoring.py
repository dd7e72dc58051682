"""The dashboard and the alerts: what they ask for exists, and Cloud Monitoring can read them."""

from __future__ import annotations

import json
import re
from typing import Any

import promql_parser
import pytest
from google.cloud.monitoring_dashboard_v1 import Dashboard
from google.cloud.monitoring_v3 import AlertPolicy
from google.protobuf import json_format

from beam_hedge import HedgingSettings
from beam_hedge.metrics import COUNTERS, DISTRIBUTIONS
from templates.metadata import HERE

DASHBOARD = HERE / "monitoring" / "dashboard.json"
ALERTS = sorted((HERE / "monitoring" / "alerts").glob("*.json"))
EACH_ALERT = pytest.mark.parametrize("path", ALERTS, ids=lambda path: path.stem)

# What Cloud Monitoring has, by its name in PromQL, with the labels that it can be grouped by. Dataflow reports
# each distribution as four numbers, and no gauges.
USER_COUNTER = "dataflow_googleapis_com:job_user_counter"
SERVICE_METRICS = {
    "pubsub_googleapis_com:topic_send_request_count": {"topic_id", "response_code"},
    "pubsub_googleapis_com:topic_send_request_latencies_bucket": {"topic_id", "le"},
    "pubsub_googleapis_com:topic_message_sizes_count": {"topic_id"},
    "pubsub_googleapis_com:topic_byte_cost": {"topic_id"},
}
USER_LABELS = {"job_name", "job_id", "ptransform"}
USER_COUNTERS = {
    *COUNTERS,
    *(f"{name}_{part}" for name in DISTRIBUTIONS for part in ("COUNT", "MEAN", "MIN", "MAX")),
}


def read(path: Any) -> dict[str, Any]:
    """Reads a file of JSON."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def charts() -> dict[str, list[str]]:
    """Returns the dashboard's queries by the titles of its charts."""
    return {
        tile["widget"]["title"]: [
            data["timeSeriesQuery"]["prometheusQuery"] for data in tile["widget"]["xyChart"]["dataSets"]
        ]
        for tile in read(DASHBOARD)["mosaicLayout"]["tiles"]
    }


def condition(name: str) -> dict[str, Any]:
    """Returns what an alert waits for."""
    [found] = read(HERE / "monitoring" / "alerts" / f"{name}.json")["conditions"]
    query: dict[str, Any] = found["conditionPrometheusQueryLanguage"]
    return query


QUERIES = [
    *(query for queries in charts().values() for query in queries),
    *(condition(path.stem)["query"] for path in ALERTS),
]


def selectors(query: str) -> list[tuple[str, dict[str, str], str]]:
    """Returns each series that a query asks for: its name, its labels, and the function around it."""
    promql_parser.parse(query)
    found = re.findall(r"(?:(\w+)\()?([\w]+:[\w]+)\{([^}]*)\}", query)
    return [(name, dict(re.findall(r"(\w+)='([^']*)'", labels)), function) for function, name, labels in found]


def test_cloud_monitoring_can_read_the_dashboard() -> None:
    """The dashboard can be created: no field is misspelt."""
    json_format.ParseDict(read(DASHBOARD), Dashboard.pb(Dashboard()))


@EACH_ALERT
def test_cloud_monitoring_can_read_the_alerts(path: Any) -> None:
    """The alerts can be created: no field is misspelt, and each says what to do."""
    policy = AlertPolicy.pb(AlertPolicy())
    json_format.ParseDict(read(path), policy)
    assert len(policy.conditions) == 1
    assert len(policy.documentation.content) > 200


@pytest.mark.parametrize("query", QUERIES)
def test_queries_ask_for_what_is_there(query: str) -> None:
    """No line stays empty because a counter was renamed or a service's metric is called otherwise."""
    found = selectors(query)
    assert found
    for name, labels, function in found:
        if name == USER_COUNTER:
            assert labels.pop("monitored_resource") == "dataflow_job"
            assert labels.pop("metric_name") in USER_COUNTERS
            # To Cloud Monitoring user counters are gauges: it has no rate of them.
            assert function in ("delta", "")
        else:
            assert labels.pop("monitored_resource") == "pubsub_topic"
            assert name in SERVICE_METRICS
            assert function == "rate"
        assert set(labels) <= SERVICE_METRICS.get(name, set())


@pytest.mark.parametrize("query", QUERIES)
def test_queries_keep_jobs_and_topics_apart(query: str) -> None:
    """Two jobs, or two topics, are two lines and two alerts."""
    groups = [set(group.split(", ")) for group in re.findall(r"sum by \(([^)]*)\)", query)]
    assert len(groups) == len(selectors(query))
    for group, (name, _, _) in zip(groups, selectors(query), strict=True):
        assert group <= (USER_LABELS if name == USER_COUNTER else SERVICE_METRICS[name])
        assert group & {"topic_id", "job_name"}


def test_the_dashboard_shows_both_sides() -> None:
    """What the pipeline sees stands beside what the service sees."""
    shown = {
        labels["metric_name"]
        for query in QUERIES
        for _, labels, _ in selectors(query)
        if "metric_name" in labels
    }
    assert {"hedges_sent", "hedges_won", "hedges_throttled", "publish_latency_ms_MEAN"} <= shown
    lines = {name for queries in charts().values() for query in queries for name, _, _ in selectors(query)}
    assert lines == {USER_COUNTER, *SERVICE_METRICS}
    positions = [
        (tile.get("xPos", 0), tile.get("yPos", 0), tile["width"], tile["height"])
        for tile in read(DASHBOARD)["mosaicLayout"]["tiles"]
    ]
    cells = [(x + i, y + j) for x, y, width, height in positions for i in range(width) for j in range(height)]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < read(DASHBOARD)["mosaicLayout"]["columns"]


def test_legends_name_labels_that_are_there() -> None:
    """Each line can be told from the others."""
    for tile in read(DASHBOARD)["mosaicLayout"]["tiles"]:
        for data in tile["widget"]["xyChart"]["dataSets"]:
            [group] = set(re.findall(r"sum by \(([^)]*)\)", data["timeSeriesQuery"]["prometheusQuery"]))
            names = set(re.findall(r"\$\{(\w+)\}", data["legendTemplate"]))
            assert names
            assert names <= set(group.split(", "))


def test_hedging_alone_never_looks_like_deadlines_that_are_too_short() -> None:
    """With the default budget, the losers of hedges cannot set off the alert on cancelled requests."""
    [threshold] = re.findall(r"> ([\d.]+)$", condition("cancelled_requests")["query"])
    ratio = HedgingSettings().refill_ratio
    assert ratio / (1 + ratio) < float(threshold)


def test_a_new_job_does_not_look_like_a_drained_bucket() -> None:
    """A bucket starts empty: only throttling that goes on sets off the alert."""
    drained = condition("drained_bucket")
    [window] = re.findall(r"\[(\d+)m\]", drained["query"])
    assert int(drained["duration"].removesuffix("s")) > 60 * int(window)
