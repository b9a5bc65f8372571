"""YAML files of users: tables of settings, lists of topics."""

from typing import Any

import yaml


class _EachOnce(yaml.SafeLoader):
    """PyYAML's loader for plain values; a duplicate key of a table is an error."""

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
