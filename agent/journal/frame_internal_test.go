package journal

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"
)

// TestFramesAreAChain removes, repeats and exchanges whole frames of a chapter. Each of them has a valid checksum of
// its own, and a reader must still notice.
func TestFramesAreAChain(t *testing.T) {
	whole := [][]byte{opening()}
	last := chain(sum{}, opening())
	for _, body := range []string{"one", "two", "three"} {
		next, s := frame(last, 'P', []byte(body))
		whole, last = append(whole, next), s
	}
	for name, c := range map[string]struct {
		frames [][]byte
		read   int // number of frames before the change is noticed
	}{
		"unchanged": {whole, 3},
		"removed":   {slices.Delete(slices.Clone(whole), 2, 3), 1},
		"first":     {slices.Delete(slices.Clone(whole), 1, 2), 0},
		"repeated":  {slices.Insert(slices.Clone(whole), 2, whole[1]), 1},
		"exchanged": {[][]byte{whole[0], whole[2], whole[1], whole[3]}, 0},
	} {
		f := frames{r: bytes.NewReader(bytes.Join(c.frames, nil))}
		err := f.open()
		read := 0
		for ; err == nil; read++ {
			_, _, err = f.next()
		}
		want := errChanged
		if name == "unchanged" {
			want = io.EOF
		}
		if read-1 != c.read || !errors.Is(err, want) {
			t.Errorf("%s: %d frames were read, and then %v, want %d and %v", name, read-1, err, c.read, want)
		}
	}
}
