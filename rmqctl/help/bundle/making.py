"""Making the bundle of a call."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rmqctl.cli.paths import expanded
from rmqctl.errors import Refused

from .archive import Bundle
from .contents import answers, documents_of, environment, file_list, unopened
from .pseudonyms import Pseudonyms

if TYPE_CHECKING:
    from rmqctl.cli.context import Cli


def make_bundle(
    cli: "Cli",
    target: Path,
    version: Any,
    checks: Sequence[Any],
    settings: Sequence[Any],
    *,
    redact: bool,
) -> None:
    """Write the archive of a call, and say what is in it.

    ``version``, ``checks`` and ``settings`` are rows of the commands of these names. Refused (7)
    for a target that exists or lies in the store.
    """
    root = cli.store.path
    check_target(target, root)
    names = Pseudonyms(redact=redact)
    names.place(str(root), "<store>")
    names.place(str(root.resolve()), "<store>")
    names.place(str(expanded("~")), "~")
    bundle = Bundle(names.sentence, redacted=redact)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # damage is among the findings
        if root.is_dir():
            _add_store(root, bundle, names)
    for part in environment(version, checks, settings, names):
        bundle.add(part)
    size = bundle.write(target)
    _tell(cli, bundle, target, size, redact=redact)


def check_target(target: Path, root: Path) -> None:
    """Refuse a target that exists, or that lies in the store: nothing there is changed."""
    if target.exists() or target.is_symlink():
        raise Refused(f"{target} exists already and a bundle replaces nothing; name another file")
    if target.resolve().is_relative_to(root.resolve()):
        raise Refused(f"{target} lies in the store, where a bundle changes nothing; name another")


def _add_store(root: Path, bundle: Bundle, names: Pseudonyms) -> None:
    """Add what is known of a store; names are learned from its files before sentences are shown."""
    from broker.embedded.broker import EmbeddedBroker

    bundle.add(file_list(root, names))
    for part in documents_of(root, names):
        bundle.add(part)
    try:
        broker = EmbeddedBroker.open(root, read_only=True)
    except Exception as error:  # noqa: BLE001 - what cannot be opened is worth a report
        bundle.add(unopened(error))
        return
    with broker:
        for part in answers(broker, names):
            bundle.add(part)


def _tell(cli: "Cli", bundle: Bundle, target: Path, size: int, *, redact: bool) -> None:
    cli.say(f"wrote {target}: {len(bundle.manifest)} files, {size:,} bytes")
    if bundle.cut:
        cli.say(f"too long, so cut: {', '.join(bundle.cut)}")
    if bundle.missing:
        cli.say(f"could not be read, or not to the end: {', '.join(bundle.missing)}")
    if redact:
        cli.say(
            "names of topics, groups, hosts and users are replaced; it has no message, key or "
            "property. Look before you send it: manifest.json says what each file is"
        )
    else:
        cli.warn("names of topics, groups, hosts and users are in it; it has no message")
