"""The commands: name, where each lives, and its line in the help.

Nothing here imports a command: the root's ``--help`` reads this table alone, and running a command
imports its own module only. To add one: write the function in ``<noun>/commands.py``, add its
line here, run ``make completions``.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple


class CommandRef(NamedTuple):
    """A command that does something: a function of a module below ``rmqctl``."""

    module: str
    function: str
    help: str


class CommandGroup(NamedTuple):
    """A thing that can be looked at and worked on; its verbs are the commands."""

    help: str
    verbs: Mapping[str, CommandRef]


TREE: Final[Mapping[str, CommandRef | CommandGroup]] = {
    "produce": CommandRef("produce.command", "produce", "Send messages: lines, files, JSON"),
    "consume": CommandRef("consume.command", "consume", "Read messages: all, some, or as a group"),
    "resetOffsetByTime": CommandRef(
        "offset.move.reset_by_time_command",
        "reset_offset_by_time",
        "Move a group to a time, as mqadmin does",
    ),
    "topic": CommandGroup(
        "Topics: what is sent to and read from, divided into queues.",
        {
            "list": CommandRef("topic.commands", "list_topics", "List all topics"),
            "describe": CommandRef("topic.commands", "describe", "Show everything about topics"),
            "queues": CommandRef(
                "topic.commands", "queues", "Show queues with their offsets and times"
            ),
            "create": CommandRef("topic.change_commands", "create", "Create topics"),
            "alter": CommandRef("topic.change_commands", "alter", "Change the settings of topics"),
            "delete": CommandRef("topic.change_commands", "delete", "Delete a topic"),
            "stats": CommandRef(
                "topic.figure_commands", "stats", "Show sizes and rates, by queue or hour"
            ),
            "usage": CommandRef(
                "topic.figure_commands", "usage", "Show the bytes that topics take"
            ),
        },
    ),
    "group": CommandGroup(
        "Groups: consumers that share their progress, and who is in them.",
        {
            "list": CommandRef("group.commands", "list_groups", "List all consumer groups"),
            "describe": CommandRef("group.commands", "describe", "Show everything about groups"),
            "clients": CommandRef(
                "group.commands", "clients", "Show live members and their queues"
            ),
            "create": CommandRef("group.change_commands", "create", "Create consumer groups"),
            "alter": CommandRef("group.change_commands", "alter", "Change the settings of groups"),
            "delete": CommandRef("group.change_commands", "delete", "Delete a consumer group"),
        },
    ),
    "message": CommandGroup(
        "Messages: find, follow and count them; into files and back.",
        {
            "get": CommandRef("message.commands", "get", "Show one message by id or place"),
            "query": CommandRef(
                "message.lookup_commands", "query", "Find all messages with a key or a tag"
            ),
            "search": CommandRef(
                "message.search.command", "search", "Find messages by what they hold"
            ),
            "trace": CommandRef(
                "message.lookup_commands", "trace", "Show what clients noted of a message"
            ),
            "life": CommandRef("message.lookup_commands", "life", "Show what became of a message"),
            "export": CommandRef("message.exchange.commands", "export", "Write messages to a file"),
            "import": CommandRef(
                "message.exchange.commands", "import_messages", "Store a file's messages again"
            ),
            "stats": CommandRef(
                "message.stats_command", "stats", "Count messages: sizes, tags, keys, hosts"
            ),
            "decode-id": CommandRef(
                "message.lookup_commands", "decode_id", "Show what a message id tells"
            ),
        },
    ),
    "dlq": CommandGroup(
        "Dead letters: what groups gave up; look, send again, mark as handled.",
        {
            "list": CommandRef(
                "dlq.commands", "list_dlqs", "List the groups that have dead letters"
            ),
            "browse": CommandRef("dlq.commands", "browse", "Show the dead letters of a group"),
            "show": CommandRef(
                "dlq.commands", "show", "Show one dead letter in full, with its life"
            ),
            "groups": CommandRef(
                "dlq.commands", "groups", "Count dead letters by reason, tag, key or hour"
            ),
            "redrive": CommandRef("dlq.change_commands", "redrive", "Send dead letters again"),
            "ack": CommandRef("dlq.change_commands", "ack", "Mark dead letters as handled"),
            "export": CommandRef("dlq.commands", "export", "Print dead letters as whole messages"),
        },
    ),
    "retry": CommandGroup(
        "Retries: what groups are to consume again, when, and why.",
        {
            "browse": CommandRef(
                "retry.commands", "browse", "Show what a group is to consume again"
            ),
            "show": CommandRef("retry.commands", "show", "Show every attempt of a message"),
            "agenda": CommandRef(
                "retry.commands", "agenda", "Show what is delivered when, and what is late"
            ),
            "now": CommandRef("retry.commands", "now", "Have waiting messages consumed again now"),
            "dead": CommandRef("retry.commands", "dead", "Make waiting messages dead letters now"),
        },
    ),
    "offset": CommandGroup(
        "Offsets: how far consumer groups are, queue by queue.",
        {
            "inspect": CommandRef(
                "offset.commands", "inspect", "Show where groups stand, with ages and messages"
            ),
            "history": CommandRef(
                "offset.commands", "history", "Show who has moved the progress of groups"
            ),
            "diff": CommandRef(
                "offset.diff.commands", "diff", "Compare two groups, files, stores or times"
            ),
            "export": CommandRef(
                "offset.diff.commands", "export", "Print offsets as CSV or JSON to keep"
            ),
            "list": CommandRef(
                "offset.commands", "list_offsets", "List what all groups have committed"
            ),
            "reset": CommandRef(
                "offset.move.commands", "reset", "Move progress: times, ends, messages, files"
            ),
            "undo": CommandRef("offset.move.commands", "undo", "Take back a change of progress"),
            "import": CommandRef(
                "offset.move.commands", "import_offsets", "Set progress to what a file says"
            ),
            "delete": CommandRef("offset.move.commands", "delete", "Forget the progress of groups"),
            "orphans": CommandRef(
                "offset.move.commands", "orphans", "List progress that belongs to nothing"
            ),
        },
    ),
    "lag": CommandGroup(
        "Lag: who is late, by how much, since when, and what is about to be lost.",
        {
            "show": CommandRef("lag.commands", "show", "Show how far groups are behind"),
            "report": CommandRef(
                "lag.report.command", "report", "Report on many stores, counted by Spark"
            ),
            "warmup": CommandRef("lag.report.command", "warmup", "Make Spark start quicker"),
            "histogram": CommandRef(
                "lag.backlog.commands", "histogram", "Show ages, sizes, tags of a backlog"
            ),
            "watch": CommandRef(
                "lag.watch.command", "watch", "Watch how far groups are behind, live"
            ),
            "check": CommandRef(
                "lag.check.command", "check", "Say whether groups are fine, for monitoring"
            ),
            "risk": CommandRef("lag.backlog.commands", "risk", "Show what will be deleted unread"),
        },
    ),
    "broker": CommandGroup(
        "Brokers: what a broker does by itself, without a daemon.",
        {
            "status": CommandRef(
                "broker.commands", "status", "Show who does it, and what waits for its time"
            ),
            "start": CommandRef(
                "broker.commands", "start", "Do it in the foreground: deliver, check, clean"
            ),
            "config": CommandRef(
                "broker.config_command", "config", "Show and change a store's settings"
            ),
        },
    ),
    "audit": CommandGroup(
        "Audit: who has changed what, when and why.",
        {
            "list": CommandRef(
                "audit.commands", "list_changes", "List all changes of progress and settings"
            ),
            "show": CommandRef("audit.commands", "show", "Show all that was noted of one change"),
        },
    ),
    "store": CommandGroup(
        "Stores: make one, look at it, check and mend it, copy it.",
        {
            "init": CommandRef("store.commands", "init", "Make an empty store"),
            "info": CommandRef("store.commands", "info", "Show what a store is and holds"),
            "du": CommandRef(
                "store.usage.commands", "du", "Show what fills the disk, and what is deleted next"
            ),
            "clean": CommandRef("store.usage.commands", "clean", "Delete files whose time is over"),
            "fsck": CommandRef("store.commands", "fsck", "Check everything against everything"),
            "repair": CommandRef(
                "store.repair.command", "repair", "Mend what the check finds, by a plan"
            ),
            "rebuild": CommandRef(
                "store.rebuild.command", "rebuild", "Make queues or the index anew"
            ),
            "recover-offsets": CommandRef(
                "store.recover.commands",
                "recover_offsets",
                "Bring back progress of groups that was lost",
            ),
            "recover-config": CommandRef(
                "store.recover.commands",
                "recover_config",
                "Put half-written settings together again",
            ),
            "dump": CommandRef(
                "store.dump.command", "dump", "Decode a file of the store, or a log position"
            ),
            "tail": CommandRef("store.tail.command", "tail", "Follow the log as it grows"),
            "diff": CommandRef("store.snapshot.diff_command", "diff", "Compare two stores"),
            "snapshot": CommandRef(
                "store.snapshot.commands", "snapshot", "Copy a store while it runs"
            ),
            "restore": CommandRef(
                "store.snapshot.commands", "restore", "Make a store of a snapshot"
            ),
            "carve": CommandRef(
                "store.carve.command", "carve", "Make a store of a part of this one"
            ),
        },
    ),
    "config": CommandGroup(
        "Settings of this program: what holds, who says so, changing it.",
        {
            "show": CommandRef("config.commands", "show", "Show all settings as they hold now"),
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
        "help.explain_command", "explain", "Explain a word, a code, a state, a setting"
    ),
    "cheat": CommandRef("help.cheat_command", "cheat", "Show lines to copy, sheet by sheet"),
    "man": CommandRef("help.man_command", "man", "Show the manual page of a command"),
    "doctor": CommandRef(
        "help.doctor_command", "doctor", "Look whether everything that is needed is there"
    ),
    "mqadmin": CommandRef(
        "help.mqadmin.command", "mqadmin", "Run a command of mqadmin 4.9 in its new form"
    ),
    "completion": CommandRef(
        "help.completion_command", "completion", "Print the completion script of a shell"
    ),
    "version": CommandRef(
        "help.version_command", "version", "Show the versions of rmqctl and of what it runs on"
    ),
}

SECTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "Every day": ("produce", "consume", "resetOffsetByTime"),
    "Look and manage": (
        "topic",
        "group",
        "message",
        "retry",
        "dlq",
        "offset",
        "lag",
        "broker",
        "audit",
        "store",
    ),
    "The program": (
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
"""How the root's help groups the commands."""
