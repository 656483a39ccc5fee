package journal

import (
	"github.com/corpus-agent/corpus-agent/artifact/durable"
)

// begin opens the chapter of the run's pair, or creates one, unless it is already open.
func (r *Recorder) begin() error {
	if r.writer != nil {
		return nil
	}
	numbers, err := r.journal.numbers()
	if err != nil {
		return err
	}
	next := 1
	if len(numbers) > 0 {
		last := numbers[len(numbers)-1]
		if next, err = r.continues(last); err != nil {
			return err
		}
	}
	if r.writer == nil {
		header := Header{
			Pair: r.run.Pair.Bytes, Service: r.run.Pair.Service, Name: r.run.Name,
			Over: r.run.Over.Bytes, OverOf: r.run.Over.Service, Started: r.run.Now().UTC(),
		}
		if r.writer, err = r.journal.start(next, header); err != nil {
			return err
		}
	}
	err = r.writer.add(kindRun, runBody{r.run.ID, BootID(r.host)})
	r.writer.need()
	return err
}

// continues opens chapter number last for writing if it belongs to the pair of this run. Otherwise it returns the
// number of the chapter to create. It does not change a chapter that cannot be read.
func (r *Recorder) continues(last int) (next int, err error) {
	c, err := r.journal.read(last)
	switch {
	case err != nil:
		r.run.Note("%v", err)
		return last + 1, nil
	case c.Pair == "":
		return last, durable.Remove(c.path) // a power failure came before its header was written
	}
	if err := Settle(r.journal, c, r.host); err != nil {
		return 0, err
	}
	if c.Key().Same(r.run.Pair) && c.OverKey().Same(r.run.Over) {
		r.writer, err = r.journal.extend(c)
	}
	return last + 1, err
}
