package manifest_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/manifest"
)

func good() *manifest.Manifest {
	m := &manifest.Manifest{Entries: []manifest.Entry{
		{Name: "a", Kind: manifest.Directory}, {Name: "a/f", Kind: manifest.File,
			Size: 300, Modified: 1700000000}, {Name: "a/h", Kind: manifest.Hardlink, Link: "a/f"},
		{Name: "a/l", Kind: manifest.Symlink, Link: "f"}, {Name: "a/x", Kind: manifest.Executable},
	}}
	m.Sort()
	return m
}

// TestNumbersHaveOneForm refuses another encoding of the same list: it would have another digest.
func TestNumbersHaveOneForm(t *testing.T) {
	data := []byte("corpusT1" + "d\x01a")
	if _, err := manifest.Decode(data); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{
		"a length of two bytes":   "corpusT1" + "d\x81\x00a",
		"a length of three bytes": "corpusT1" + "d\x81\x80\x00a",
		"a time of two bytes":     "corpusT1" + "f\x01a\x80\x00\x00" + strings.Repeat("x", 32),
		"a size of two bytes":     "corpusT1" + "f\x01a\x00\x80\x00" + strings.Repeat("x", 32),
	} {
		if _, err := manifest.Decode([]byte(data)); err == nil || !strings.Contains(err.Error(), "shortest form") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := manifest.Decode([]byte("corpusT1" + "d\x01a" + "d\x01a")); err == nil {
		t.Error("a repeated name was accepted")
	}
}

// FuzzDecode checks that Encode returns exactly the bytes that Decode accepts.
func FuzzDecode(f *testing.F) {
	f.Add(good().Encode())
	f.Add([]byte("corpusT1"))
	f.Add([]byte("corpusT1d\x81\x00a"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := manifest.Decode(data)
		if err != nil {
			return
		}
		if got := m.Encode(); !bytes.Equal(got, data) {
			t.Errorf("%q is written as %q", data, got)
		}
	})
}
