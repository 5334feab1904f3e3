import base64
from contextlib import suppress
from functools import cache

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.domain.errors import CheckpointCorruptError, CheckpointNotFoundError, UnstorableValueError
from holdfast.domain.merkle import (
    Node,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    root_of,
    tree_root,
    verify_consistency,
    verify_inclusion,
)
from holdfast.domain.tiles import (
    ENTRIES,
    WIDTH,
    Tile,
    TileHashes,
    TreeEdge,
    changed_bundles,
    changed_tiles,
    pack_bundle,
    parse_tile_path,
    read_tile,
    split_tile,
    tiles_of,
    unpack_bundle,
)
from tests.trails import vectors

VECTORS = vectors("tiles.json")
TESSERA = vectors("tessera_log.json")
SIZES = st.one_of(st.integers(0, 3000), st.sampled_from([255, 256, 257, 511, 512, 65_535, 65_536, 65_537]))


def leaves_of(size):
    return [leaf_hash(str(number).encode()) for number in range(size)]


LEAVES = leaves_of(66_000)


class Folder:
    """Tiles as files would keep them, and which of them were read."""

    def __init__(self):
        self.files = {}
        self.read_paths = []

    def write(self, changed):
        self.files.update((tile.path, data) for tile, data in changed)

    def read(self, tile):
        self.read_paths.append(tile.path)
        return self.files.get(tile.path)


@cache
def written(size):
    return TreeEdge().append(LEAVES[:size])


def stored(size):
    folder = Folder()
    folder.write(written(size))
    return folder


@pytest.mark.parametrize("case", VECTORS["paths"], ids=lambda case: case["path"])
def test_the_published_paths_are_those_of_their_tiles(case):
    # The published paths name a height first, which is always eight here, and full tiles are narrower there.
    is_partial = ".p/" in case["path"]
    _, _, level, rest = case["path"].split("/", 3)
    tile = Tile(case["level"], case["index"], case["width"] if is_partial else WIDTH)
    assert tile.path == f"tile/{level}/{rest}"
    assert parse_tile_path(tile.path) == tile


def test_the_example_of_the_specification_is_the_path():
    index = VECTORS["c2sp_index"]
    assert Tile(0, index["index"]).path == f"tile/0/{index['path']}"


@pytest.mark.parametrize("case", VECTORS["c2sp_tiles"], ids=lambda case: case["size"])
def test_a_tree_has_the_tiles_of_the_specification(case):
    found: dict[str, list[int]] = {}
    for tile in tiles_of(case["size"]):
        count = found.setdefault(str(tile.level), [0, 0])
        if tile.width == WIDTH:
            count[0] += 1
        else:
            count[1] = tile.width
    assert found == case["tiles"]


BAD_PATHS = [
    *VECTORS["bad_paths"],
    "tile/0/1",
    "tile/0/0001",
    "tile/0/x000/001",
    "tile/0/001.p/0",
    "tile/0/001.p/01",
    "tile/0/001.p/256",
    "tile/0/001.p/999",
    "tile/00/001",
    "tile/64/001",
    "tile/-1/001",
    "tile/0/x001/x234",
    "tile/0/٠٠١",
    "tile/0/001\n",
    "tile/entries/1",
    "../tile/0/001",
    "",
]


@pytest.mark.parametrize("path", BAD_PATHS)
def test_another_spelling_is_no_path(path):
    with pytest.raises(CheckpointCorruptError, match="not the path of a tile"):
        parse_tile_path(path)


@given(st.builds(Tile, st.integers(-1, 63), st.integers(0, 2**63), st.integers(1, 256)))
def test_a_path_is_read_back(tile):
    assert parse_tile_path(tile.path) == tile


@given(st.text(max_size=30))
def test_any_text_is_a_path_or_a_told_error(text):
    with suppress(CheckpointCorruptError):
        assert parse_tile_path(text).path == text


@given(st.lists(SIZES.filter(lambda size: size < 4000), min_size=1, max_size=5))
@example([255, 256, 257, 1024])
def test_a_tree_that_grows_writes_exactly_the_tiles_that_changed(sizes):
    edge, folder = TreeEdge(), Folder()
    for size in sorted(sizes):
        before = edge.size
        changed = edge.append(LEAVES[before:size])
        assert [tile for tile, _ in changed] == list(changed_tiles(before, size))
        folder.write(changed)
        assert edge.root() == root_of(LEAVES[:size])
        again = TreeEdge(size, folder.read)
        again.append(LEAVES[size : size + 300])
        assert again.root() == root_of(LEAVES[: size + 300])
    fresh = dict((tile.path, data) for tile, data in TreeEdge().append(LEAVES[: edge.size]))
    assert fresh.items() <= folder.files.items()


@pytest.mark.parametrize("size", [65_535, 65_536, 65_537, 65_800])
def test_a_tree_of_three_levels_of_tiles_has_the_right_root(size):
    folder = stored(size)
    assert TreeEdge(size, folder.read).root() == root_of(LEAVES[:size])
    assert tree_root(size, TileHashes(size, folder.read)) == root_of(LEAVES[:size])
    assert sorted(folder.files) == sorted(tile.path for tile in tiles_of(size))


@given(SIZES.filter(bool), st.data())
def test_a_proof_out_of_tiles_holds_and_reads_few_of_them(size, data):
    folder, root = stored(size), root_of(LEAVES[:size])
    index = data.draw(st.integers(0, size - 1))
    verify_inclusion(
        LEAVES[index], index, size, inclusion_proof(index, size, TileHashes(size, folder.read)), root
    )
    old = data.draw(st.integers(1, size))
    proof = consistency_proof(old, size, TileHashes(size, folder.read))
    verify_consistency(old, root_of(LEAVES[:old]), size, root, proof)
    # For each of the two: at most a tile on the way to the leaf and one at the right edge, per level.
    assert len(folder.read_paths) <= 2 * 2 * 3


def test_a_partial_tile_that_is_gone_is_cut_out_of_the_full_one():
    folder = stored(256)
    assert sorted(folder.files) == ["tile/0/000", "tile/1/000.p/1"]
    assert tree_root(100, TileHashes(100, folder.read)) == root_of(LEAVES[:100])
    assert read_tile(Tile(0, 0, 3), folder.read) == b"".join(LEAVES[:3])


def test_a_tile_that_is_missing_or_too_short_is_named():
    folder = stored(300)
    with pytest.raises(CheckpointNotFoundError, match=r"tile/0/002\.p/10"):
        read_tile(Tile(0, 2, 10), folder.read)
    folder.files["tile/0/001.p/44"] += b"x"
    with pytest.raises(CheckpointCorruptError, match=r"1409 bytes instead of 1408: tile/0/001\.p/44"):
        tree_root(300, TileHashes(300, folder.read))
    with pytest.raises(CheckpointCorruptError, match="tile/0/000"):
        split_tile(Tile(0, 0), b"")
    with pytest.raises(CheckpointNotFoundError):
        TreeEdge(1)


def test_a_node_outside_the_tree_has_no_hash():
    folder = stored(5)
    for node in (Node(0, 5), Node(2, 1), Node(8, 0)):
        with pytest.raises(CheckpointNotFoundError, match="no node"):
            TileHashes(5, folder.read)([node])


def test_tiles_that_were_read_are_kept_for_the_next_question():
    folder = stored(600)
    hashes = TileHashes(600, folder.read)
    for _ in range(3):
        hashes([Node(0, 1), Node(0, 300), Node(0, 599)])
    assert len(folder.read_paths) == len(set(folder.read_paths)) == 3


def test_many_tiles_are_read_without_keeping_all_of_them():
    folder = stored(66_000)
    hashes = TileHashes(66_000, folder.read)
    for _ in range(2):
        assert hashes([Node(0, index) for index in range(0, 66_000, 200)]) == LEAVES[:66_000:200]
    assert len(folder.read_paths) > 258


@pytest.mark.parametrize("size", range(1, 16))
def test_the_log_of_another_implementation_has_the_same_tiles_bundles_and_roots(size):
    entries = list(unpack_bundle(base64.b64decode(TESSERA["bundles"][size - 1])))
    assert pack_bundle(entries).hex() == base64.b64decode(TESSERA["bundles"][size - 1]).hex()
    edge = TreeEdge()
    [(tile, data)] = edge.append([leaf_hash(entry) for entry in entries])
    assert tile == Tile(0, 0, size)
    assert data == base64.b64decode(TESSERA["tiles"][size - 1])
    assert base64.b64encode(edge.root()).decode() == TESSERA["checkpoints"][size].split("\n")[2]


@given(st.lists(st.binary(max_size=300), max_size=20))
def test_a_bundle_gives_its_entries_back(entries):
    data = pack_bundle(entries)
    assert list(unpack_bundle(data)) == entries
    for cut in range(1, min(len(data), 8)):
        shorter = data[:-cut]
        try:
            assert list(unpack_bundle(shorter)) != entries
        except CheckpointCorruptError as fault:
            assert "in the middle" in fault.message


def test_an_entry_has_a_limit():
    with pytest.raises(UnstorableValueError, match="65536 bytes"):
        pack_bundle([b"x" * 65_536])
    assert list(unpack_bundle(pack_bundle([b"x" * 65_535]))) == [b"x" * 65_535]


def test_bundles_change_as_tiles_of_the_lowest_level_do():
    assert [tile.path for tile in changed_bundles(250, 600)] == [
        "tile/entries/000",
        "tile/entries/001",
        "tile/entries/002.p/88",
    ]
    assert [*changed_bundles(250, 250), *changed_bundles(256, 256)] == []
    assert Tile(ENTRIES, 7, 3).full == Tile(ENTRIES, 7)
    assert parse_tile_path("tile/entries/x001/000.p/9") == Tile(ENTRIES, 1000, 9)
