package site

import (
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// mostPrinted bounds how many bytes of the output of failed programs a run remembers.
const mostPrinted = 1 << 20

// FailedOutput remembers the output of failed programs, since comments of states quote it in many forms. The zero
// FailedOutput is empty. It is safe for concurrent use.
type FailedOutput struct {
	mu    sync.Mutex
	lines map[string]bool
	size  int
	full  bool // there was more output than is remembered
}

// Note remembers the lines of an output.
func (p *FailedOutput) Note(out host.Output) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lines == nil {
		p.lines = map[string]bool{}
	}
	for _, line := range strings.Split(out.Stderr+"\n"+out.Stdout, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || p.lines[line] {
			continue
		}
		if p.size += len(line); p.size > mostPrinted {
			p.full = true
			return
		}
		p.lines[line] = true
	}
}

// QuotedIn reports whether a text quotes the output of a program: it contains a line of it, or ends with a line that is
// too short to be recognised elsewhere. show converts a line to the form that it has in the text. If p is full,
// QuotedIn returns true for any text.
func (p *FailedOutput) QuotedIn(text string, show func(string) string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	const short = 8
	for line := range p.lines {
		line = show(line)
		if len(line) >= short && strings.Contains(text, line) || strings.HasSuffix(strings.TrimSpace(text), ": "+line) {
			return true
		}
	}
	return p.full
}
