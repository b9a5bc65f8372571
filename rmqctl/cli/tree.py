"""The commands: name, where each lives, and its line in the help.

Nothing here imports a command: the root's ``--help`` reads this table alone, and running a command
imports its own module only. To add one: write the function in ``<noun>/commands.py``, add its
line here, run ``make completions``.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple


class Leaf(NamedTuple):
    """A command that does something: a function of a module below ``rmqctl``."""

    module: str
    function: str
    help: str


class Noun(NamedTuple):
    """A thing that can be looked at and worked on; its verbs are the commands."""

    help: str
    verbs: Mapping[str, Leaf]


TREE: Final[Mapping[str, Leaf | Noun]] = {
    "produce": Leaf("produce.command", "produce", "Send messages: lines, files, JSON"),
    "consume": Leaf("consume.command", "consume", "Read messages: all, some, or as a group"),
    "resetOffsetByTime": Leaf(
        "offset.move.reset_by_time_command",
        "reset_offset_by_time",
        "Move a group to a time, as mqadmin does",
    ),
    "topic": Noun(
        "Topics: what is sent to and read from, divided into queues.",
        {
            "list": Leaf("topic.commands", "list_topics", "List all topics"),
            "describe": Leaf("topic.commands", "describe", "Show everything about topics"),
            "queues": Leaf("topic.commands", "queues", "Show queues with their offsets and times"),
            "create": Leaf("topic.change_commands", "create", "Create topics"),
            "alter": Leaf("topic.change_commands", "alter", "Change the settings of topics"),
            "delete": Leaf("topic.change_commands", "delete", "Delete a topic"),
            "stats": Leaf(
                "topic.figure_commands", "stats", "Show sizes and rates, by queue or hour"
            ),
            "usage": Leaf("topic.figure_commands", "usage", "Show the bytes that topics take"),
        },
    ),
    "group": Noun(
        "Groups: consumers that share their progress, and who is in them.",
        {
            "list": Leaf("group.commands", "list_groups", "List all consumer groups"),
            "describe": Leaf("group.commands", "describe", "Show everything about groups"),
            "clients": Leaf("group.commands", "clients", "Show live members and their queues"),
            "create": Leaf("group.change_commands", "create", "Create consumer groups"),
            "alter": Leaf("group.change_commands", "alter", "Change the settings of groups"),
            "delete": Leaf("group.change_commands", "delete", "Delete a consumer group"),
        },
    ),
    "message": Noun(
        "Messages: find, follow and count them; into files and back.",
        {
            "get": Leaf("message.commands", "get", "Show one message by id or place"),
            "query": Leaf(
                "message.lookup_commands", "query", "Find all messages with a key or a tag"
            ),
            "search": Leaf("message.search.command", "search", "Find messages by what they hold"),
            "trace": Leaf(
                "message.lookup_commands", "trace", "Show what clients noted of a message"
            ),
            "life": Leaf("message.lookup_commands", "life", "Show what became of a message"),
            "export": Leaf("message.exchange.commands", "export", "Write messages to a file"),
            "import": Leaf(
                "message.exchange.commands", "import_messages", "Store a file's messages again"
            ),
            "stats": Leaf(
                "message.stats_command", "stats", "Count messages: sizes, tags, keys, hosts"
            ),
            "decode-id": Leaf(
                "message.lookup_commands", "decode_id", "Show what a message id tells"
            ),
        },
    ),
    "dlq": Noun(
        "Dead letters: what groups gave up; look, send again, mark as handled.",
        {
            "list": Leaf("dlq.commands", "list_dlqs", "List the groups that have dead letters"),
            "browse": Leaf("dlq.commands", "browse", "Show the dead letters of a group"),
            "show": Leaf("dlq.commands", "show", "Show one dead letter in full, with its life"),
            "groups": Leaf(
                "dlq.commands", "groups", "Count dead letters by reason, tag, key or hour"
            ),
            "redrive": Leaf("dlq.change_commands", "redrive", "Send dead letters again"),
            "ack": Leaf("dlq.change_commands", "ack", "Mark dead letters as handled"),
            "export": Leaf("dlq.commands", "export", "Print dead letters as whole messages"),
        },
    ),
    "retry": Noun(
        "Retries: what groups are to consume again, when, and why.",
        {
            "browse": Leaf("retry.commands", "browse", "Show what a group is to consume again"),
            "show": Leaf("retry.commands", "show", "Show every attempt of a message"),
            "agenda": Leaf(
                "retry.commands", "agenda", "Show what is delivered when, and what is late"
            ),
            "now": Leaf("retry.commands", "now", "Have waiting messages consumed again now"),
            "dead": Leaf("retry.commands", "dead", "Make waiting messages dead letters now"),
        },
    ),
    "offset": Noun(
        "Offsets: how far consumer groups are, queue by queue.",
        {
            "inspect": Leaf(
                "offset.commands", "inspect", "Show where groups stand, with ages and messages"
            ),
            "history": Leaf(
                "offset.commands", "history", "Show who has moved the progress of groups"
            ),
            "diff": Leaf(
                "offset.diff.commands", "diff", "Compare two groups, files, stores or times"
            ),
            "export": Leaf(
                "offset.diff.commands", "export", "Print offsets as CSV or JSON to keep"
            ),
            "list": Leaf("offset.commands", "list_offsets", "List what all groups have committed"),
            "reset": Leaf(
                "offset.move.commands", "reset", "Move progress: times, ends, messages, files"
            ),
            "undo": Leaf("offset.move.commands", "undo", "Take back a change of progress"),
            "import": Leaf(
                "offset.move.commands", "import_offsets", "Set progress to what a file says"
            ),
            "delete": Leaf("offset.move.commands", "delete", "Forget the progress of groups"),
            "orphans": Leaf(
                "offset.move.commands", "orphans", "List progress that belongs to nothing"
            ),
        },
    ),
    "lag": Noun(
        "Lag: who is late, by how much, since when, and what is about to be lost.",
        {
            "show": Leaf("lag.commands", "show", "Show how far groups are behind"),
            "report": Leaf(
                "lag.report.command", "report", "Report on many stores, counted by Spark"
            ),
            "warmup": Leaf("lag.report.command", "warmup", "Make Spark start quicker"),
            "histogram": Leaf(
                "lag.backlog.commands", "histogram", "Show ages, sizes, tags of a backlog"
            ),
            "watch": Leaf("lag.watch.command", "watch", "Watch how far groups are behind, live"),
            "check": Leaf(
                "lag.check.command", "check", "Say whether groups are fine, for monitoring"
            ),
            "risk": Leaf("lag.backlog.commands", "risk", "Show what will be deleted unread"),
        },
    ),
    "broker": Noun(
        "Brokers: what a broker does by itself, without a daemon.",
        {
            "status": Leaf(
                "broker.commands", "status", "Show who does it, and what waits for its time"
            ),
            "start": Leaf(
                "broker.commands", "start", "Do it in the foreground: deliver, check, clean"
            ),
            "config": Leaf("broker.config_command", "config", "Show and change a store's settings"),
        },
    ),
    "audit": Noun(
        "Audit: who has changed what, when and why.",
        {
            "list": Leaf(
                "audit.commands", "list_changes", "List all changes of progress and settings"
            ),
            "show": Leaf("audit.commands", "show", "Show all that was noted of one change"),
        },
    ),
    "store": Noun(
        "Stores: make one, look at it, check and mend it, copy it.",
        {
            "init": Leaf("store.commands", "init", "Make an empty store"),
            "info": Leaf("store.commands", "info", "Show what a store is and holds"),
            "du": Leaf(
                "store.usage.commands", "du", "Show what fills the disk, and what is deleted next"
            ),
            "clean": Leaf("store.usage.commands", "clean", "Delete files whose time is over"),
            "fsck": Leaf("store.commands", "fsck", "Check everything against everything"),
            "repair": Leaf(
                "store.repair.command", "repair", "Mend what the check finds, by a plan"
            ),
            "rebuild": Leaf("store.rebuild.command", "rebuild", "Make queues or the index anew"),
            "recover-offsets": Leaf(
                "store.recover.commands",
                "recover_offsets",
                "Bring back progress of groups that was lost",
            ),
            "recover-config": Leaf(
                "store.recover.commands",
                "recover_config",
                "Put half-written settings together again",
            ),
            "dump": Leaf(
                "store.dump.command", "dump", "Decode a file of the store, or a log position"
            ),
            "tail": Leaf("store.tail.command", "tail", "Follow the log as it grows"),
            "diff": Leaf("store.snapshot.diff_command", "diff", "Compare two stores"),
            "snapshot": Leaf("store.snapshot.commands", "snapshot", "Copy a store while it runs"),
            "restore": Leaf("store.snapshot.commands", "restore", "Make a store of a snapshot"),
            "carve": Leaf("store.carve.command", "carve", "Make a store of a part of this one"),
        },
    ),
    "config": Noun(
        "Settings of this program: what holds, who says so, changing it.",
        {
            "show": Leaf("config.commands", "show", "Show all settings as they hold now"),
            "get": Leaf("config.commands", "get", "Print the value of one setting"),
            "set": Leaf("config.commands", "set_setting", "Set a setting in a file"),
            "path": Leaf("config.commands", "path", "Show the settings files"),
        },
    ),
    "context": Noun(
        "Contexts: named sets of settings, such as one for each store.",
        {
            "list": Leaf("config.context_commands", "list_contexts", "List all contexts"),
            "use": Leaf("config.context_commands", "use", "Use a context from now on"),
            "show": Leaf("config.context_commands", "show", "Show all settings of a context"),
            "add": Leaf("config.context_commands", "add", "Add a context"),
            "rm": Leaf("config.context_commands", "remove", "Remove a context"),
        },
    ),
    "explain": Leaf(
        "help.explain_command", "explain", "Explain a word, a code, a state, a setting"
    ),
    "cheat": Leaf("help.cheat_command", "cheat", "Show lines to copy, sheet by sheet"),
    "man": Leaf("help.man_command", "man", "Show the manual page of a command"),
    "doctor": Leaf(
        "help.doctor_command", "doctor", "Look whether everything that is needed is there"
    ),
    "mqadmin": Leaf(
        "help.mqadmin.command", "mqadmin", "Run a command of mqadmin 4.9 in its new form"
    ),
    "completion": Leaf(
        "help.completion_command", "completion", "Print the completion script of a shell"
    ),
    "version": Leaf(
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
