"""Google's emulator, as for the tests in `tests/emulator`."""

from tests.emulator.conftest import emulator, emulator_host

__all__ = ["emulator", "emulator_host"]
