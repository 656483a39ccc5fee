package report

import (
	"io"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/corpus-agent/corpus-agent/state/redact"
)

// Bars show on a terminal how far long work has come. A nil *Bars shows nothing and lets lines
// through, which is what a pipe gets.
type Bars struct {
	progress *mpb.Progress
	fetch    map[string]*mpb.Bar
}

// NewBars draws on a terminal.
func NewBars(terminal io.Writer) *Bars {
	return &Bars{progress: mpb.New(mpb.WithOutput(terminal), mpb.WithWidth(40)), fetch: map[string]*mpb.Bar{}}
}

// slow is the size from which a fetch takes long enough to watch.
const slow = 1 << 20

func (b *Bars) fetching(artifact string, done, total int64) {
	if b == nil || total < slow {
		return
	}
	bar, ok := b.fetch[artifact]
	if !ok {
		bar = b.progress.AddBar(total, mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Name(redact.Controls(artifact)+" "), decor.CountersKibiByte("% .1f of % .1f")),
			mpb.AppendDecorators(decor.AverageSpeed(decor.SizeB1024(0), "% .1f"), decor.Name(" "), decor.AverageETA(decor.ET_STYLE_GO)))
		b.fetch[artifact] = bar
	}
	bar.SetCurrent(done)
}

// above prints a text above the bars. They share the terminal itself with it, so what it shows of others is
// made harmless here.
func (b *Bars) above(out io.Writer, text string) {
	if b == nil {
		_, _ = io.WriteString(out, text) // a terminal that is gone cannot be told so
		return
	}
	_, _ = b.progress.Write([]byte(redact.Screen(text)))
}

func (b *Bars) stop() {
	if b == nil {
		return
	}
	for _, bar := range b.fetch {
		bar.Abort(true)
	}
	b.progress.Wait()
}
