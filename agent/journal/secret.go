package journal

import (
	"bytes"
	"io"
	"unicode/utf8"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/image"
)

// watching is a keeper that looks for secrets in the texts which it is given.
type watching struct {
	keep  image.Keeper
	hide  func(string) string
	found bool
}

func (w *watching) Keep(r io.Reader, size int64) ([]string, string, error) {
	if size > maxText {
		return w.keep.Keep(r, size)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, "", err
	}
	w.found = w.found || w.hide(string(text)) != string(text)
	return w.keep.Keep(bytes.NewReader(text), int64(len(text)))
}

// secret reports whether nobody may be shown what an image holds: it is of an account, not everybody
// may read it on the host either, or it holds what the run hides.
func (w *watching) secret(s host.Subject, i image.Image) bool {
	if w.found || notForAll(s, i) {
		return true
	}
	for _, p := range i.Parts {
		if p.Text != "" && w.hide(p.Text) != p.Text {
			return true
		}
	}
	return false
}

func notForAll(s host.Subject, i image.Image) bool {
	if s.Kind == host.KindUser || s.Kind == host.KindGroup {
		return true
	}
	for _, p := range i.Parts {
		if p.Type == image.File && p.Mode&0o004 == 0 {
			return true
		}
	}
	return false
}

// maxText is the longest text that is kept of what files have become, for it to be shown.
const maxText = 64 << 10

// texts keeps short texts, and of all else nothing.
type texts struct{ w *writer }

func (t texts) Keep(r io.Reader, size int64) ([]string, string, error) {
	if size > maxText {
		return nil, "", nil
	}
	var b bytes.Buffer
	if _, err := io.Copy(&b, io.LimitReader(r, maxText+1)); err != nil || !utf8.Valid(b.Bytes()) || b.Len() == 0 {
		return nil, "", err
	}
	return t.w.Keep(&b, int64(b.Len()))
}
