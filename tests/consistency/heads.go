// Heads checks that all signed heads which anybody saw of a table are of one growing log.
//
//	heads BUNDLE KEY HEADS
//
// BUNDLE is the table's bundle, KEY its key (64 hex digits), HEADS a file of JSON objects, one a line:
// {"note": a signed note, "client": who saw it}. Go's sumdb/note verifies each signature; sumdb/tlog
// proves that each head is the root of the bundle's leaves up to its size, and that each extends the
// one before it. Heads of one size that differ are a fork, whatever the bundle says.
package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type stored []tlog.Hash

func (s stored) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	hashes := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		if index >= int64(len(s)) {
			return nil, errors.New("there is no such leaf")
		}
		hashes[i] = s[index]
	}
	return hashes, nil
}

type head struct {
	size   int64
	root   tlog.Hash
	client string
}

func eachLine(file string, do func(text []byte) error) error {
	opened, err := os.Open(file)
	if err != nil {
		return err
	}
	defer opened.Close()
	lines := bufio.NewScanner(opened)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		if err := do(lines.Bytes()); err != nil {
			return err
		}
	}
	return lines.Err()
}

// The bundle's leaves as tlog keeps them, their number, and the origin of the table's notes.
func leaves(bundle string) (tree stored, size int64, origin string, err error) {
	err = eachLine(bundle, func(text []byte) error {
		var line struct{ Origin, Type string }
		if err := json.Unmarshal(text, &line); err != nil {
			return err
		}
		if line.Origin != "" && origin == "" {
			origin = line.Origin
		}
		if line.Type == "" {
			return nil
		}
		hashes, err := tlog.StoredHashes(size, append([]byte(nil), text...), tree)
		tree, size = append(tree, hashes...), size+1
		return err
	})
	return
}

func check(bundle, key, seen string) (int, error) {
	tree, size, origin, err := leaves(bundle)
	if err != nil {
		return 0, err
	}
	raw, err := hex.DecodeString(key)
	if err != nil {
		return 0, err
	}
	text, err := note.NewEd25519VerifierKey(origin, raw)
	if err != nil {
		return 0, err
	}
	verifier, err := note.NewVerifier(text)
	if err != nil {
		return 0, err
	}
	var heads []head
	err = eachLine(seen, func(text []byte) error {
		var line struct{ Note, Client string }
		if err := json.Unmarshal(text, &line); err != nil {
			return err
		}
		opened, err := note.Open([]byte(line.Note), note.VerifierList(verifier))
		if err != nil {
			return fmt.Errorf("%s saw a head that the house did not sign: %w", line.Client, err)
		}
		parts := strings.Split(opened.Text, "\n")
		at, err := strconv.ParseInt(parts[1], 10, 64)
		if err != nil {
			return err
		}
		root, err := tlog.ParseHash(parts[2])
		heads = append(heads, head{at, root, line.Client})
		return err
	})
	if err != nil {
		return 0, err
	}
	sort.SliceStable(heads, func(i, j int) bool { return heads[i].size < heads[j].size })
	for i, one := range heads {
		if i > 0 && heads[i-1].size == one.size && heads[i-1].root != one.root {
			return 0, fmt.Errorf("a fork: %s and %s saw different heads of size %d", heads[i-1].client, one.client, one.size)
		}
		if one.size > size {
			return 0, fmt.Errorf("%s saw a head of size %d, and the log has %d leaves", one.client, one.size, size)
		}
		root, err := tlog.TreeHash(one.size, tree)
		if err != nil {
			return 0, err
		}
		if root != one.root {
			return 0, fmt.Errorf("the head of size %d that %s saw is not that of the log", one.size, one.client)
		}
		if i > 0 && heads[i-1].size > 0 {
			proof, err := tlog.ProveTree(one.size, heads[i-1].size, tree)
			if err != nil {
				return 0, err
			}
			if err := tlog.CheckTree(proof, one.size, one.root, heads[i-1].size, heads[i-1].root); err != nil {
				return 0, err
			}
		}
	}
	return len(heads), nil
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "heads BUNDLE KEY HEADS")
		os.Exit(2)
	}
	found, err := check(os.Args[1], os.Args[2], os.Args[3])
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Printf("heads %d: one log\n", found)
}
