"""Keyed BLAKE2b digests (RFC 7693) of the features of documents, compiled by numba; see `plain.digests`.

hashlib does not release the interpreter's lock for short data such as the features of a story, so other threads would
have to wait.
"""

import numpy as np
from numba import uint64, uintp

from nearsim_db.similarity.jit import compiled

_DIGEST_BYTES = 16
_BLOCK_WORDS = np.uintp(16)
_BLOCK_BYTES = np.uint64(128)
_ROUNDS = np.uintp(12)
_INITIAL = np.array(
    [
        *(0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1),
        *(0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179),
    ],
    np.uint64,
)
# The order in which a round mixes the words of a block; rounds 10 and 11 repeat the first two.
_ORDER = np.array(
    [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
        [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
        [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
        [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
        [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
        [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
        [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
        [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
        [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    ],
    np.uint8,
)


def digests(words, offsets, key):
    digest_words = np.empty((len(offsets) - 1, 2), np.uint64)
    key_block = np.zeros(int(_BLOCK_WORDS), np.uint64)
    key_block.view(np.uint8)[: len(key)] = np.frombuffer(key, np.uint8)
    parameters = np.uint64(0x01010000 | len(key) << 8 | _DIGEST_BYTES)
    _digests(words, offsets, key_block, parameters, digest_words)
    return digest_words.reshape(-1).view("V16")


@compiled
def _digests(words, offsets, key_block, parameters, digest_words):
    # The state after the block of the key is the same for all documents.
    keyed, state, block = np.empty(8, np.uint64), np.empty(8, np.uint64), np.empty(16, np.uint64)
    _begin(keyed, parameters)
    _compress(keyed, key_block, _BLOCK_BYTES, uint64(0))

    for document in range(len(offsets) - 1):
        begin, end = uintp(offsets[document]), uintp(offsets[document + 1])
        if begin == end:
            # Without words, the block of the key is the last block.
            _begin(state, parameters)
            _compress(state, key_block, _BLOCK_BYTES, ~uint64(0))
        else:
            # A slice assignment would make numba compile its error for unequal lengths, which takes seconds.
            for place in range(uintp(8)):
                state[place] = keyed[place]
            for at in range(begin, end, _BLOCK_WORDS):
                count = min(_BLOCK_WORDS, end - at)
                for place in range(count):
                    block[place] = words[at + place]
                for place in range(count, _BLOCK_WORDS):
                    block[place] = uint64(0)
                length = _BLOCK_BYTES + uint64(at + count - begin) * uint64(8)
                _compress(state, block, length, ~uint64(0) if at + count == end else uint64(0))
        digest_words[document, 0], digest_words[document, 1] = state[0], state[1]


@compiled
def _begin(state, parameters):
    for place in range(uintp(8)):
        state[place] = _INITIAL[place]
    state[0] ^= parameters


@compiled
def _rotate_right(value, bits):
    return (value >> uint64(bits)) | (value << uint64(64 - bits))


@compiled
def _mix(a, b, c, d, first, second):
    a = a + b + first
    d = _rotate_right(d ^ a, 32)
    c = c + d
    b = _rotate_right(b ^ c, 24)
    a = a + b + second
    d = _rotate_right(d ^ a, 16)
    c = c + d
    b = _rotate_right(b ^ c, 63)
    return a, b, c, d


@compiled
def _compress(state, block, length, is_last):
    """Add a block to the state.

    `length` is the number of bytes up to the end of the block. `is_last` has all bits set for the last block, and is 0
    for the others.
    """
    v0, v1, v2, v3 = state[0], state[1], state[2], state[3]
    v4, v5, v6, v7 = state[4], state[5], state[6], state[7]
    v8, v9, v10, v11 = _INITIAL[0], _INITIAL[1], _INITIAL[2], _INITIAL[3]
    v12, v13 = _INITIAL[4] ^ length, _INITIAL[5]
    v14, v15 = _INITIAL[6] ^ is_last, _INITIAL[7]

    for at in range(_ROUNDS):
        order = _ORDER[at]
        v0, v4, v8, v12 = _mix(v0, v4, v8, v12, block[order[0]], block[order[1]])
        v1, v5, v9, v13 = _mix(v1, v5, v9, v13, block[order[2]], block[order[3]])
        v2, v6, v10, v14 = _mix(v2, v6, v10, v14, block[order[4]], block[order[5]])
        v3, v7, v11, v15 = _mix(v3, v7, v11, v15, block[order[6]], block[order[7]])
        v0, v5, v10, v15 = _mix(v0, v5, v10, v15, block[order[8]], block[order[9]])
        v1, v6, v11, v12 = _mix(v1, v6, v11, v12, block[order[10]], block[order[11]])
        v2, v7, v8, v13 = _mix(v2, v7, v8, v13, block[order[12]], block[order[13]])
        v3, v4, v9, v14 = _mix(v3, v4, v9, v14, block[order[14]], block[order[15]])

    state[0] ^= v0 ^ v8
    state[1] ^= v1 ^ v9
    state[2] ^= v2 ^ v10
    state[3] ^= v3 ^ v11
    state[4] ^= v4 ^ v12
    state[5] ^= v5 ^ v13
    state[6] ^= v6 ^ v14
    state[7] ^= v7 ^ v15
