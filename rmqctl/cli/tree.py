"""The commands: name, module and function of each, and its line in the help.

Nothing here imports a command: the root's ``--help`` reads only this table, and running a command
imports only its own module. To add one: write the function in ``<noun>/commands.py``, add its line
here, run ``make man completions``.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

ABOUT: Final = """\
rmqctl works on folders of Apache RocketMQ 4.9, without a broker process.
Not affiliated with the Apache Software Foundation."""
MOST_COLUMNS: Final = 100
"""Columns of the widest help."""


class CommandRef(NamedTuple):
    """A command: a function of a module below ``rmqctl``."""

    module: str
    function: str
    help: str


class CommandGroup(NamedTuple):
    """A noun, such as ``topic``; its verbs are the commands."""

    help: str
    verbs: Mapping[str, CommandRef]


TREE: Final[Mapping[str, CommandRef | CommandGroup]] = {
    "produce": CommandRef("produce.command", "produce", "Send messages from lines, files or JSON"),
    "consume": CommandRef(
        "consume.command", "consume", "Read messages, alone or as a group member"
    ),
    "resetOffsetByTime": CommandRef(
        "offset.move.reset_by_time_command",
        "reset_offset_by_time",
        "Move a group to a time, by mqadmin's rule",
    ),
    "console": CommandRef(
        "console.program.command", "console", "Show the store on a full screen, live"
    ),
    "topic": CommandGroup(
        "Topics and their queues: list, create, change, delete.",
        {
            "list": CommandRef("topic.commands", "list_topics", "List all topics"),
            "describe": CommandRef(
                "topic.commands", "describe", "Show settings, size and groups of topics"
            ),
            "queues": CommandRef(
                "topic.commands", "queues", "Show queues with their offsets and times"
            ),
            "create": CommandRef("topic.change_commands", "create", "Create topics"),
            "alter": CommandRef("topic.change_commands", "alter", "Change the settings of topics"),
            "delete": CommandRef("topic.change_commands", "delete", "Delete a topic"),
            "stats": CommandRef(
                "topic.figure_commands", "stats", "Show message counts, sizes and rates"
            ),
            "usage": CommandRef(
                "topic.figure_commands", "usage", "Show the disk space that topics use"
            ),
        },
    ),
    "group": CommandGroup(
        "Consumer groups and their members: list, create, change, delete.",
        {
            "list": CommandRef("group.commands", "list_groups", "List all consumer groups"),
            "describe": CommandRef(
                "group.commands", "describe", "Show settings and members of groups"
            ),
            "clients": CommandRef(
                "group.commands", "clients", "Show live members and their queues"
            ),
            "why": CommandRef("group.commands", "why", "Show why a group lags, and since when"),
            "create": CommandRef("group.change_commands", "create", "Create consumer groups"),
            "alter": CommandRef("group.change_commands", "alter", "Change the settings of groups"),
            "delete": CommandRef("group.change_commands", "delete", "Delete a consumer group"),
        },
    ),
    "message": CommandGroup(
        "Messages: find, trace, count, export and import them.",
        {
            "get": CommandRef("message.commands", "get", "Show one message by id or offset"),
            "query": CommandRef(
                "message.lookup_commands", "query", "Find all messages with a key or a tag"
            ),
            "search": CommandRef("message.search.command", "search", "Find messages by content"),
            "trace": CommandRef("message.lookup_commands", "trace", "Show the trace of a message"),
            "life": CommandRef("message.lookup_commands", "life", "Show the history of a message"),
            "export": CommandRef("message.exchange.commands", "export", "Write messages to a file"),
            "import": CommandRef(
                "message.exchange.commands", "import_messages", "Store the messages of a file"
            ),
            "stats": CommandRef(
                "message.stats_command", "stats", "Count messages by size, tag, key or host"
            ),
            "decode-id": CommandRef("message.lookup_commands", "decode_id", "Decode message ids"),
        },
    ),
    "dlq": CommandGroup(
        "Dead letters: list, show, redrive and acknowledge them.",
        {
            "list": CommandRef(
                "dlq.commands", "list_dlqs", "List the groups that have dead letters"
            ),
            "browse": CommandRef("dlq.commands", "browse", "List the dead letters of a group"),
            "show": CommandRef(
                "dlq.commands", "show", "Show one dead letter in full, with its history"
            ),
            "groups": CommandRef(
                "dlq.commands", "groups", "Count dead letters by reason, tag, key or hour"
            ),
            "redrive": CommandRef("dlq.change_commands", "redrive", "Send dead letters again"),
            "ack": CommandRef("dlq.change_commands", "ack", "Mark dead letters as handled"),
            "export": CommandRef("dlq.commands", "export", "Export dead letters as whole messages"),
        },
    ),
    "retry": CommandGroup(
        "Retries: messages that failed and will be consumed again.",
        {
            "browse": CommandRef(
                "retry.commands", "browse", "List the messages that a group will retry"
            ),
            "show": CommandRef("retry.commands", "show", "Show every attempt of a message"),
            "agenda": CommandRef(
                "retry.commands", "agenda", "Show when delayed messages and retries are due"
            ),
            "now": CommandRef("retry.commands", "now", "Retry waiting messages now"),
            "dead": CommandRef(
                "retry.commands", "dead", "Turn waiting messages into dead letters now"
            ),
        },
    ),
    "offset": CommandGroup(
        "Offsets: show, move, restore and compare the progress of groups.",
        {
            "inspect": CommandRef(
                "offset.commands", "inspect", "Show the progress of groups, with ages and messages"
            ),
            "history": CommandRef(
                "offset.commands", "history", "Show who moved the progress of groups, and when"
            ),
            "diff": CommandRef(
                "offset.diff.commands", "diff", "Compare two groups, files, stores or times"
            ),
            "export": CommandRef("offset.diff.commands", "export", "Export offsets as CSV or JSON"),
            "list": CommandRef(
                "offset.commands", "list_offsets", "List the committed offsets of all groups"
            ),
            "reset": CommandRef(
                "offset.move.commands", "reset", "Move progress to a time, an offset or a message"
            ),
            "undo": CommandRef("offset.move.commands", "undo", "Undo a change of progress"),
            "import": CommandRef(
                "offset.move.commands", "import_offsets", "Import offsets from a file"
            ),
            "delete": CommandRef("offset.move.commands", "delete", "Delete the progress of groups"),
            "orphans": CommandRef(
                "offset.move.commands",
                "orphans",
                "List progress of topics and groups that are gone",
            ),
        },
    ),
    "lag": CommandGroup(
        "Lag: the backlog of groups, its age, and messages at risk.",
        {
            "show": CommandRef("lag.commands", "show", "Show the lag of groups"),
            "report": CommandRef(
                "lag.report.command", "report", "Report the lag over many stores, with Spark"
            ),
            "warmup": CommandRef(
                "lag.report.command", "warmup", "Build a cache that makes Spark start faster"
            ),
            "histogram": CommandRef(
                "lag.backlog.commands", "histogram", "Show ages, sizes or tags of a backlog"
            ),
            "watch": CommandRef("lag.watch.command", "watch", "Watch the lag of groups, live"),
            "record": CommandRef(
                "lag.record_command", "record", "Record the lag in a file, to compare with later"
            ),
            "compact": CommandRef(
                "lag.compact_command", "compact", "Join the small files of kept reports"
            ),
            "check": CommandRef(
                "lag.check.command", "check", "Check lag against limits, for monitoring"
            ),
            "risk": CommandRef(
                "lag.backlog.commands", "risk", "Show messages that will be deleted unread"
            ),
        },
    ),
    "broker": CommandGroup(
        "Broker: services and settings of a store, without a daemon.",
        {
            "status": CommandRef(
                "broker.commands", "status", "Show services, clients and waiting messages"
            ),
            "start": CommandRef(
                "broker.commands", "start", "Run the broker's services in the foreground"
            ),
            "config": CommandRef(
                "broker.config_command", "config", "Show or change the settings of a store"
            ),
        },
    ),
    "bench": CommandGroup(
        "Load tests: an even rate, and the latencies of sending and reading.",
        {
            "produce": CommandRef(
                "bench.commands", "produce", "Send at an even rate and measure acknowledgements"
            ),
            "consume": CommandRef("bench.commands", "consume", "Read a topic and measure the rate"),
            "both": CommandRef(
                "bench.commands", "both", "Send and read, and measure end-to-end latencies"
            ),
        },
    ),
    "audit": CommandGroup(
        "Audit log: who changed what, when and why.",
        {
            "list": CommandRef(
                "audit.commands", "list_changes", "List all changes of progress and settings"
            ),
            "show": CommandRef("audit.commands", "show", "Show one change in full"),
        },
    ),
    "store": CommandGroup(
        "Stores: create, inspect, check, repair and copy them.",
        {
            "init": CommandRef("store.commands", "init", "Create an empty store"),
            "info": CommandRef("store.commands", "info", "Show facts about a store"),
            "du": CommandRef(
                "store.usage.commands", "du", "Show what fills the disk, and the next deletions"
            ),
            "clean": CommandRef("store.usage.commands", "clean", "Delete expired files"),
            "fsck": CommandRef("store.commands", "fsck", "Check all files of a store"),
            "repair": CommandRef("store.repair.command", "repair", "Repair what fsck finds"),
            "rebuild": CommandRef(
                "store.rebuild.command", "rebuild", "Rebuild queues or the index from the log"
            ),
            "recover-offsets": CommandRef(
                "store.recover.commands",
                "recover_offsets",
                "Recover lost progress of groups",
            ),
            "recover-config": CommandRef(
                "store.recover.commands",
                "recover_config",
                "Recover damaged settings files",
            ),
            "dump": CommandRef(
                "store.dump.command", "dump", "Decode a file of the store, or a log position"
            ),
            "tail": CommandRef("store.tail.command", "tail", "Follow the log as it grows"),
            "diff": CommandRef("store.snapshot.diff_command", "diff", "Compare two stores"),
            "snapshot": CommandRef(
                "store.snapshot.commands", "snapshot", "Copy a store while it is in use"
            ),
            "restore": CommandRef(
                "store.snapshot.commands", "restore", "Create a store from a snapshot"
            ),
            "carve": CommandRef(
                "store.carve.command", "carve", "Copy a part of a store into a new one"
            ),
        },
    ),
    "config": CommandGroup(
        "Settings of this program: show and change them.",
        {
            "show": CommandRef(
                "config.commands", "show", "Show all settings and where they come from"
            ),
            "get": CommandRef("config.commands", "get", "Print the value of one setting"),
            "set": CommandRef("config.commands", "set_setting", "Set a setting in a file"),
            "path": CommandRef("config.commands", "path", "Show the settings files"),
        },
    ),
    "context": CommandGroup(
        "Contexts: named sets of settings, such as one for each store.",
        {
            "list": CommandRef("config.context_commands", "list_contexts", "List all contexts"),
            "use": CommandRef("config.context_commands", "use", "Use a context from now on"),
            "show": CommandRef("config.context_commands", "show", "Show all settings of a context"),
            "add": CommandRef("config.context_commands", "add", "Add a context"),
            "rm": CommandRef("config.context_commands", "remove", "Remove a context"),
        },
    ),
    "explain": CommandRef(
        "help.explain_command", "explain", "Explain a term, a code, a state or a setting"
    ),
    "cheat": CommandRef("help.cheat_command", "cheat", "Show example commands, sheet by sheet"),
    "man": CommandRef("help.man_command", "man", "Show the manual page of a command"),
    "doctor": CommandRef(
        "help.doctor_command", "doctor", "Check whether rmqctl has everything that it needs"
    ),
    "mqadmin": CommandRef(
        "help.mqadmin.command", "mqadmin", "Run an mqadmin 4.9 command in its new form"
    ),
    "completion": CommandRef(
        "help.completion_command", "completion", "Print the completion script of a shell"
    ),
    "version": CommandRef(
        "help.version_command", "version", "Show the versions of rmqctl and its runtime"
    ),
}

SECTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "Produce and consume": ("produce", "consume", "resetOffsetByTime"),
    "Inspect and manage": (
        "console",
        "topic",
        "group",
        "message",
        "retry",
        "dlq",
        "offset",
        "lag",
        "broker",
        "bench",
        "audit",
        "store",
    ),
    "This program": (
        "config",
        "context",
        "explain",
        "cheat",
        "man",
        "doctor",
        "mqadmin",
        "completion",
        "version",
    ),
}
"""The sections of the root's help."""
