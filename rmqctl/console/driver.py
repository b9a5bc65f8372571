"""Between Textual and the terminal: keys and sizes in, frames out, and an orderly end.

Textual itself writes nothing. A frame is one write of the cells that have changed, by a thread of
its own: a slow terminal gets the newest frame and misses those between, and no key waits for it.
"""

import base64
import contextlib
import os
import select
import signal
import termios
import threading
import time
from codecs import getincrementaldecoder
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from textual import events
from textual._xterm_parser import XTermParser
from textual.constants import ESCAPE_DELAY
from textual.drivers.linux_driver import LinuxDriver
from textual.geometry import Size
from textual.messages import TerminalSupportsSynchronizedOutput

from rmqctl import exit_codes
from rmqctl.cli.signals import Terminated, TimeLimit

from .drawing import Line
from .guard import Guard
from .painting import Painter
from .terminal import ASKS_FOR_FRAMES, FRAME_BEGINS, FRAME_ENDS, modes_off, modes_on

if TYPE_CHECKING:
    from textual.app import App
    from textual.message import Message

_HANGS_S: Final = 0.1
"""A second Ctrl-C ends a console at once whose loop has not taken the first for so long."""
_PATIENCE_S: Final = 1.0
"""How long the end waits for a terminal that takes no bytes."""
_TICK_MS: Final = 50
_TICKS_S: Final = ESCAPE_DELAY + 0.2
"""After a byte, how long more are waited for: the escape key is the first byte of sequences."""
_ENDS: Final[dict[int, tuple[type[BaseException], int]]] = {}


class HungUp(BaseException):
    """The terminal is gone."""


_ENDS.update(
    {
        signal.SIGTERM: (Terminated, exit_codes.TERMINATED),
        signal.SIGINT: (KeyboardInterrupt, exit_codes.INTERRUPTED),
        signal.SIGHUP: (HungUp, 128 + signal.SIGHUP),
        signal.SIGALRM: (TimeLimit, exit_codes.TIMED_OUT),
    }
)
"""Signals that end the console: what is raised afterwards, and the code of a second signal."""


class Writer(threading.Thread):
    """Writes to the terminal: first what is sent, then the last frame that is wanted."""

    def __init__(self, descriptor: int, painter: Painter) -> None:
        super().__init__(name="console-writer", daemon=True)
        self._descriptor = descriptor
        self._painter = painter
        self._changed = threading.Condition()
        self._sent = ""
        self._frame: tuple[list[Line], int] | None = None
        self._is_shown = threading.Event()
        """Set once a frame has been written."""
        self._anew = False
        self._ends = False
        self.marks_frames = False
        """Whether the terminal knows the marks around a frame."""

    def send(self, text: str, *, anew: bool = False) -> None:
        """Write this as it is. ``anew``: the terminal's cells are unknown from now on."""
        with self._changed:
            self._sent += text
            self._anew |= anew
            self._changed.notify()

    def show(self, lines: list[Line], width: int) -> None:
        """Make the terminal show these lines; a frame that has not been written is skipped."""
        with self._changed:
            self._frame = lines, width
            self._changed.notify()

    def wait_until_shown(self, seconds: float) -> None:
        """Wait at most so long until a frame has been written."""
        self._is_shown.wait(seconds)

    def end(self) -> None:
        """Write what was sent, and end. A terminal that takes no bytes is left alone."""
        with self._changed:
            self._frame = None
            self._ends = True
            self._changed.notify()
        self.join(_PATIENCE_S)

    def run(self) -> None:
        """Write until the end."""
        with contextlib.suppress(OSError):  # the terminal is gone; its reader ends the console
            while True:
                with self._changed:
                    while not (self._sent or self._frame or self._ends):
                        self._changed.wait()
                    text, self._sent = self._sent, ""
                    frame, self._frame = self._frame, None
                    anew, self._anew = self._anew, False
                    if not text and frame is None:
                        return
                if anew:
                    self._painter.forget()
                if frame is not None:
                    cells = self._painter.frame(*frame)
                    if cells and self.marks_frames:
                        cells = f"{FRAME_BEGINS}{cells}{FRAME_ENDS}"
                    text += cells
                _write_all(self._descriptor, text.encode())
                if frame is not None:
                    self._is_shown.set()


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        try:
            data = data[os.write(descriptor, data) :]
        except BlockingIOError:  # another process made the terminal's file not blocking
            select.select([], [descriptor], [])


class ConsoleDriver(LinuxDriver):
    """The console's terminal, for Textual."""

    def __init__(
        self,
        app: "App[Any]",
        *,
        debug: bool = False,
        mouse: bool = True,
        size: tuple[int, int] | None = None,
        guard: Guard,
        painter: Painter,
    ) -> None:
        stops = {n: signal.getsignal(n) for n in (signal.SIGTSTP, signal.SIGCONT)}
        super().__init__(app, debug=debug, mouse=mouse, size=size)
        for number, handler in stops.items():  # Textual has set its own
            signal.signal(number, handler)
        self.ended_by: BaseException | None = None
        """What ended the console, if it was not a key."""
        self._guard = guard
        self._painter = painter
        self._output = guard.descriptor
        self._handlers: dict[int, Any] = {}
        self._writer: Writer | None = None
        self._interrupted_at: float | None = None
        self._wakes: tuple[int, int] | None = None
        """The pipe that wakes the thread of keys at the end: it sleeps without a limit."""

    # What Textual calls

    def write(self, data: str) -> None:
        """Textual's own output is not wanted: all lines are drawn by the Painter."""

    def start_application_mode(self) -> None:
        """Set the terminal up, and take keys and signals from now on."""
        for number in _ENDS:
            self._handle(number, self._end_by_signal)
        self._handle(signal.SIGWINCH, self._resized)
        self._handle(signal.SIGTSTP, lambda number, frame: self.suspend())
        self._handle(signal.SIGCONT, self._continued)
        self._enter()
        self._wakes = os.pipe()
        self._key_thread = threading.Thread(target=self._read, name="console-keys", daemon=True)
        self._key_thread.start()
        self._tell_size()

    def stop_application_mode(self) -> None:
        """Put the terminal back as it was."""
        if self._writer is None:
            return
        self.disable_input()
        self._leave()
        while self._handlers:
            number, handler = self._handlers.popitem()
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def disable_input(self) -> None:
        """Take no more keys."""
        if self._key_thread is not None and self._wakes is not None:
            self.exit_event.set()
            os.write(self._wakes[1], b"e")
            self._key_thread.join()
            self.exit_event.clear()
            self._key_thread = None
            for end in self._wakes:
                os.close(end)
            self._wakes = None
            with contextlib.suppress(termios.error):
                termios.tcflush(self.fileno, termios.TCIFLUSH)

    def process_message(self, message: "Message") -> None:
        """Look at what comes from the terminal before the app gets it."""
        if isinstance(message, TerminalSupportsSynchronizedOutput):
            if self._writer is not None:
                self._writer.marks_frames = True
            return
        if isinstance(message, events.Key) and message.key == "ctrl+c":
            now = time.monotonic()
            if self._interrupted_at is None:
                self._interrupted_at = now
                self._loop.call_soon_threadsafe(self._answered)
            elif now - self._interrupted_at > _HANGS_S:
                self._end_at_once(exit_codes.INTERRUPTED)
        super().process_message(message)

    def _answered(self) -> None:
        self._interrupted_at = None

    # What the app calls

    def show(self, lines: list[Line], width: int) -> None:
        """Make the terminal show these lines."""
        if self._writer is not None:
            self._writer.show(lines, width)

    def wait_until_shown(self, seconds: float) -> None:
        """Wait at most so long until a frame has been written."""
        if self._writer is not None:
            self._writer.wait_until_shown(seconds)

    def redraw(self) -> None:
        """Write all cells with the next frame."""
        if self._writer is not None:
            self._writer.send("", anew=True)

    def copy(self, text: str) -> None:
        """Hand a text to the terminal's clipboard (OSC 52); bytes that are not UTF-8 stay."""
        try:
            data = text.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            data = text.encode("utf-8", "replace")
        if self._writer is not None:
            self._writer.send(f"\x1b]52;c;{base64.b64encode(data).decode()}\x07")

    def suspend(self) -> None:
        """Stop this process and those started with it, as Ctrl-Z does; come back whole."""
        if self._writer is None:
            return
        self._leave()
        handler = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(0, signal.SIGTSTP)  # stops here
        signal.signal(signal.SIGTSTP, handler)
        self._enter()
        self._tell_size()

    # Modes

    def _enter(self) -> None:
        raw = termios.tcgetattr(self.fileno)
        self.attrs_before = list(raw)
        raw[0] &= ~(termios.IXON | termios.IXOFF | termios.ICRNL | termios.INLCR | termios.IGNCR)
        raw[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG)
        raw[6] = [*raw[6]]
        raw[6][termios.VMIN], raw[6][termios.VTIME] = 1, 0
        self._raw = raw
        termios.tcsetattr(self.fileno, termios.TCSANOW, raw)
        self._guard.entered()
        self._writer = Writer(self._output, self._painter)
        self._writer.send(modes_on(mouse=self._mouse) + self._question(), anew=True)
        self._writer.start()

    def _question(self) -> str:
        # Some terminals write a letter instead of an answer.
        mute = os.environ.get("TERM_PROGRAM") == "Apple_Terminal" or (
            os.environ.get("TERM", "").startswith(("linux", "vt"))
        )
        return "" if mute else ASKS_FOR_FRAMES

    def _leave(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.send(modes_off())
            writer.end()
        self._restore()
        self._guard.left()

    def _restore(self) -> None:
        if self.attrs_before is not None:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self.fileno, termios.TCSANOW, self.attrs_before)

    def _end_at_once(self, code: int) -> None:
        """End the process; nothing is closed, but the terminal is whole."""
        with contextlib.suppress(OSError):
            os.set_blocking(self._output, False)
            os.write(self._output, modes_off().encode())
            os.set_blocking(self._output, True)
        self._restore()
        self._guard.end()
        os._exit(code)

    # Signals

    def _handle(self, number: int, handler: Callable[[int, FrameType | None], None]) -> None:
        before = signal.getsignal(number)
        unused = number == signal.SIGALRM and before in (signal.SIG_DFL, None)
        if before != signal.SIG_IGN and not unused:  # nohup ignores a signal for a reason
            self._handlers[number] = signal.signal(number, handler)

    def _end_by_signal(self, number: int, frame: FrameType | None) -> None:
        reason, code = _ENDS[number]
        if self.ended_by is not None:
            self._end_at_once(code)
        self._end(reason())

    def _end(self, reason: BaseException) -> None:
        self.ended_by = self.ended_by or reason
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._app.exit)

    def _continued(self, number: int, frame: FrameType | None) -> None:
        """A shell has set the terminal to its own modes while this process was stopped."""
        if self._writer is not None:
            termios.tcsetattr(self.fileno, termios.TCSANOW, self._raw)
            self._writer.send(modes_on(mouse=self._mouse), anew=True)
            self._tell_size()

    def _resized(self, number: int, frame: FrameType | None) -> None:
        if self._writer is not None:
            self._writer.send("", anew=True)
        self._tell_size()

    def _tell_size(self) -> None:
        with contextlib.suppress(OSError):
            size = Size(*os.get_terminal_size(self._output))
            self._size = (size.width, size.height)
            self.send_message(events.Resize(size, size))

    # Keys

    def _read(self) -> None:
        """The thread that reads keys; the end of the terminal ends the console."""
        try:
            self.run_input_thread()
        except (OSError, EOFError):
            self._end(HungUp())

    def run_input_thread(self) -> None:
        """Read keys until ``exit_event`` is set. EOFError, OSError: the terminal is gone."""
        parser = XTermParser(self._debug)
        decode = getincrementaldecoder("utf-8")("replace").decode
        keys = select.poll()
        keys.register(self.fileno, select.POLLIN)
        assert self._wakes is not None
        keys.register(self._wakes[0], select.POLLIN)
        ticks_until = 0.0
        while not self.exit_event.is_set():
            now = time.monotonic()
            ready = keys.poll(_TICK_MS if now < ticks_until else None)
            if any(descriptor == self.fileno for descriptor, _ in ready):
                data = os.read(self.fileno, 4096)
                if not data:
                    raise EOFError
                ticks_until = time.monotonic() + _TICKS_S
                for message in parser.feed(decode(data)):
                    self.process_message(message)
            for message in parser.tick():
                self.process_message(message)


def run(
    app: "App[Any]", guard: Guard, painter: Painter, *, mouse: bool, at_end: Callable[[], object]
) -> object:
    """Run the app on the terminal, then call ``at_end``; what it returned.

    Raises what ended it: a signal, the time limit, or an error in the app.
    """
    drivers: list[ConsoleDriver] = []

    def driver(app: "App[Any]", **given: Any) -> ConsoleDriver:
        drivers.append(ConsoleDriver(app, guard=guard, painter=painter, **given))
        return drivers[0]

    app.driver_class = driver  # type: ignore[assignment]
    try:
        found = app.run(mouse=mouse)
    finally:
        for one in drivers:
            one.stop_application_mode()
        at_end()
    reason = drivers[0].ended_by if drivers else None
    reason = reason or getattr(app, "failure", None)
    if isinstance(reason, HungUp):
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        guard.end()
        os.kill(os.getpid(), signal.SIGHUP)
    if reason is not None:
        raise reason
    return found
