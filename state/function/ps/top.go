package ps

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/structsort"
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// longestLook is the maximum time for which ps.top measures.
const longestLook = time.Minute

// sample has the processor time of a process, in hundredths of a second, its state and its memory.
type sample struct {
	pid          int
	user, system int
	state        string
	memory       int // bytes
	virtual      int // bytes
}

// top measures for some seconds and returns the processes that use the most processor time.
func (p ps) top(ctx context.Context, count, seconds int) (*value.List, error) {
	wait := time.Duration(seconds) * time.Second
	if wait < 0 || wait > longestLook || count < 0 {
		return nil, errors.New("ps.top takes a count of at least 0 and an interval of at most a minute")
	}
	before := map[int]sample{}
	first, err := p.samples()
	if err != nil {
		return nil, err
	}
	for _, s := range first {
		before[s.pid] = s
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(wait):
	}
	after, err := p.samples()
	used := func(s sample) int { return s.user + s.system - before[s.pid].user - before[s.pid].system }
	structsort.Func(after, func(a, b sample) int { return used(b) - used(a) })
	all := value.NewList()
	for _, s := range after[:min(count, len(after))] {
		dir := fmt.Sprintf("/proc/%d", s.pid)
		command := p.ProcessName(dir, true)
		if command == "" {
			command = p.ProcessName(dir, false)
		}
		all.Append(value.NewMap("pid", s.pid, "cmd", command, "user", p.ProcessOwner(dir), "status", s.state,
			"cpu", value.NewMap("user", float64(s.user)/100, "system", float64(s.system)/100), "mem",
			value.NewMap("rss", s.memory, "vms", s.virtual)))
	}
	return all, err
}

func (p ps) samples() ([]sample, error) {
	pids, err := p.PIDs()
	var all []sample
	for _, pid := range pids {
		n, _ := pid.(int)
		text, err := function.ReadText(p.Host, fmt.Sprintf("/proc/%d/stat", n))
		if err != nil {
			continue // it has ended
		}
		f := strings.Fields(text[strings.LastIndexByte(text, ')')+1:]) // the name may hold spaces and parentheses
		if len(f) < 22 {
			continue
		}
		at := func(i int) int { n, _ := strconv.Atoi(f[i]); return n }
		all = append(all, sample{pid: n, user: at(11), system: at(12), state: processState(f[0]), virtual: at(20),
			memory: at(21) * 4096})
	}
	return all, err
}

func processState(letter string) string {
	names := map[string]string{"R": "running", "S": "sleeping", "D": "disk-sleep", "T": "stopped", "t": "tracing-stop",
		"Z": "zombie", "X": "dead", "I": "idle"}
	if name, ok := names[letter]; ok {
		return name
	}
	return letter
}
