# SPDX-License-Identifier: Apache-2.0
"""The `splatcert` command: parse, run, and turn every outcome into an exit code.

Only light modules are imported here; a command imports what it needs when it runs.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from contextlib import redirect_stderr, suppress
from functools import reduce
from importlib import import_module
from operator import or_
from typing import Annotated, Any

import tyro

from splatcert import __version__
from splatcert.commands import Command, what_is_kept
from splatcert.console import visible
from splatcert.errors import InputError
from splatcert.progress import interrupts

DONE, OURS, INPUT, INTERRUPTED = 0, 1, 2, 130
REMEDY = "Check the path, its permissions and the free disk space."
SMALLER = "Use a smaller --resolution, or close other programs."

DESCRIPTION = f"""Certified error bars for Gaussian splats {__version__}.

From photographs to a certificate: train, certify, verify. If you have a model, start with
certify. Shell completion: splatcert --completion bash (or zsh, fish)."""
SHELLS = ("bash", "zsh", "fish")

COMMANDS = {
    "demo": "splatcert.commands.demo:Demo",
    "inspect": "splatcert.commands.captures.inspect:Inspect",
    "train": "splatcert.commands.captures.train:Train",
    "register": "splatcert.commands.captures.register:Register",
    "certify": "splatcert.commands.certificates.certify:Certify",
    "verify": "splatcert.commands.certificates.verify:Verify",
    "check": "splatcert.commands.certificates.check:Check",
    "sign": "splatcert.commands.certificates.sign:Sign",
    "report": "splatcert.commands.certificates.report:Report",
    "learn": "splatcert.commands.captures.learn:Learn",
    "render": "splatcert.commands.certificates.render:Render",
    "view": "splatcert_viewer.command:View",
    "suggest": "splatcert.commands.certificates.suggest:Suggest",
    "export": "splatcert.commands.certificates.export:Export",
    "doctor": "splatcert.commands.doctor:Doctor",
    "bench": "splatcert_bench.commands:Bench",
    "results": "splatcert_bench.commands:Results",
}
"""Where each command is defined; naming the bench here is not an import of it."""


def _choices(*, in_short: bool = False) -> Any:
    """All commands as one type, for the parser; described in full, or by their first line."""
    kinds = []
    for name, home in COMMANDS.items():
        module, _, kind = home.partition(":")
        command = getattr(import_module(module), kind)
        summary = command.__doc__.split("\n\n")[0] if in_short else None
        kinds.append(Annotated[command, tyro.conf.subcommand(name, description=summary)])
    return reduce(or_, kinds)


def parse(arguments: Sequence[str]) -> Command:
    """The command with its options; prints help or an error and exits otherwise.

    The parser wraps the message of an option's own check in one about itself. We raise the
    original message instead.
    """
    framed, asked = io.StringIO(), list(arguments) or ["--help"]
    try:
        with redirect_stderr(framed):
            return tyro.cli(
                _choices(in_short=asked[0] in ("-h", "--help")),
                prog="splatcert",
                description=DESCRIPTION,
                args=asked,
                config=(tyro.conf.FlagCreatePairsOff,),
            )
    except SystemExit as ending:
        if refusal := _behind(ending):
            where = f"splatcert {arguments[0]} --help lists the options."
            raise InputError(f"{str(refusal).removesuffix('.')}.\n  {where}") from None
        sys.stderr.write(framed.getvalue())
        raise


def _behind(error: BaseException | None) -> InputError | None:
    """Our own error among the causes of another one, if there is one."""
    while error is not None and not isinstance(error, InputError):
        error = error.__cause__ or error.__context__
    return error


def _complain(message: str) -> None:
    with suppress(OSError):  # nobody listens any more; the exit code still tells
        print(f"splatcert: {visible(message)}", file=sys.stderr, flush=True)


def _explain_fault(error: Exception) -> None:
    if os.environ.get("SPLATCERT_TRACEBACK"):
        traceback.print_exc()
        return
    _complain(
        f"internal error: {type(error).__name__}: {error}\n"
        "  This is a bug in splatcert, not a problem with your input.\n"
        "  Run the command again with SPLATCERT_TRACEBACK=1 and report its output."
    )


def _print_completion(shell: Sequence[str]) -> int:
    """Print a shell script that completes commands and options."""
    if len(shell) != 1 or shell[0] not in SHELLS:
        _complain(
            f"--completion must be one of {', '.join(SHELLS)}.\n"
            '  In bash: eval "$(splatcert --completion bash)"'
        )
        return INPUT
    with suppress(SystemExit):
        parse(["--tyro-print-completion", shell[0]])
    return DONE


def _perform(arguments: Sequence[str]) -> int:
    if list(arguments) == ["--version"]:
        print(f"splatcert {__version__}")
        return DONE
    if list(arguments[:1]) == ["--completion"]:
        return _print_completion(arguments[1:])
    try:
        return _run(parse(arguments))
    except SystemExit as ending:  # the parser has printed help or an error
        return INPUT if ending.code else DONE
    except BrokenPipeError:
        raise
    except (InputError, OSError, MemoryError) as error:
        _complain(_refusal(error))
        return INPUT


def _run(command: Command) -> int:
    try:
        return command.run() or DONE
    except KeyboardInterrupt:
        _complain(f"interrupted. {what_is_kept(command)}")
        return INTERRUPTED


def _refusal(error: Exception) -> str:
    """The error message for input that cannot be used."""
    if isinstance(error, OSError):
        # A disk, a permission, a name: the system explains it best.
        return f"{error.filename or 'the system'}: {error.strerror or error}.\n  {REMEDY}"
    return f"not enough memory.\n  {SMALLER}" if isinstance(error, MemoryError) else str(error)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code of one invocation.

    0 success, 2 bad input, 3 a rule of `check` is not met, 130 interrupted; 1 a bug of ours, or
    a back end that `doctor` finds wrong.
    """
    _replace_closed_streams()
    try:
        status = _perform(sys.argv[1:] if arguments is None else arguments)
        _flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader closed the pipe, as `head` does
        _drop_output()
        return DONE
    except OutputError as error:
        _drop_output()
        _complain(str(error))
        return INPUT
    except Exception as error:
        _explain_fault(error)
        return OURS
    return status


class OutputError(InputError):
    """Standard output cannot be written."""


def _flush() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(
            f"cannot write to standard output: {error.strerror}.\n"
            "  Free some space, or send the output elsewhere."
        ) from None


def _drop_output() -> None:
    """Send what is still buffered nowhere: Python would complain about it again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _replace_closed_streams() -> None:
    """Python has no stream where a shell closed one (`>&-`): what is printed there is dropped."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))


def run() -> int:
    """The program: as `main`, but exits at once after Ctrl-C, which also ends the viewer.

    All cleanup has happened by then; unloading torch and waiting for a server's threads could
    take seconds.
    """

    def interrupt(number: int, frame: Any) -> None:
        interrupts.append(number)
        signal.default_int_handler(number, frame)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where it is ignored
        signal.signal(signal.SIGINT, interrupt)
    status = main()
    if interrupts or status == INTERRUPTED:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    return status


if __name__ == "__main__":
    sys.exit(run())
