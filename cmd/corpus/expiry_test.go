package main

import (
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/refresh"
	"github.com/corpus-agent/corpus-agent/artifact/store/stores"
)

// TestListShowsTheFirstExpiry checks that ls begins with the date on which hosts begin to refuse the store, and warns
// from the last third of a lifetime on.
func TestListShowsTheFirstExpiry(t *testing.T) {
	s := newStore(t)
	s.artifact("one", "1")
	s.expect(0, "publish myapp 1.0 @one.tar.zst --channel testing", "")
	s.expect(0, "ls", "signed until "+time.Now().UTC().AddDate(0, 0, 14).Format("2006-01-02"))
	s.expect(0, "ls", "(timestamp)\nmyapp")
	opened, err := stores.Open(s.env["CORPUS_STORE"], stores.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p := &publish.Publisher{Store: opened, Keys: publish.Keyring{Dir: s.path("keys")}, Seen: s.path("keys/seen"),
		Expiry: publish.Expiry{Timestamp: 72 * time.Hour}}
	if _, err := refresh.Roles(t.Context(), p, time.Hour); err != nil {
		t.Fatal(err)
	}
	s.expect(0, "ls", "warning: the signature of timestamp expires on "+
		time.Now().UTC().AddDate(0, 0, 3).Format("2006-01-02"))
	s.expect(0, "ls --json", "corpus refresh")
}
