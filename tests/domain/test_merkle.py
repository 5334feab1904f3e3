import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.errors import CheckpointCorruptError, ChecksumMismatchError, InvalidStateError
from holdfast.domain.merkle import (
    EMPTY_ROOT,
    SIZE_MAX,
    Frontier,
    Node,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    node_hash,
    range_nodes,
    root_of,
    tree_root,
    verify_consistency,
    verify_inclusion,
)
from tests.trails import vectors

PROOFS = vectors("merkle_proofs.json")
TREE = vectors("merkle_tree.json")
ARGON = vectors("argon2020.json")
LEAVES = [leaf_hash(bytes.fromhex(leaf)) for leaf in TREE["leaves"]]
ROOTS = [bytes.fromhex(root) for root in TREE["roots"]]


def from64(text):
    return base64.b64decode(text)


def naive_root(leaves):
    """Compute MTH as section 2.1 of RFC 6962 writes it."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    k = naive_split(len(leaves))
    return hashlib.sha256(b"\x01" + naive_root(leaves[:k]) + naive_root(leaves[k:])).digest()


def naive_split(n):
    k = 1
    while k * 2 < n:
        k *= 2
    return k


def naive_path(m, leaves):
    """Compute PATH as section 2.1.1 of RFC 6962 writes it."""
    if len(leaves) <= 1:
        return []
    k = naive_split(len(leaves))
    if m < k:
        return [*naive_path(m, leaves[:k]), naive_root(leaves[k:])]
    return [*naive_path(m - k, leaves[k:]), naive_root(leaves[:k])]


def naive_subproof(m, leaves, is_known):
    """Compute SUBPROOF as section 2.1.2 of RFC 6962 writes it."""
    if m == len(leaves):
        return [] if is_known else [naive_root(leaves)]
    k = naive_split(len(leaves))
    if m <= k:
        return [*naive_subproof(m, leaves[:k], is_known), naive_root(leaves[k:])]
    return [*naive_subproof(m - k, leaves[k:], False), naive_root(leaves[:k])]


def leaves_of(size):
    return [leaf_hash(str(number).encode()) for number in range(size)]


def reader(leaves):
    return lambda nodes: [
        naive_root(leaves[node.index << node.level : (node.index + 1) << node.level]) for node in nodes
    ]


@pytest.mark.parametrize("case", PROOFS["inclusion"], ids=lambda case: case["case"])
def test_the_published_proofs_of_inclusion_are_judged_as_published(case):
    arguments = (
        from64(case["leafHash"]),
        case["leafIdx"],
        case["treeSize"],
        [from64(found) for found in case["proof"]],
        from64(case["root"]),
    )
    if case["wantErr"]:
        with pytest.raises(CheckpointCorruptError):
            verify_inclusion(*arguments)
    else:
        verify_inclusion(*arguments)


@pytest.mark.parametrize("case", PROOFS["consistency"], ids=lambda case: case["case"])
def test_the_published_proofs_of_consistency_are_judged_as_published(case):
    arguments = (
        case["size1"],
        from64(case["root1"]),
        case["size2"],
        from64(case["root2"]),
        [from64(found) for found in case["proof"]],
    )
    if case["wantErr"]:
        with pytest.raises(CheckpointCorruptError):
            verify_consistency(*arguments)
    else:
        verify_consistency(*arguments)


def test_there_are_as_many_published_proofs_as_there_should_be():
    everything = PROOFS["inclusion"] + PROOFS["consistency"]
    assert len(everything) == 196
    assert sum(not case["wantErr"] for case in everything) == 12


@pytest.mark.parametrize("size", range(9))
def test_the_published_roots_come_out_in_every_way_there_is(size):
    frontier = Frontier()
    frontier.extend(LEAVES[:size])
    assert frontier.root() == ROOTS[size]
    assert root_of(LEAVES[:size]) == ROOTS[size]
    assert tree_root(size, reader(LEAVES)) == ROOTS[size]


def test_the_published_hashes_of_nodes_come_out():
    row = LEAVES
    for level in TREE["nodes"]:
        assert [found.hex() for found in row] == level
        row = [node_hash(row[at], row[at + 1]) for at in range(0, len(row) - 1, 2)]


def test_proofs_of_a_real_log_with_a_thousand_million_certificates_are_right():
    root, size = from64(ARGON["root"]), ARGON["size"]
    leaf = leaf_hash(from64(ARGON["leaf"]))
    verify_inclusion(leaf, ARGON["index"], size, [from64(found) for found in ARGON["inclusion"]], root)
    proof = [from64(found) for found in ARGON["consistency"]]
    verify_consistency(ARGON["old_size"], from64(ARGON["old_root"]), size, root, proof)
    with pytest.raises(ChecksumMismatchError):
        verify_consistency(ARGON["old_size"], root, size, root, proof)


@pytest.mark.parametrize("size", range(1, 34))
def test_every_proof_of_a_small_tree_is_the_one_of_the_rfc_and_holds(size):
    leaves = leaves_of(size)
    root = naive_root(leaves)
    for index in range(size):
        proof = inclusion_proof(index, size, reader(leaves))
        assert list(proof) == naive_path(index, leaves)
        verify_inclusion(leaves[index], index, size, proof, root)
    for old in range(1, size + 1):
        proof = consistency_proof(old, size, reader(leaves))
        assert list(proof) == naive_subproof(old, leaves, True)
        verify_consistency(old, naive_root(leaves[:old]), size, root, proof)


@given(st.data(), st.integers(1, 400))
def test_no_proof_of_inclusion_holds_for_anything_else(data, size):
    leaves = leaves_of(size)
    root = naive_root(leaves)
    index = data.draw(st.integers(0, size - 1))
    proof = list(inclusion_proof(index, size, reader(leaves)))
    verify_inclusion(leaves[index], index, size, proof, root)
    other = (index + data.draw(st.integers(0, size - 1))) % size
    if other != index:
        with pytest.raises(CheckpointCorruptError):
            verify_inclusion(leaves[index], other, size, proof, root)
        with pytest.raises(CheckpointCorruptError):
            verify_inclusion(leaves[other], index, size, proof, root)
    if proof:
        at = data.draw(st.integers(0, len(proof) - 1))
        flipped = bytes([proof[at][0] ^ data.draw(st.sampled_from([1, 2, 4, 128]))]) + proof[at][1:]
        for wrong in ([*proof[:at], flipped, *proof[at + 1 :]], proof[:-1], proof[1:], [*proof, proof[at]]):
            with pytest.raises(CheckpointCorruptError):
                verify_inclusion(leaves[index], index, size, wrong, root)


@given(st.data(), st.integers(2, 400))
def test_no_proof_of_consistency_holds_for_a_tree_that_was_changed(data, size):
    leaves = leaves_of(size)
    old = data.draw(st.integers(1, size - 1))
    proof = list(consistency_proof(old, size, reader(leaves)))
    root1, root2 = naive_root(leaves[:old]), naive_root(leaves)
    verify_consistency(old, root1, size, root2, proof)
    changed = data.draw(st.integers(0, old - 1))
    forged = [*leaves[:changed], leaf_hash(b"forged"), *leaves[changed + 1 :]]
    forged_proof = consistency_proof(old, size, reader(forged))
    with pytest.raises(CheckpointCorruptError):
        verify_consistency(old, root1, size, naive_root(forged), forged_proof)
    with pytest.raises(CheckpointCorruptError):
        verify_consistency(old, root1, size, naive_root(forged), proof)
    at = data.draw(st.integers(0, len(proof) - 1))
    flipped = bytes([proof[at][0] ^ 16]) + proof[at][1:]
    for wrong in ([*proof[:at], flipped, *proof[at + 1 :]], proof[:-1], [*proof, proof[at]]):
        with pytest.raises(CheckpointCorruptError):
            verify_consistency(old, root1, size, root2, wrong)


@given(st.lists(st.integers(0, 40), max_size=12))
def test_a_frontier_has_the_right_root_however_leaves_come(batches):
    leaves = leaves_of(sum(batches))
    frontier = Frontier()
    for count in batches:
        frontier.extend(leaves[frontier.size : frontier.size + count])
        assert frontier.root() == naive_root(leaves[: frontier.size])
    again = Frontier(frontier.size, frontier.peaks)
    again.append(leaf_hash(b"more"))
    assert frontier.size == len(leaves)
    assert again.root() == naive_root([*leaves, leaf_hash(b"more")])


@given(st.integers(0, 6), st.integers(0, 5))
def test_a_frontier_takes_whole_subtrees(level, more):
    leaves = leaves_of((1 << level) * 3 + more)
    frontier = Frontier()
    for at in range(3):
        frontier.append(naive_root(leaves[at << level : (at + 1) << level]), level=level)
    copy = frontier.copy()
    copy.extend(leaves[3 << level :])
    assert copy.root() == naive_root(leaves)
    assert frontier.size == 3 << level


def test_a_subtree_goes_only_where_it_fits():
    frontier = Frontier(1, [leaf_hash(b"")])
    with pytest.raises(InvalidStateError, match="no subtree of level 1 can follow 1 leaves"):
        frontier.append(leaf_hash(b""), level=1)


NO_PEAKS = [(1, []), (2, [EMPTY_ROOT] * 2), (1, [b"short"]), (-1, [EMPTY_ROOT])]


@pytest.mark.parametrize(("size", "peaks"), NO_PEAKS)
def test_a_frontier_refuses_peaks_that_are_not_those_of_its_size(size, peaks):
    with pytest.raises(CheckpointCorruptError, match="peaks"):
        Frontier(size, peaks)


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_the_nodes_of_a_range_cover_it_from_left_to_right(first, length):
    at = first
    for node in range_nodes(first, first + length):
        assert node.index << node.level == at
        at += 1 << node.level
    assert at == first + length


def test_a_proof_is_about_leaves_that_are_there():
    with pytest.raises(InvalidStateError, match="no leaf 3"):
        inclusion_proof(3, 3, reader(leaves_of(3)))
    for old, new in ((0, 3), (4, 3)):
        with pytest.raises(InvalidStateError, match="provable"):
            consistency_proof(old, new, reader(leaves_of(3)))
    with pytest.raises(CheckpointCorruptError):
        verify_inclusion(EMPTY_ROOT, 0, SIZE_MAX + 1, [], EMPTY_ROOT)


def test_a_store_that_gives_too_few_or_wrong_hashes_is_found_out():
    for broken in (lambda nodes: [], lambda nodes: [b"short"] * len(nodes)):
        with pytest.raises(CheckpointCorruptError, match="did not give a hash"):
            tree_root(5, broken)


def test_the_tree_of_nothing_has_a_root_of_its_own():
    assert tree_root(0, reader([])) == EMPTY_ROOT == Frontier().root()
    assert repr(Node(1, 2)) == "Node(level=1, index=2)"
