// Linear checks histories of tables with porcupine, a linearizability checker.
//
//	linear HISTORY …
//
// A history is a file of JSON objects, one operation a line (README.md in this folder has their form).
// Each table is checked by itself against the model below: a deck from whose end cards are drawn, hands,
// seats, a version that each event raises by one, and commands that are executed once.
//
// Printed are a line for each history that is not linearizable, with its table, and the sums.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

const limit = 15 * time.Second // a table; longer than any history took that was linearizable

type operation struct {
	Table, Client, Op, Cmd string
	Seat, Count            int
	Expect                 *int
	Call                   int64
	Return                 *int64
	Out                    *answer
	repeated               bool           // another operation has the same Cmd
	at                     int            // the version after it, if it was answered when it was sent again
	did                    map[int]string // by version, what readers of the table say was done
	newest                 *int           // the last version of these
	alike                  string         // of a command without an outcome: what it does
	number                 int            // of those that are alike, from the first call on
}

// An answer is a grant, or a refusal by its reason. A read has the whole state.
type answer struct {
	Refused string
	Version int
	First   int
	Slots   []int
	Deck    int
	Hands   []int
	Discard int
	Seats   []bool
	Did     string
}

const seats = 4

type table struct {
	version, deck, discard int
	hands                  [seats]int
	taken                  [seats]bool
	done                   string // the repeated commands that were executed, with the version after each
	lost                   string // of the commands without an outcome, how many of each kind happened
	read                   string // how far each reader of events has come
}

// Step says whether an operation with this answer may happen in this state, and the state after it.
func step(before, in, out interface{}) (bool, interface{}) {
	t, op := before.(table), in.(*operation)
	got := op.Out
	switch op.Op {
	case "state":
		return got == nil || shows(t, got), t
	case "resume":
		return got == nil || got.Refused != "" || got.Version == t.version, t
	case "watch":
		return watched(t, op)
	case "events":
		return received(t, op)
	}
	if got != nil && got.Refused != "" {
		// A refusal changes nothing. A conflict is only told of a table that has changed.
		return got.Refused != "conflict" || op.Expect == nil || *op.Expect != t.version, t
	}
	if op.repeated {
		if at, found := executed(t.done, op.Cmd); found {
			return got == nil || answers(op, at), t
		}
	}
	// Unknown, and all events are placed that readers got until the end: it came later or never.
	known := len(op.did) > 0
	if got == nil && known && t.version >= *op.newest {
		return true, t
	}
	// Of those that are alike the first one that was called happens first: each may come at any time.
	before_it, _ := executed(t.lost, op.alike)
	if known && op.alike != "" && before_it != op.number {
		return false, t
	}
	after, possible := apply(t, op)
	if known && got == nil && !possible {
		return false, t // not now
	}
	if !possible {
		return got == nil, t // unknown: it was refused, too
	}
	if op.at > 0 && after.version != op.at {
		return false, t
	}
	for version := t.version + 1; version <= after.version; version++ {
		if did, read := op.did[version]; read && did != fmt.Sprintf("%s %d", op.Op, op.Seat) {
			return false, t
		}
	}
	if got != nil {
		if !answers(op, after.version) || (op.Expect != nil && *op.Expect != t.version) {
			return false, t
		}
		for n, slot := range got.Slots {
			if slot != t.deck-1-n {
				return false, t
			}
		}
		if op.Op == "draw" && len(got.Slots) != op.Count {
			return false, t
		}
	} else if op.Expect != nil && *op.Expect != t.version {
		return true, t
	}
	if op.alike != "" {
		after.lost = replaced(after.lost, op.alike, op.number+1)
	}
	if op.repeated {
		after.done += fmt.Sprintf(";%s=%d", op.Cmd, after.version)
	}
	return true, after
}

// An answer has the version after its command; that to a join, which brings the table as it is when it
// is sent, may have a later one.
func answers(op *operation, version int) bool {
	return op.Out.Version == version || (op.Op == "join" && op.Out.Version > version)
}

func apply(t table, op *operation) (table, bool) {
	seat := op.Seat - 1
	switch op.Op {
	case "draw":
		if t.deck < op.Count || !t.taken[seat] {
			return t, false
		}
		t.deck -= op.Count
		t.hands[seat] += op.Count
	case "discard":
		if t.hands[seat] < op.Count || !t.taken[seat] {
			return t, false
		}
		t.hands[seat] -= op.Count
		t.discard += op.Count
	case "join":
		if t.taken[seat] {
			return t, false
		}
		t.taken[seat] = true
	case "leave":
		if !t.taken[seat] {
			return t, false
		}
		t.taken[seat] = false
	default:
		panic("unknown operation " + op.Op)
	}
	t.version += op.Count
	return t, true
}

func shows(t table, got *answer) bool {
	if got.Version != t.version || got.Deck != t.deck || got.Discard != t.discard {
		return false
	}
	for seat := range t.hands {
		if got.Hands[seat] != t.hands[seat] || got.Seats[seat] != t.taken[seat] {
			return false
		}
	}
	return true
}

// A spectator is answered with the table as it is, and told everything from the version First on: the one
// after this, or after the last one that it had.
func watched(t table, op *operation) (bool, table) {
	got := op.Out
	if got == nil || got.Refused != "" {
		return true, t
	}
	at, found := executed(t.read, op.Client)
	if got.Version != t.version || got.First > got.Version+1 || (found && got.First > at+1) {
		return false, t
	}
	if !found {
		t.read = replaced(t.read, op.Client, got.First-1)
	}
	return true, t
}

// A reader gets the events in their order, none left out, and none that has not happened. They may
// come again. Of its last operation the count is 0: then it must have read everything.
func received(t table, op *operation) (bool, table) {
	at, found := executed(t.read, op.Client)
	if !found {
		at = op.Out.First - 1
	}
	last := op.Out.Version
	if op.Out.First > at+1 || last > t.version || (op.Count == 0 && at != t.version) {
		return false, t
	}
	if last > at {
		t.read = replaced(t.read, op.Client, last)
	}
	return true, t
}

func find(list, name string) (from, to int) {
	mark := ";" + name + "="
	for at := 0; at+len(mark) <= len(list); at++ {
		if list[at:at+len(mark)] == mark {
			end := at + len(mark)
			for end < len(list) && list[end] != ';' {
				end++
			}
			return at, end
		}
	}
	return -1, -1
}

func executed(list, name string) (int, bool) {
	from, to := find(list, name)
	if from < 0 {
		return 0, false
	}
	value := 0
	fmt.Sscan(list[from+len(name)+2:to], &value)
	return value, true
}

func replaced(list, name string, value int) string {
	if from, to := find(list, name); from >= 0 {
		list = list[:from] + list[to:]
	}
	return list + fmt.Sprintf(";%s=%d", name, value)
}

func check(file string) (tables, operations, unknown int, faults []string, err error) {
	opened, err := os.Open(file)
	if err != nil {
		return
	}
	defer opened.Close()
	byTable := map[string][]*operation{}
	lines := bufio.NewScanner(opened)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		op := new(operation)
		if err = json.Unmarshal(lines.Bytes(), op); err != nil {
			return
		}
		byTable[op.Table] = append(byTable[op.Table], op)
	}
	if err = lines.Err(); err != nil {
		return
	}
	var names []string
	for name := range byTable {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		ops := byTable[name]
		begin := ops[0].Out // the first operation is a read before all others
		seen, answered, did, newest := map[string]int{}, map[string]int{}, map[int]string{}, 0
		for _, op := range ops {
			op.did, op.newest = did, &newest
			if op.Op == "events" && op.Out.Did != "" {
				if before, read := did[op.Out.Version]; read && before != op.Out.Did {
					faults = append(faults, fmt.Sprintf("%s: table %s: version %d is %s and %s",
						file, name, op.Out.Version, before, op.Out.Did))
				}
				did[op.Out.Version] = op.Out.Did
				if op.Out.Version > newest {
					newest = op.Out.Version
				}
			}
			if op.Cmd != "" {
				seen[op.Cmd]++
				if op.Op != "join" && op.Out != nil && op.Out.Refused == "" {
					answered[op.Cmd] = op.Out.Version
				}
			}
		}
		sort.SliceStable(ops[1:], func(a, b int) bool { return ops[a+1].Call < ops[b+1].Call })
		alike, lost := map[string]int{}, map[string]bool{}
		var history []porcupine.Operation
		for _, op := range ops {
			op.repeated, op.at = seen[op.Cmd] > 1, answered[op.Cmd]
			end := int64(math.MaxInt64)
			if op.Return != nil {
				end = *op.Return
			} else if unknown++; op.Op == "state" || op.Op == "resume" || op.Op == "watch" {
				continue // a question without an answer says nothing
			} else if lost[op.Cmd] {
				continue // it happens once, and the one that was called first may stand for it
			} else if op.repeated {
				lost[op.Cmd] = true
			} else if op.Expect == nil {
				op.alike = fmt.Sprintf("%s-%d-%d", op.Op, op.Seat, op.Count)
				op.number = alike[op.alike]
				alike[op.alike]++
			}
			history = append(history, porcupine.Operation{Input: op, Call: op.Call, Output: op.Out, Return: end})
		}
		first := table{version: begin.Version, deck: begin.Deck, discard: begin.Discard}
		copy(first.hands[:], begin.Hands)
		copy(first.taken[:], begin.Seats)
		model := porcupine.Model{Init: func() interface{} { return first }, Step: step}
		tables++
		operations += len(ops)
		if found := porcupine.CheckOperationsTimeout(model, history, limit); found != porcupine.Ok {
			faults = append(faults, fmt.Sprintf("%s: table %s: %s%s", file, name, found, stuck(model, history, first)))
		}
	}
	return
}

// Where the longest order that porcupine found ends: the state there, and the next operations.
func stuck(model porcupine.Model, history []porcupine.Operation, first table) string {
	_, info := porcupine.CheckOperationsVerbose(model, history, limit)
	var longest []int
	for _, order := range info.PartialLinearizations()[0] {
		if len(order) > len(longest) {
			longest = order
		}
	}
	placed := map[int]bool{}
	state := interface{}(first)
	for _, n := range longest {
		placed[n] = true
		_, state = step(state, history[n].Input, history[n].Output)
	}
	text := fmt.Sprintf("\n  %d of %d operations have an order, up to version %d; not placed:", len(longest), len(history), state.(table).version)
	shown := 0
	for n, op := range history {
		if !placed[n] && shown < 4 && op.Return != math.MaxInt64 {
			line, _ := json.Marshal(op.Input)
			text += "\n  " + string(line)
			shown++
		}
	}
	return text
}

func main() {
	tables, operations, unknown, bad := 0, 0, 0, 0
	for _, file := range os.Args[1:] {
		t, o, u, faults, err := check(file)
		if err != nil {
			fmt.Fprintln(os.Stderr, file, err)
			os.Exit(2)
		}
		tables, operations, unknown, bad = tables+t, operations+o, unknown+u, bad+len(faults)
		for _, fault := range faults {
			fmt.Println(fault)
		}
	}
	fmt.Printf("histories %d, tables %d, operations %d, unknown %d, not linearizable %d\n",
		len(os.Args)-1, tables, operations, unknown, bad)
	if bad > 0 {
		os.Exit(1)
	}
}
