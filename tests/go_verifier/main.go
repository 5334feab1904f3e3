// A verifier for an exported trail that is neither ours nor Python: notes, tiles and proofs are checked by
// golang.org/x/mod/sumdb, the code behind the Go checksum database.
//
//	verifier FOLDER VKEY [OLDER_CHECKPOINT]
package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type folder string

func (f folder) Height() int { return 8 }

func (f folder) SaveTiles([]tlog.Tile, [][]byte) {}

func (f folder) ReadTiles(tiles []tlog.Tile) ([][]byte, error) {
	var found [][]byte
	for _, tile := range tiles {
		// There the path names the height, which is always 8 here.
		data, err := os.ReadFile(filepath.Join(string(f), strings.Replace(tile.Path(), "tile/8/", "tile/", 1)))
		if err != nil {
			return nil, err
		}
		found = append(found, data)
	}
	return found, nil
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "WRONG:", err)
		os.Exit(1)
	}
}

func head(path, vkey string) tlog.Tree {
	verifiers := note.VerifierList(must(note.NewVerifier(vkey)))
	lines := strings.Split(must(note.Open(must(os.ReadFile(path)), verifiers)).Text, "\n")
	return tlog.Tree{N: must(strconv.ParseInt(lines[1], 10, 64)), Hash: must(tlog.ParseHash(lines[2]))}
}

func main() {
	root, vkey := os.Args[1], os.Args[2]
	tree := head(filepath.Join(root, "checkpoint"), vkey)
	reader := tlog.TileHashReader(tree, folder(root))
	index := int64(0)
	for bundle := int64(0); index < tree.N; bundle++ {
		tile := tlog.Tile{H: 8, L: -1, N: bundle, W: int(min(256, tree.N-bundle*256))}
		data := must(os.ReadFile(filepath.Join(root, strings.Replace(tile.Path(), "tile/8/data/", "tile/entries/", 1))))
		for ; len(data) > 0; index++ {
			end := 2 + int(binary.BigEndian.Uint16(data))
			proof := must(tlog.ProveRecord(tree.N, index, reader))
			check(tlog.CheckRecord(proof, tree.N, tree.Hash, index, tlog.RecordHash(data[2:end])))
			data = data[end:]
		}
	}
	if len(os.Args) > 3 {
		older := head(os.Args[3], vkey)
		proof := must(tlog.ProveTree(tree.N, older.N, reader))
		check(tlog.CheckTree(proof, tree.N, tree.Hash, older.N, older.Hash))
	}
	fmt.Printf("%d entries verified\n", index)
}
