"""Untrusted YAML: plain data of bounded size, aliases included."""

from __future__ import annotations

from typing import Any

import yaml

MAX_SIZE = 1_000_000
"""Characters in a text, and items once every alias is written out."""

MAX_DIGITS = 1000
"""Characters of a number: one in base 60 (1:1:1:...) takes time that is quadratic in its length."""

NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


def load(text: str) -> Any:
    """Return the data in a YAML text; raise a ValueError that says why it is refused.

    >>> load("{seeds: 3, methods: [erm, ft]}")
    {'seeds': 3, 'methods': ['erm', 'ft']}
    """
    if len(text) > MAX_SIZE:
        raise ValueError(f"more than {MAX_SIZE:,} characters")
    loader = None
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        if _count_items(node, {}) > MAX_SIZE:
            raise ValueError(f"aliases that stand for more than {MAX_SIZE:,} items")
        return loader.construct_document(node)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError:
        raise
    except Exception as error:  # an invalid value of a tag such as !!bool may raise anything
        raise ValueError(" ".join(str(error).split()) or type(error).__name__) from error
    finally:
        if loader is not None:
            loader.dispose()


def _count_items(node: yaml.Node, counted: dict[yaml.Node, int]) -> int:
    """Count the scalars of a node as if each alias were written out."""
    if node in counted:
        if not counted[node]:
            raise ValueError("an alias that contains itself")
        return counted[node]
    counted[node] = 0
    if isinstance(node, yaml.ScalarNode):
        node.value.encode()  # refuses half of a surrogate pair
        if node.tag in NUMBERS and len(node.value) > MAX_DIGITS:
            raise ValueError(f"a number of {len(node.value):,} characters")
        counted[node] = 1
    else:
        pairs = isinstance(node, yaml.MappingNode)
        inside = [part for pair in node.value for part in pair] if pairs else node.value
        counted[node] = 1 + sum(_count_items(part, counted) for part in inside)
    return counted[node]
