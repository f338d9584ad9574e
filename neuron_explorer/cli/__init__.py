"""The command line: one short function a command, which imports what it needs when it runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from neuron_explorer import __version__
from neuron_explorer.cli import agents, asking, chips, comparing, exporting, recording, traces
from neuron_explorer.cli.options import PROGRAM
from neuron_explorer.commands import signals
from neuron_explorer.errors import ExitCode, NeuronExplorerError

# What typer raises for a wrong command line; its name for it differs between versions.
_CommandLineError: type[Exception] = typer.BadParameter.__mro__[2]

_INTERRUPTED_QUERY = "Query interrupted"
"""What DuckDB makes of Ctrl-C while it runs a query of this process."""


app = typer.Typer(
    help="Which source line wastes the accelerator, why, and what to change.",
    epilog=f"A first look: {PROGRAM} demo",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
# in the order of the help page
for each in (traces, comparing, asking, exporting, agents, chips, recording):
    app.add_typer(each.commands)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the only place that turns errors into words and exit codes."""
    with signals.watched() as watch:
        return _ended(list(sys.argv[1:] if argv is None else argv) or ["--help"], watch)


def _ended(arguments: Sequence[str], watch: signals.Watch) -> int:
    try:
        code = _run(arguments)
    except NeuronExplorerError as error:
        return _failed(error.exit_code, str(error), error.hint)
    except _CommandLineError as error:
        return _failed(ExitCode.USAGE, *_usage(error))
    except OSError as error:
        return _output_failed(error)
    except (KeyboardInterrupt, typer.Abort):
        code = ExitCode.INTERRUPTED
    except RuntimeError as error:
        if str(error) != _INTERRUPTED_QUERY:
            raise
        code = ExitCode.INTERRUPTED
    if code == ExitCode.INTERRUPTED:
        signalled = ExitCode.INTERRUPTED if watch.number is None else 128 + watch.number
        return _failed(signalled, "interrupted")
    return int(code or ExitCode.OK)


def _run(arguments: Sequence[str]) -> int | None:
    """The command's own exit code; a reader that left is an error again, not typer's exit 1."""
    try:
        code: int | None = app(arguments, prog_name=PROGRAM, standalone_mode=False)
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):
            raise end.__context__ from None
        raise
    return code


def _show_version(asked: bool) -> None:  # noqa: FBT001  typer calls it so
    if asked:
        typer.echo(f"{PROGRAM} {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version."),
    ] = False,
) -> None:
    _ = version


def _failed(code: int, message: str, hint: str = "") -> int:
    from neuron_explorer.reports import console

    console.complain(message, hint)
    return int(code)


def _output_failed(error: OSError) -> int:
    """A reader that left (`| head`) has what it wanted; anything else is said."""
    from neuron_explorer.reports import console

    console.close_quietly()
    if isinstance(error, BrokenPipeError):
        return int(ExitCode.OK)
    reason = error.strerror or str(error)
    return _failed(ExitCode.FAILED, f"{error.filename}: {reason}" if error.filename else reason)


def _usage(error: Exception) -> tuple[str, str]:
    """The words of a wrong command line, and where to read how it goes."""
    say = getattr(error, "format_message", None)
    context = getattr(error, "ctx", None)
    command = PROGRAM if context is None else context.command_path
    return str(say() if say else error), f"{command} --help"
