package site

import (
	"strings"
	"sync"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// mostPrinted is how many bytes of what failing programs print are remembered in a run.
const mostPrinted = 1 << 20

// FailedOutput remembers what programs printed that failed, since comments of states quote it in many forms. The zero
// printed is empty. It is safe for concurrent use.
type FailedOutput struct {
	mu    sync.Mutex
	lines map[string]bool
	size  int
	full  bool // there was more than is remembered
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

// QuotedIn reports whether a text quotes what a program printed: a line of it, or the end of the text if the line is
// short enough to be a word of it by chance. show gives lines as the text has them. A printed that is full finds any
// text.
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
