package journal

import (
	"bytes"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/image"
)

// secretKeeper is an image.Keeper that looks for secrets in the content, and passes it to keep.
type secretKeeper struct {
	keep  image.Keeper
	hide  func(string) string
	found bool
}

func (w *secretKeeper) Keep(r io.Reader, size int64) ([]string, string, error) {
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

// secret reports whether an image must not be shown: it is the image of an account, or of a file that not every user of
// the host can read, or it contains a secret of the run.
func (w *secretKeeper) secret(s host.Subject, i image.Image) bool {
	return w.found || restricted(s, i) || slices.ContainsFunc(i.Parts, func(p image.Part) bool {
		return p.Text != "" && w.hide(p.Text) != p.Text
	})
}

func restricted(s host.Subject, i image.Image) bool {
	return s.Kind == host.KindUser || s.Kind == host.KindGroup ||
		slices.ContainsFunc(i.Parts, func(p image.Part) bool { return p.Type == image.File && p.Mode&0o004 == 0 })
}

// maxText is the size in bytes of the longest text that after-images keep. They keep texts only for diffs.
const maxText = 64 << 10

// texts is an image.Keeper that keeps texts of up to maxText bytes and drops all other content.
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
