"""The commands: name, where each lives, and its line in the help.

Nothing here imports a command: the root's ``--help`` reads this table alone, and running a command
imports its own module only. To add one: write the function in ``commands/<noun>.py``, add its
line here, run ``make completions``.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple


class Leaf(NamedTuple):
    """A command that does something: a function of a module in :mod:`rmqctl.cli`."""

    module: str
    function: str
    help: str


class Noun(NamedTuple):
    """A thing that can be looked at and worked on; its verbs are the commands."""

    help: str
    verbs: Mapping[str, Leaf]


TREE: Final[Mapping[str, Leaf | Noun]] = {
    "produce": Leaf("produce", "produce", "Send messages: lines, files, JSON"),
    "consume": Leaf("consume", "consume", "Read messages: all, some, or as a group"),
    "resetOffsetByTime": Leaf(
        "reset_by_time", "reset_offset_by_time", "Move a group to a time, as mqadmin does"
    ),
    "topic": Noun(
        "Topics: what is sent to and read from, divided into queues.",
        {
            "list": Leaf("topic", "list_topics", "List all topics"),
            "describe": Leaf("topic", "describe", "Show everything about topics"),
            "queues": Leaf("topic", "queues", "Show queues with their offsets and times"),
            "create": Leaf("topic_changes", "create", "Create topics"),
            "alter": Leaf("topic_changes", "alter", "Change the settings of topics"),
            "delete": Leaf("topic_changes", "delete", "Delete a topic"),
            "stats": Leaf("topic_figures", "stats", "Show sizes and rates, by queue or hour"),
            "usage": Leaf("topic_figures", "usage", "Show the bytes that topics take"),
        },
    ),
    "group": Noun(
        "Groups: consumers that share their progress, and who is in them.",
        {
            "list": Leaf("group", "list_groups", "List all consumer groups"),
            "describe": Leaf("group", "describe", "Show everything about groups"),
            "clients": Leaf("group", "clients", "Show live members and their queues"),
            "create": Leaf("group_changes", "create", "Create consumer groups"),
            "alter": Leaf("group_changes", "alter", "Change the settings of groups"),
            "delete": Leaf("group_changes", "delete", "Delete a consumer group"),
        },
    ),
    "message": Noun(
        "Messages: find, follow and count them; into files and back.",
        {
            "get": Leaf("message", "get", "Show one message by id or place"),
            "query": Leaf("message_lookup", "query", "Find all messages with a key or a tag"),
            "search": Leaf("message_search", "search", "Find messages by what they hold"),
            "trace": Leaf("message_lookup", "trace", "Show what clients noted of a message"),
            "life": Leaf("message_lookup", "life", "Show what became of a message"),
            "export": Leaf("message_exchange", "export", "Write messages to a file"),
            "import": Leaf("message_exchange", "import_messages", "Store a file's messages again"),
            "stats": Leaf("message_stats", "stats", "Count messages: sizes, tags, keys, hosts"),
            "decode-id": Leaf("message_lookup", "decode_id", "Show what a message id tells"),
        },
    ),
    "dlq": Noun(
        "Dead letters: what groups gave up; look, send again, mark as handled.",
        {
            "list": Leaf("dlq", "list_dlqs", "List the groups that have dead letters"),
            "browse": Leaf("dlq", "browse", "Show the dead letters of a group"),
            "show": Leaf("dlq", "show", "Show one dead letter in full, with its life"),
            "groups": Leaf("dlq", "groups", "Count dead letters by reason, tag, key or hour"),
            "redrive": Leaf("dlq_changes", "redrive", "Send dead letters again"),
            "ack": Leaf("dlq_changes", "ack", "Mark dead letters as handled"),
            "export": Leaf("dlq", "export", "Print dead letters as whole messages"),
        },
    ),
    "retry": Noun(
        "Retries: what groups are to consume again, when, and why.",
        {
            "browse": Leaf("retry", "browse", "Show what a group is to consume again"),
            "show": Leaf("retry", "show", "Show every attempt of a message"),
            "agenda": Leaf("retry", "agenda", "Show what is delivered when, and what is late"),
            "now": Leaf("retry", "now", "Have waiting messages consumed again now"),
            "dead": Leaf("retry", "dead", "Make waiting messages dead letters now"),
        },
    ),
    "offset": Noun(
        "Offsets: how far consumer groups are, queue by queue.",
        {
            "inspect": Leaf("offset", "inspect", "Show where groups stand, with ages and messages"),
            "history": Leaf("offset", "history", "Show who has moved the progress of groups"),
            "diff": Leaf("offset_files", "diff", "Compare two groups, files, stores or times"),
            "export": Leaf("offset_files", "export", "Print offsets as CSV or JSON to keep"),
            "list": Leaf("offset", "list_offsets", "List what all groups have committed"),
            "reset": Leaf("offset_moves", "reset", "Move progress: times, ends, messages, files"),
            "undo": Leaf("offset_moves", "undo", "Take back a change of progress"),
            "import": Leaf("offset_moves", "import_offsets", "Set progress to what a file says"),
            "delete": Leaf("offset_moves", "delete", "Forget the progress of groups"),
            "orphans": Leaf("offset_moves", "orphans", "List progress that belongs to nothing"),
        },
    ),
    "lag": Noun(
        "Lag: who is late, by how much, since when, and what is about to be lost.",
        {
            "show": Leaf("lag", "show", "Show how far groups are behind"),
            "report": Leaf("lag_report", "report", "Report on many stores, counted by Spark"),
            "warmup": Leaf("lag_report", "warmup", "Make Spark start quicker"),
            "histogram": Leaf("lag_backlog", "histogram", "Show ages, sizes, tags of a backlog"),
            "watch": Leaf("lag_watch", "watch", "Watch how far groups are behind, live"),
            "check": Leaf("lag_check", "check", "Say whether groups are fine, for monitoring"),
            "risk": Leaf("lag_backlog", "risk", "Show what will be deleted unread"),
        },
    ),
    "broker": Noun(
        "Brokers: what a broker does by itself, without a daemon.",
        {
            "status": Leaf("broker", "status", "Show who does it, and what waits for its time"),
            "start": Leaf("broker", "start", "Do it in the foreground: deliver, check, clean"),
            "config": Leaf("broker_config", "config", "Show and change a store's settings"),
        },
    ),
    "audit": Noun(
        "Audit: who has changed what, when and why.",
        {
            "list": Leaf("audit", "list_changes", "List all changes of progress and settings"),
            "show": Leaf("audit", "show", "Show all that was noted of one change"),
        },
    ),
    "store": Noun(
        "Stores: make one, look at it, check and mend it, copy it.",
        {
            "init": Leaf("store", "init", "Make an empty store"),
            "info": Leaf("store", "info", "Show what a store is and holds"),
            "du": Leaf("store_usage", "du", "Show what fills the disk, and what is deleted next"),
            "clean": Leaf("store_usage", "clean", "Delete files whose time is over"),
            "fsck": Leaf("store", "fsck", "Check everything against everything"),
            "repair": Leaf("store_repair", "repair", "Mend what the check finds, by a plan"),
            "rebuild": Leaf("store_rebuild", "rebuild", "Make queues or the index anew"),
            "recover-offsets": Leaf(
                "store_recover", "recover_offsets", "Bring back progress of groups that was lost"
            ),
            "recover-config": Leaf(
                "store_recover", "recover_config", "Put half-written settings together again"
            ),
            "dump": Leaf("dump", "dump", "Decode a file of the store, or a log position"),
            "tail": Leaf("store_tail", "tail", "Follow the log as it grows"),
            "diff": Leaf("store_diff", "diff", "Compare two stores"),
            "snapshot": Leaf("store_snapshot", "snapshot", "Copy a store while it runs"),
            "restore": Leaf("store_snapshot", "restore", "Make a store of a snapshot"),
            "carve": Leaf("store_carve", "carve", "Make a store of a part of this one"),
        },
    ),
    "config": Noun(
        "Settings of this program: what holds, who says so, changing it.",
        {
            "show": Leaf("config", "show", "Show all settings as they hold now"),
            "get": Leaf("config", "get", "Print the value of one setting"),
            "set": Leaf("config", "set_setting", "Set a setting in a file"),
            "path": Leaf("config", "path", "Show the settings files"),
        },
    ),
    "context": Noun(
        "Contexts: named sets of settings, such as one for each store.",
        {
            "list": Leaf("context", "list_contexts", "List all contexts"),
            "use": Leaf("context", "use", "Use a context from now on"),
            "show": Leaf("context", "show", "Show all settings of a context"),
            "add": Leaf("context", "add", "Add a context"),
            "rm": Leaf("context", "remove", "Remove a context"),
        },
    ),
    "explain": Leaf("explain", "explain", "Explain a word, a code, a state, a setting"),
    "cheat": Leaf("cheat", "cheat", "Show lines to copy, sheet by sheet"),
    "man": Leaf("man", "man", "Show the manual page of a command"),
    "doctor": Leaf("doctor", "doctor", "Look whether everything that is needed is there"),
    "mqadmin": Leaf("mqadmin", "mqadmin", "Run a command of mqadmin 4.9 in its new form"),
    "completion": Leaf("completion", "completion", "Print the completion script of a shell"),
    "version": Leaf("version", "version", "Show the versions of rmqctl and of what it runs on"),
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
