"""Findings of a check of a store, as values.

Severities: ``error`` a message is unreadable or wrong; ``warning`` derived data (units, index,
checkpoint) is stale or missing and can be rebuilt from the log; ``info`` worth knowing.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple


class Severity(StrEnum):
    """How bad a finding is."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Code(StrEnum):
    """What was found. The values are stable: scripts may compare them.

    ``rmqctl explain CODE`` prints the text of each; its severity comes first.
    """

    # log
    RECORD_DAMAGED = "RECORD_DAMAGED"
    """Error. A record of the log fails its checksum or contradicts itself: its message is never
    handed out, and a Java broker that recovers cuts the log here.
    """
    RECORD_MISPLACED = "RECORD_MISPLACED"
    """Error. A record lies at another place than it names, in the log or in its queue: it is not
    handed out.
    """
    RECORD_REPEATED = "RECORD_REPEATED"
    """Error. Two records claim the same place of a queue: the second is never handed out."""
    PROPERTIES_DAMAGED = "PROPERTIES_DAMAGED"
    """Error. A record's properties end in zero bytes or are not UTF-8: tags, keys or others of this
    message are wrong. No checksum covers them.
    """
    BODY_UNREADABLE = "BODY_UNREADABLE"
    """Warning. A record's flags say that its body is compressed, and the body cannot be unpacked:
    readers leave the message out, and groups make a dead letter of it. The stored bytes are whole.
    """
    BODY_EMPTY = "BODY_EMPTY"
    """Warning. Messages have empty bodies, which RocketMQ's clients refuse to send. Its consumers
    fail at such a message: what they pull with it never reaches a listener, and the progress of
    their groups stays there.
    """
    LOG_BYTES_LOST = "LOG_BYTES_LOST"
    """Error. Bytes of the log are no records: the messages that were here are lost, and a Java
    broker ends the log here.
    """
    LOG_FILE_MISSING = "LOG_FILE_MISSING"
    """Error. A file of the log is missing or has 0 bytes: its messages are lost, or lie in another
    folder (storePathCommitLog). A Java broker ends the log here. Files that are missing at the end
    make rmqctl refuse to open the store for writing, until they are back or 'store repair' has
    given them up; a warning where it does not.
    """
    LOG_FILE_LENGTH = "LOG_FILE_LENGTH"
    """Warning, an error if messages are lost with it. A file of the log does not have the length of
    this store's files: brokers refuse to open it.
    """
    LOG_FILE_FOREIGN = "LOG_FILE_FOREIGN"
    """Error. No queue has a unit of a record of this file, and queues have units of others that
    should be in it: it is a file of another log. Its records are not handed out.
    """
    LOG_TAIL_LOST = "LOG_TAIL_LOST"
    """Warning, an error in a store that was closed cleanly. Queues, index or checkpoint refer to
    messages after the log's last record: the log has lost its end.
    """
    LOG_TORN_TAIL = "LOG_TORN_TAIL"
    """Warning, an error in a store that was closed cleanly. After the last whole record there are
    bytes of one that was being written: recovery cuts them off. It was never acknowledged.
    """
    LOG_NOT_TAKEN_IN = "LOG_NOT_TAKEN_IN"
    """Info. Whole records lie past the known end of the log: their writer died before it published
    them, and none was acknowledged. The next process that opens the store for writing takes them
    in.
    """
    LOG_BEHIND_END = "LOG_BEHIND_END"
    """Warning, an error in a store that was closed cleanly. A file past the log's end holds bytes:
    recovery leaves them out, a Java broker deletes the file.
    """
    LOG_FILE_AHEAD = "LOG_FILE_AHEAD"
    """Info. An empty file was made ahead, as a running or killed Java broker leaves it. It is
    harmless.
    """
    BLANK_MISSING = "BLANK_MISSING"
    """Warning. A file of the log ends without the blank record that closes it: a Java broker that
    recovers ends the log here and deletes all later files.
    """
    BLANK_WRONG = "BLANK_WRONG"
    """Warning. The blank record at the end of a log file has a wrong length; readers ignore it.

    """
    RECORD_REPLACED = "RECORD_REPLACED"
    """Info. Records of zeros are in the place of damaged ones: 'store repair' wrote them. rmqctl
    passes over them, a Java broker delivers the zeros.
    """
    STORE_TIME_BACK = "STORE_TIME_BACK"
    """Info. Store times go back in the log, as after a clock was set back: a search by time may
    give a wrong message there.
    """
    # queues
    UNIT_MISSING = "UNIT_MISSING"
    """Error, a warning in a store that was not closed cleanly. Records have no unit in their
    consume queue: consumers do not get these messages. The log has them: 'store repair' rebuilds
    the units. After an abnormal end rmqctl reads the newest of these messages from the log, and
    recovery makes their units when the store is opened for writing.
    """
    UNIT_WRONG = "UNIT_WRONG"
    """Warning, an error if messages are out of reach. Units of a consume queue do not point at
    their records: consumers do not get these messages. The log has them: 'store repair' rebuilds
    the units.
    """
    UNIT_WITHOUT_RECORD = "UNIT_WITHOUT_RECORD"
    """Error. A consume queue has units for which the log holds no whole record: these messages can
    not be read.
    """
    UNIT_BEHIND_END = "UNIT_BEHIND_END"
    """Warning. Units point past the log's end, at messages that do not exist: recovery cuts them
    off.
    """
    TAG_HASH_WRONG = "TAG_HASH_WRONG"
    """Warning. A unit's tag hash is not that of its record: subscriptions by tag miss the message,
    or get it without asking.
    """
    QUEUE_GAP = "QUEUE_GAP"
    """Warning. A queue has places with neither unit nor record: consumers pass them."""
    QUEUE_FILE_MISSING = "QUEUE_FILE_MISSING"
    """Error. A file of a consume queue is missing between others: consumers do not get the messages
    whose units were in it. The log has them: 'store repair' rebuilds the units.
    """
    QUEUE_FILE_LENGTH = "QUEUE_FILE_LENGTH"
    """Warning, an error if messages are out of reach. A file of a consume queue does not have the
    length of this store's files: brokers refuse to open it, and consumers do not get the messages
    whose units were in a missing part. The log has them, so the queue can be rebuilt.
    """
    QUEUE_FILE_EMPTY = "QUEUE_FILE_EMPTY"
    """Warning. A consume queue ends with a file without units: a Java broker takes its first zeros
    for a message, and serves a bogus one.
    """
    # index
    INDEX_KEY_MISSING = "INDEX_KEY_MISSING"
    """Warning. Keys of records are not in the index: queries by key do not find these messages.
    They are found by searching the log.
    """
    INDEX_ENTRY_WRONG = "INDEX_ENTRY_WRONG"
    """Warning. Entries of the index belong to no record: queries by key find wrong places."""
    INDEX_TIME_WRONG = "INDEX_TIME_WRONG"
    """Warning. Entries of the index have a wrong time: queries by key and time give wrong
    results."""
    INDEX_CHAIN_BROKEN = "INDEX_CHAIN_BROKEN"
    """Warning. Links between entries of the index are broken: queries by key miss messages."""
    INDEX_HEADER_WRONG = "INDEX_HEADER_WRONG"
    """Warning. The head of an index file contradicts its content: queries by key may miss messages,
    and new keys may overwrite old ones.
    """
    INDEX_FILE_LENGTH = "INDEX_FILE_LENGTH"
    """Warning. An index file does not have the length of this store's files; a shorter one is not
    searched.
    """
    INDEX_BEHIND_END = "INDEX_BEHIND_END"
    """Warning. The index has keys of records past the log's end: queries by key find nothing there.
    """
    # checkpoint, shutdown, offsets, settings
    CHECKPOINT_MISSING = "CHECKPOINT_MISSING"
    """Warning. There is no checkpoint: recovery reads the whole log. Opening the store for writing
    makes it again.
    """
    CHECKPOINT_SHORT = "CHECKPOINT_SHORT"
    """Warning. The checkpoint is cut: what is missing counts as 0, and recovery reads more of the
    log. Opening the store for writing makes it again.
    """
    CHECKPOINT_AHEAD = "CHECKPOINT_AHEAD"
    """Info, a warning where it holds a negative time. The checkpoint vouches for newer records than
    there are: they were cut off, or recovery may start too late.
    """
    CHECKPOINT_BEHIND = "CHECKPOINT_BEHIND"
    """Info. The checkpoint is older than the newest message although the store was closed cleanly:
    a recovery reads more of the log.
    """
    NOT_CLOSED = "NOT_CLOSED"
    """Info. The store is open, or was not closed cleanly: in that case the next opening for writing
    runs recovery.
    """
    OFFSET_BEHIND_END = "OFFSET_BEHIND_END"
    """Info. A group's progress lies past the end of its queue: new messages up to there will be
    passed over. A warning for a delay level with messages that wait: brokers set it to the end, and
    they are never delivered; 'store recover-config' sets it back.
    """
    OFFSET_BELOW_START = "OFFSET_BELOW_START"
    """Info. A group's progress lies below the first message left: the ones before it were deleted
    unread.
    """
    OFFSET_WITHOUT_QUEUE = "OFFSET_WITHOUT_QUEUE"
    """Info. A group has progress in a queue that the store does not have."""
    DELAY_LEVEL_GONE = "DELAY_LEVEL_GONE"
    """Warning. Messages wait in a delay level that messageDelayLevel does not have (any more):
    nothing delivers them until it has that many levels again. Info in a store of a Java broker,
    whose broker.conf may have more levels.
    """
    CONFIG_UNREADABLE = "CONFIG_UNREADABLE"
    """Error. A file of settings or progress cannot be read, nor its .bak: a Java broker starts
    without it, or not at all.
    """
    CONFIG_FROM_BAK = "CONFIG_FROM_BAK"
    """Warning. A file of settings is missing or cannot be read, its .bak can: the last change of
    it is lost. The next change writes the file again.
    """
    CONFIG_EMPTY = "CONFIG_EMPTY"
    """Warning. A file of settings or progress holds nothing, and its .bak holds something, or a
    broker would have written braces at least: its content is lost.
    """
    CONFIG_MISSING = "CONFIG_MISSING"
    """Warning. The store has groups or a history of topics, and topics have queues, but topics.json
    and its .bak are missing: the next message to a topic makes it anew, maybe with fewer queues.
    """
    OWN_FILE_DAMAGED = "OWN_FILE_DAMAGED"
    """Error. A file of rmqctl's own (below rmqctl/) cannot be read: its check sum is wrong, or its
    content is one that no rmqctl writes. Readers go on without it where they can; 'store repair'
    rebuilds it from other sources.
    """
    SHARED_STATE_WRONG = "SHARED_STATE_WRONG"
    """Warning. Words of rmqctl/shared contradict each other or the files. Readers and writers do
    without them, and the next writer makes the file again when no other process has the store open.
    """
    OWN_FILE_TORN = "OWN_FILE_TORN"
    """Info. A line in a file of rmqctl's own is not whole: its writer was killed while it wrote, or
    the disk was full. Readers pass over it.
    """
    QUEUE_COUNT_WRONG = "QUEUE_COUNT_WRONG"
    """Warning. A topic or group has a number of queues above 65,536, the most that rmqctl takes:
    it uses the queues that have folders, and the next change of the file writes that number.
    'topic alter' or 'group alter' sets another one.
    """
    TOPIC_UNKNOWN = "TOPIC_UNKNOWN"
    """Info. A topic has queues but is not in topics.json: clients of a Java broker cannot
    read it. Creating the topic makes it known.
    """
    QUEUE_NOT_READ = "QUEUE_NOT_READ"
    """Info. Queues that a topic's readQueueNums leaves out hold messages: groups that have not read
    them do not get them. More read queues bring them back.
    """
    FOREIGN_FILE = "FOREIGN_FILE"
    """Info, an error where it keeps writers out. A file has a name that no file of a store has:
    rmqctl ignores it, a Java broker may refuse to start with it. Or something else is in the place
    of a file or folder of the store.
    """
    FILE_NOT_WRITABLE = "FILE_NOT_WRITABLE"
    """Warning. A file or folder cannot be written by the store's owner, or by this user: writes
    that need it are refused. Give it to the owner of the store folder (chown).
    """
    NOT_COVERED = "NOT_COVERED"
    """Info. The store has parts that rmqctl does not read; they were not checked."""


AS_SENT = frozenset({Code.BODY_UNREADABLE, Code.BODY_EMPTY})
"""Warnings about what senders have stored: the store is whole, and nothing needs repair."""


class Finding(NamedTuple):
    """One finding. ``file`` is relative to the store, ``position`` a byte in it or None.

    ``what`` was found, its ``effect`` on users, and the command or action to ``fix`` it ("" if
    nothing has to be done).
    """

    code: Code
    severity: Severity
    file: str
    position: int | None
    what: str
    effect: str
    fix: str


@dataclass(slots=True)
class Checked:
    """How much was checked."""

    records: int = 0
    units: int = 0
    index_entries: int = 0
    offsets: int = 0
    files: int = 0


@dataclass(slots=True)
class Report:
    """Outcome of a check: ``ok`` means no finding of severity error.

    At most ``max_findings`` are kept; ``left_out`` counts the rest. ``log_end`` is the commit log
    offset up to which the store was checked: a later check may start there. ``finished_to``, if it
    is larger, is the log's end after the next opening for writing; 0 if it is open.
    """

    checked: Checked = field(default_factory=Checked)
    findings: list[Finding] = field(default_factory=list)
    left_out: int = 0
    errors: int = 0
    warnings: int = 0
    log_end: int = 0
    finished_to: int = 0

    @property
    def ok(self) -> bool:
        """Whether every message is readable and right."""
        return self.errors == 0

    @property
    def healthy(self) -> bool:
        """Whether nothing needs repair."""
        as_sent = sum(finding.code in AS_SENT for finding in self.findings)
        return self.errors == 0 and self.warnings == as_sent

    def as_dict(self) -> dict[str, Any]:
        """The report with the keys of the command line's JSON."""
        return {
            "ok": self.ok,
            "checked": asdict(self.checked),
            "findings": [finding._asdict() for finding in self.findings],
        }
