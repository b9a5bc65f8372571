"""YAML files of users: tables of settings, lists of topics."""

from typing import Any, Final

import yaml

_MOST_REPEATED: Final = 1 << 20
"""Characters that the aliases of a text may repeat: those of aliases of aliases multiply."""


class _EachOnce(yaml.SafeLoader):
    """PyYAML's loader for plain values; a duplicate key of a table is an error, and so is an alias
    (``*name``) that is part of its own value, and aliases that repeat very much."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._repeated = 0
        self._sizes: dict[yaml.Node, int] = {}

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        is_alias = self.check_event(yaml.AliasEvent)
        node: yaml.Node | None = super().compose_node(parent, index)
        if node is None:
            return None
        if not is_alias:
            self._sizes[node] = self._size_of(node)
        elif node not in self._sizes:
            what = "an alias is part of its own value"
            raise yaml.composer.ComposerError(None, None, what, node.start_mark)
        else:
            self._repeated += self._sizes[node]
            if self._repeated > _MOST_REPEATED:
                what = f"its aliases repeat more than {_MOST_REPEATED} characters"
                raise yaml.composer.ComposerError(None, None, what, node.start_mark)
        return node

    def _size_of(self, node: yaml.Node) -> int:
        """Characters of a value whose parts are known, with all that its aliases repeat."""
        if isinstance(node, yaml.ScalarNode):
            return len(node.value) + 1
        if isinstance(node, yaml.MappingNode):
            return 1 + sum(self._sizes[key] + self._sizes[value] for key, value in node.value)
        return 1 + sum(self._sizes[item] for item in node.value)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        if isinstance(node, yaml.MappingNode):
            seen = set()
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode):  # of two tags: 1 and "1" are two keys
                    name = (key.tag, key.value)
                    if name in seen:
                        raise yaml.constructor.ConstructorError(
                            None, None, f"it has the key {key.value[:100]!r} twice", key.start_mark
                        )
                    seen.add(name)
        return super().construct_mapping(node, deep)


def parse_yaml(text: str) -> Any:
    """The value of a YAML text. ValueError if it is malformed, too deep, or has a duplicate key."""
    try:
        return yaml.load(text, _EachOnce)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
    except RecursionError:
        raise ValueError("it is nested too deep") from None
