package journal

import (
	"errors"

	"github.com/corpus-agent/corpus-agent/state/host"
)

// unsettled are the records whose run was cut short: it did not come to take the after-image, or a
// power cut may have taken a part of what that shows.
func unsettled(c *Chapter, boot string) (open []*Record) {
	for _, r := range c.Records {
		lost := !r.Synced && r.Boot != boot
		if r.Before != nil && (r.After == nil || lost) && r.Undone == nil && !r.Begun {
			open = append(open, r)
		}
	}
	return open
}

// Settle completes the records of a chapter whose run was cut short: what is found now is what that
// run left.
func Settle(j Journal, c *Chapter, h *host.Host) error {
	open := unsettled(c, BootID(h))
	if len(open)+len(c.coming) == 0 {
		return nil
	}
	w, err := j.extend(c)
	if err != nil {
		return err
	}
	made, err := c.made(w, h)
	if err == nil {
		err = settleAll(w, h, append(open, made...))
	}
	c.end, c.last, c.Torn = w.size, w.last, false
	return errors.Join(err, w.close())
}

func settleAll(w *writer, h *host.Host, open []*Record) error {
	for _, record := range open {
		// What the run that was cut short hid, nobody knows any more: so all of it is hidden.
		b, err := after(w, h, &recorded{subject: record.Subject, seq: record.Seq}, func(string) string { return "" })
		if err != nil {
			return err
		}
		if b != nil {
			record.After, record.Secret, record.Synced = &b.After, record.Secret || b.Secret, true
		}
	}
	return synced(w, h)
}
