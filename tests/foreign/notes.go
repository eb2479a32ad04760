// Notes checks a bundle's signed heads with the library that Go uses for its checksum database.
//
//	notes [-proofs FILE] BUNDLE KEY
//
// KEY is the table's key, 64 hex digits or a verifier key. Each checkpoint must be signed by it, and
// its root must be that of the leaves up to its size; cosignatures under the keys of seated players must be valid.
// Each proof in FILE, one JSON object a line, must hold for these leaves and equal the one that tlog
// computes: {"leaf", "size", "proof"}, that leaf number `leaf`, counted from 0, is in the tree of `size`;
// {"old", "size", "proof"}, that this tree extends the tree of size `old`. Hashes are hex.
//
// It needs golang.org/x/mod/sumdb, and does not replay the game.
package main

import (
	"bufio"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// The members of a bundle's line that this program reads.
type line struct {
	Bundle     string
	Origin     string
	Checkpoint string
	Opened     *struct{ Key string }
}

// A tree keeps the hashes of a growing log in the order in which tlog stores them.
type tree struct {
	leaves [][]byte
	stored []tlog.Hash
}

func (t *tree) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	hashes := make([]tlog.Hash, len(indexes))
	for i, index := range indexes {
		if index >= int64(len(t.stored)) {
			return nil, errors.New("there is no such leaf")
		}
		hashes[i] = t.stored[index]
	}
	return hashes, nil
}

func (t *tree) add(leaf []byte) error {
	hashes, err := tlog.StoredHashes(int64(len(t.leaves)), leaf, t)
	t.leaves = append(t.leaves, leaf)
	t.stored = append(t.stored, hashes...)
	return err
}

// A cosigner verifies a player's cosignature/v1 lines, a type that sumdb/note does not implement.
type cosigner struct{ key ed25519.PublicKey }

func (c cosigner) Name() string { return "player/" + hex.EncodeToString(c.key) }

func (c cosigner) KeyHash() uint32 {
	hash := sha256.Sum256([]byte(c.Name() + "\n\x04" + string(c.key)))
	return binary.BigEndian.Uint32(hash[:])
}

func (c cosigner) Verify(text, signature []byte) bool {
	if len(signature) != 8+ed25519.SignatureSize {
		return false
	}
	time := binary.BigEndian.Uint64(signature)
	message := fmt.Sprintf("cosignature/v1\ntime %d\n%s", time, text)
	return ed25519.Verify(c.key, []byte(message), signature[8:])
}

func eachLine(file string, do func(number int, text []byte) error) error {
	opened, err := os.Open(file)
	if err != nil {
		return err
	}
	defer opened.Close()
	lines := bufio.NewScanner(opened)
	lines.Buffer(nil, 1<<26)
	for number := 0; lines.Scan(); number++ {
		if err := do(number, lines.Bytes()); err != nil {
			return fmt.Errorf("line %d of %s: %w", number, file, err)
		}
	}
	return lines.Err()
}

func houseVerifier(origin, key string) (note.Verifier, error) {
	if !strings.Contains(key, "+") {
		raw, err := hex.DecodeString(key)
		if err != nil || len(raw) != ed25519.PublicKeySize {
			return nil, errors.New("a key is 64 hex digits or a verifier key")
		}
		if key, err = note.NewEd25519VerifierKey(origin, raw); err != nil {
			return nil, err
		}
	}
	return note.NewVerifier(key)
}

// checkHead verifies a checkpoint and returns its number of cosignatures.
func checkHead(t *tree, text, origin string, known []note.Verifier) (int, error) {
	opened, err := note.Open([]byte(text), note.VerifierList(known...))
	if err != nil {
		return 0, err
	}
	signed := map[string]bool{}
	for _, signature := range opened.Sigs {
		signed[signature.Name] = true
	}
	lines := strings.Split(opened.Text, "\n")
	if !signed[known[0].Name()] || len(lines) != 4 || lines[0] != origin || origin != known[0].Name() {
		return 0, errors.New("this is not a checkpoint of this table signed by its house")
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil || size < 1 || size > int64(len(t.leaves)) {
		return 0, fmt.Errorf("there are no %s leaves", lines[1])
	}
	signedRoot, err := tlog.ParseHash(lines[2])
	if err != nil {
		return 0, err
	}
	root, err := tlog.TreeHash(size, t)
	if err == nil && root != signedRoot {
		err = errors.New("the signed root is not that of the leaves")
	}
	return len(opened.Sigs) - 1, err
}

func checkProof(t *tree, text []byte) error {
	var request struct {
		Leaf, Old *int64
		Size      int64
		Proof     []string
	}
	if err := json.Unmarshal(text, &request); err != nil {
		return err
	}
	proof := make([]tlog.Hash, len(request.Proof))
	for i, digits := range request.Proof {
		if raw, err := hex.DecodeString(digits); err != nil || copy(proof[i][:], raw) != tlog.HashSize {
			return errors.New("a hash is 64 hex digits")
		}
	}
	root, err := tlog.TreeHash(request.Size, t)
	if err != nil {
		return err
	}
	var same []tlog.Hash
	if request.Leaf != nil {
		leaf := tlog.RecordHash(t.leaves[*request.Leaf])
		if err := tlog.CheckRecord(proof, request.Size, root, *request.Leaf, leaf); err != nil {
			return err
		}
		same, err = tlog.ProveRecord(request.Size, *request.Leaf, t)
	} else {
		var old tlog.Hash
		if old, err = tlog.TreeHash(*request.Old, t); err != nil {
			return err
		}
		if err := tlog.CheckTree(proof, request.Size, root, *request.Old, old); err != nil {
			return err
		}
		same, err = tlog.ProveTree(request.Size, *request.Old, t)
	}
	if err == nil && fmt.Sprint(same) != fmt.Sprint(proof) {
		err = errors.New("tlog computes another proof")
	}
	return err
}

func check(bundle, key, proofs string) error {
	var t tree
	var origin string
	var known []note.Verifier
	heads, cosigned, proved := 0, 0, 0
	err := eachLine(bundle, func(number int, text []byte) error {
		var read line
		err := json.Unmarshal(text, &read)
		switch {
		case err != nil:
			return err
		case number == 0:
			origin = read.Origin
			verifier, err := houseVerifier(origin, key)
			known = append(known, verifier)
			return err
		case read.Checkpoint != "":
			players, err := checkHead(&t, read.Checkpoint, origin, known)
			heads++
			cosigned += players
			return err
		}
		if read.Opened == nil {
			return t.add(append([]byte(nil), text...))
		}
		// Only the opening of a SeatTaken has a key.
		if raw, err := hex.DecodeString(read.Opened.Key); err == nil && len(raw) == 32 {
			if player := (cosigner{raw}); !isKnown(known, player.Name()) {
				known = append(known, player)
			}
		}
		return nil
	})
	if err == nil && proofs != "" {
		err = eachLine(proofs, func(_ int, text []byte) error {
			proved++
			return checkProof(&t, text)
		})
	}
	if err == nil && heads == 0 {
		err = errors.New("there is no checkpoint")
	}
	if err == nil {
		fmt.Printf("leaves %d, checkpoints %d, cosignatures %d, proofs %d: all hold\n",
			len(t.leaves), heads, cosigned, proved)
	}
	return err
}

func isKnown(known []note.Verifier, name string) bool {
	for _, one := range known {
		if one.Name() == name {
			return true
		}
	}
	return false
}

func main() {
	proofs := flag.String("proofs", "", "a file of proofs, one JSON object a line")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "notes [-proofs FILE] BUNDLE KEY")
		os.Exit(2)
	}
	if err := check(flag.Arg(0), flag.Arg(1), *proofs); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
