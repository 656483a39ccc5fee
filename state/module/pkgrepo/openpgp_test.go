package pkgrepo

import (
	"bytes"
	"os"
	"reflect"
	"testing"
)

func TestFingerprints(t *testing.T) {
	armoured, err := os.ReadFile("testdata/keys/example.asc")
	if err != nil {
		t.Fatal(err)
	}
	plain, err := os.ReadFile("testdata/keys/example.gpg")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"3A5BC073ECF2BC4FAC01045A0B406CC707328D50",
		"1C99FD5BC0C6DA555EA920E82199FEBE9EAB518E"} // as printed by gpg
	for _, key := range [][]byte{armoured, plain, bytes.ReplaceAll(armoured, []byte("\n"), []byte("\r\n")),
		bytes.Replace(armoured, []byte("BLOCK-----\n\n"), []byte("BLOCK-----\nVersion: 1\nComment: a\n\n"), 1)} {
		if got, err := fingerprints(key); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, %v, want %v", got, err, want)
		}
	}
	if bare, err := dearmor(armoured); err != nil || !bytes.Equal(bare, plain) {
		t.Errorf("without armour the key has %d bytes, %v, want %d", len(bare), err, len(plain))
	}
	if got, err := fingerprints(append(bytes.Clone(armoured), armoured...)); err != nil || len(got) != 4 {
		t.Errorf("two blocks give %v, %v", got, err)
	}
	for _, bad := range []string{"", "<html>", "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nAAAA",
		"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n!!\n-----END PGP PUBLIC KEY BLOCK-----\n", string(plain[:40])} {
		if got, err := fingerprints([]byte(bad)); err == nil {
			t.Errorf("%q has the fingerprints %v", bad, got)
		}
	}
}

func FuzzFingerprints(f *testing.F) {
	for _, name := range []string{"testdata/keys/example.asc", "testdata/keys/example.gpg"} {
		if data, err := os.ReadFile(name); err == nil {
			f.Add(data)
		}
	}
	f.Add([]byte{0xc6, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0x9b, 0})
	f.Fuzz(func(_ *testing.T, data []byte) {
		_, _ = fingerprints(data)
	})
}
