"""From a command line to checked pipeline options: a wrong flag ends the program before anything starts."""

from __future__ import annotations

import argparse
import difflib
from typing import TYPE_CHECKING, Any, NoReturn

from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
from apache_beam.runners import create_runner

from pipelines.options import flag_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from beam_hedge import InvalidSettingError

_EPILOG = (
    "All flags of Apache Beam and of its runners work, too. Flags that only a job server knows come last, "
    "after a separate --, and are passed on unchecked."
)


class CommandLine:
    """A pipeline's command line, which knows every flag and accepts no other.

    Beam on its own drops flags that it does not know, so that a misspelt one would silently mean the default.

    Args:
        arguments: What follows the program's name.
        program: How the program is started, for messages.
        description: What it does, for `--help`.
        kinds: The classes that declare the pipeline's own flags.
        required: The flags that must be given, without dashes.

    Raises:
        SystemExit: With status 2 after a message, if a flag is wrong; with 0 after `--help`.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        program: str,
        description: str,
        kinds: Sequence[type[PipelineOptions]],
        required: Sequence[str],
    ) -> None:
        usage = " ".join([program, *(f"--{flag} {flag.upper()}" for flag in required), "[options]"])
        # argparse's own "-h" would swallow a flag with one dash, such as "-hedge_delay".
        self._parser = argparse.ArgumentParser(
            prog=program,
            usage=usage,
            description=description,
            epilog=_EPILOG,
            add_help=False,
            allow_abbrev=False,
        )
        self._parser.add_argument("--help", action="help", help="Show these lines and exit.")
        for kind in kinds:
            # Where Beam has its users declare flags; its annotation asks for a parser with one more method.
            kind._add_argparse_args(self._parser)  # type: ignore[arg-type]  # noqa: SLF001
        end = list(arguments).index("--") if "--" in arguments else len(arguments)
        self._kinds = kinds
        self._arguments = ["--help" if argument == "-h" else argument for argument in arguments[:end]]
        self._passed_on = arguments[end + 1 :]
        given, rest = self._parser.parse_known_args(self._arguments)
        self._own = [f"--{name}" for name in vars(given)]
        self._check_beam_flags(rest)
        for flag in required:
            if getattr(given, flag) is None:
                self.fail(f"--{flag} is required")

    def options(self) -> PipelineOptions:
        """Returns the options; each class of options is a view of them."""
        return PipelineOptions([*self._arguments, *self._passed_on])

    def fail(self, message: str) -> NoReturn:
        """Ends the program with a message and status 2."""
        self._parser.error(message)

    def refuse(self, error: InvalidSettingError) -> NoReturn:
        """Ends the program with a message about the flag behind a setting that was refused."""
        flag = flag_of(error.field)
        text = self._text_of(flag)
        got = f"got {text!r}" if text is not None else f"and the default is {error.value!r}"
        self.fail(
            f"argument --{flag}: must be {error.allowed.removesuffix(', or a datetime.timedelta')}, {got}"
        )

    def _check_beam_flags(self, rest: Sequence[str]) -> None:
        for argument in rest:
            if argument.startswith("-") and not argument.startswith("--"):
                self.fail(f"unknown flag {argument}: flags begin with two dashes")
        runner = self._beam_parser().parse_known_args(rest)[0].runner
        try:
            create_runner(runner or StandardOptions.DEFAULT_RUNNER)
        except (AttributeError, ImportError, ValueError) as error:
            self.fail(f"argument --runner: {error}")
        # Once more: a runner's module can declare flags of its own.
        parser = self._beam_parser()
        known, unknown = parser.parse_known_args(rest)
        foreign = self._foreign_flags()
        unknown = [argument for argument in rest if argument.partition("=")[0] in foreign] or unknown
        if not unknown:
            return
        if not unknown[0].startswith("--"):
            self.fail(f"unexpected argument {unknown[0]!r}: each value follows its flag")
        flag = unknown[0].partition("=")[0]
        close = difflib.get_close_matches(
            flag, {*self._own, *(f"--{name}" for name in vars(known))} - foreign, n=1
        )
        self.fail(
            f"unknown flag {flag}" + (f": did you mean {close[0]}?" if close else "") + f" (in {unknown[0]!r})"
        )

    def _foreign_flags(self) -> set[str]:
        """Returns flags of other pipelines: Beam knows all that were ever imported."""
        kinds = [kind for kind in PipelineOptions.__subclasses__() if kind.__module__.startswith("pipelines.")]
        return {
            f"--{flag}"
            for kind in kinds
            if kind not in self._kinds
            for flag in kind([]).get_all_options(current_only=True)
        }

    def _beam_parser(self) -> Any:
        parsers: list[Any] = []
        PipelineOptions([]).get_all_options(add_extra_args_fn=parsers.append)
        # Its own usage would be as long as Beam has flags.
        parsers[0].error = self.fail
        return parsers[0]

    def _text_of(self, flag: str) -> str | None:
        """Returns what was written after a flag."""
        arguments = iter([*self._arguments, *self._passed_on])
        for argument in arguments:
            name, equals, text = argument.partition("=")
            if name == f"--{flag}" and (value := text if equals else next(arguments, "")).strip():
                return value
        return None
