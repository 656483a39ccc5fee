package undo_test

import (
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/journal"
	"github.com/corpus-agent/corpus-agent/agent/ledger"
	"github.com/corpus-agent/corpus-agent/agent/undo"
	"github.com/corpus-agent/corpus-agent/artifact"
)

// TestTwoServicesWithTheSameBytesHaveTheirOwnChapters has a host change to another service with the same content and
// back: the rollback undoes the changes of the second one. Chapters of older agents lack the service.
func TestTwoServicesWithTheSameBytesHaveTheirOwnChapters(t *testing.T) {
	web := ledger.Pair{Service: artifact.Release{Project: "web", Version: "1", Digest: "sha256:11"}}.Key()
	api := ledger.Pair{Service: artifact.Release{Project: "api", Version: "1", Digest: "sha256:11"}}.Key()
	chapter := func(pair, over ledger.Key, run string) *journal.Chapter {
		return &journal.Chapter{
			Header: journal.Header{Pair: pair.Bytes, Service: pair.Service, Over: over.Bytes, OverOf: over.Service,
				Started: time.Now()},
			Runs:    []string{run},
			Records: []*journal.Record{{Run: run}},
		}
	}
	old := func(k ledger.Key) ledger.Key { return ledger.Key{Bytes: k.Bytes} }
	other := ledger.Key{Bytes: "sha256:22", Service: "web"}
	for name, c := range map[string]struct {
		chapters []*journal.Chapter
		scope    undo.Scope
		want     int
	}{
		"from one service to the other": {[]*journal.Chapter{
			chapter(web, ledger.Key{}, "1"), chapter(api, web, "2")}, undo.Scope{From: api, To: web}, 1},
		"chapters of an older agent": {[]*journal.Chapter{
			chapter(old(web), ledger.Key{}, "1"), chapter(old(other), old(web), "2")}, undo.Scope{From: other, To: web}, 1},
		"a new chapter over an older one": {[]*journal.Chapter{
			chapter(old(web), ledger.Key{}, "1"), chapter(other, web, "2")}, undo.Scope{From: other, To: web}, 1},
	} {
		if records, short := undo.Select(c.chapters, c.scope); len(records) != c.want || short {
			t.Errorf("%s: %d records are selected, short %v; want %d", name, len(records), short, c.want)
		}
	}
}
