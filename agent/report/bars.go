package report

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/corpus-agent/corpus-agent/state/redact"
)

// Bars shows the progress of fetches and other copies on a terminal, in one line that is redrawn. A nil *Bars shows no
// progress and only prints lines, which is right for a pipe.
type Bars struct {
	terminal io.Writer

	mu    sync.Mutex
	began map[string]time.Time // when the fetch of each artifact began
	drawn time.Time            // when the line was last drawn; zero if no line is on the screen
}

// NewBars returns Bars that draw on a terminal.
func NewBars(terminal io.Writer) *Bars {
	return &Bars{terminal: terminal, began: map[string]time.Time{}}
}

const (
	slow    = 1 << 20                // the smallest size of an artifact whose progress is shown
	redraw  = 100 * time.Millisecond // the least time between two drawings
	wipe    = "\r\x1b[K"             // clears the cursor's line
	longest = 40                     // characters shown of an artifact's name
)

// fetching shows how many bytes of an artifact have arrived.
func (b *Bars) fetching(artifact string, done, total int64) {
	if b == nil || total < slow {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	began, known := b.began[artifact]
	if !known {
		began, b.began[artifact] = now, now
	}
	switch {
	case done >= total:
		b.clear()
	case now.Sub(b.drawn) >= redraw:
		_, _ = io.WriteString(b.terminal, wipe+progress(artifact, done, total, now.Sub(began)))
		b.drawn = now
	}
}

// progress formats a line such as "myapp-1.0.tar.zst 3.5 of 12.0 MiB (29 %), 1.2 MiB/s, 7s left".
func progress(artifact string, done, total int64, took time.Duration) string {
	name := []rune(redact.Controls(artifact))
	if len(name) > longest {
		name = append(name[:longest-1], '…')
	}
	const mib = 1 << 20
	text := fmt.Sprintf("%s %.1f of %.1f MiB (%d %%)", string(name), float64(done)/mib, float64(total)/mib,
		int64(float64(done)*100/float64(total)))
	if done == 0 || took < time.Second {
		return text
	}
	left := time.Duration(float64(took) * float64(total-done) / float64(done))
	return fmt.Sprintf("%s, %.1f MiB/s, %v left", text, float64(done)/mib/took.Seconds(), left.Round(time.Second))
}

// clear removes the progress line. The caller holds the lock.
func (b *Bars) clear() {
	if !b.drawn.IsZero() {
		_, _ = io.WriteString(b.terminal, wipe)
	}
	b.drawn = time.Time{}
}

// Above prints a text above the progress line. It writes to the terminal itself, past the filter of standard output,
// so it removes control characters from the text here.
func (b *Bars) Above(out io.Writer, text string) {
	if b == nil {
		_, _ = io.WriteString(out, text) // a failed write to a terminal cannot be reported on it
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clear()
	_, _ = io.WriteString(b.terminal, redact.Screen(text))
}

// Stop removes the progress line.
func (b *Bars) Stop() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clear()
}
