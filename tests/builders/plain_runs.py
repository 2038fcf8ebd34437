"""The longest run that two sequences share, by a suffix automaton in plain Python: an oracle."""

from collections.abc import Hashable, Sequence


def longest_run(left: Sequence[Hashable], right: Sequence[Hashable]) -> int:
    """The length of the longest common substring (Blumer and others 1985)."""
    following: list[dict[Hashable, int]] = [{}]
    links, lengths, last = [-1], [0], 0

    # Build the automaton of the left sequence token by token.
    for token in left:
        added, state = len(links), last
        following.append({})
        lengths.append(lengths[last] + 1)
        links.append(0)
        while state >= 0 and token not in following[state]:
            following[state][token] = added
            state = links[state]
        if state >= 0:
            target = following[state][token]
            if lengths[target] == lengths[state] + 1:
                links[added] = target
            else:
                clone = len(links)
                following.append(dict(following[target]))
                lengths.append(lengths[state] + 1)
                links.append(links[target])
                while state >= 0 and following[state].get(token) == target:
                    following[state][token] = clone
                    state = links[state]
                links[target] = links[added] = clone
        last = added

    # Walk through the automaton along the right sequence.
    state = size = longest = 0
    for token in right:
        while state and token not in following[state]:
            state = links[state]
            size = lengths[state]
        if token in following[state]:
            state, size = following[state][token], size + 1
        longest = max(longest, size)
    return longest
