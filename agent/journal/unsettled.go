package journal

import (
	"errors"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/image"
)

// unsettled returns the records without a valid after-image because their run was interrupted: the run did not take it,
// or a power failure may have lost a part of the change that it shows.
func unsettled(c *Chapter, boot string) (open []*Record) {
	for _, r := range c.Records {
		lost := !r.Synced && r.Boot != boot
		if r.Before != nil && (r.After == nil || lost) && r.Undone == nil && !r.Begun {
			open = append(open, r)
		}
	}
	return open
}

// Settle takes the after-images that an interrupted run did not take. It assumes that the subjects have not changed
// since.
func Settle(j Journal, c *Chapter, h *host.Host) error {
	open := unsettled(c, BootID(h))
	if len(open)+len(c.planned) == 0 {
		return nil
	}
	w, err := j.extend(c)
	if err != nil {
		return err
	}
	created, err := c.settlePlanned(w, h)
	if err == nil {
		err = settleAll(w, h, append(open, created...))
	}
	c.end, c.last, c.Torn = w.size, w.last, false
	return errors.Join(err, w.close())
}

func settleAll(w *writer, h *host.Host, open []*Record) error {
	for _, record := range open {
		// The secrets of the interrupted run are not known here, so all texts count as secret. The names are those that it
		// recorded.
		b, err := after(w, h, &recorded{subject: record.Subject, seq: record.Seq}, func(string) string { return "" },
			func(image.Image) Names { return nil })
		if err != nil {
			return err
		}
		if b != nil {
			record.After, record.Secret, record.Synced = &b.After, record.Secret || b.Secret, true
		}
	}
	return synced(w, h)
}
