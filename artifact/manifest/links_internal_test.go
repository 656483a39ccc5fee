package manifest

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// linked returns a tree whose code consists of links to directories outside of it, which lead to others.
func linked(links int) *Manifest {
	m := &Manifest{}
	for i := range links {
		m.Entries = append(m.Entries,
			Entry{Name: fmt.Sprintf("data/%05d", i), Kind: Directory},
			Entry{Name: fmt.Sprintf("data/%05d/x", i), Kind: Symlink, Link: fmt.Sprintf("../../more/%05d", i)},
			Entry{Name: fmt.Sprintf("states/%05d", i), Kind: Symlink, Link: fmt.Sprintf("../data/%05d", i)})
	}
	return m
}

// TestManyLinksInCode checks that each of 5,000 links and its target are code. It takes less than a second; comparing
// each link with all others took minutes for 8,000.
func TestManyLinksInCode(t *testing.T) {
	const links = 5000
	m, began := linked(links), time.Now()
	a := &audit{Scope: Scope{Code: []string{"states"}, Writable: []string{"data/00001/y"}}}
	a.behind = m.Behind(a.Code)
	for _, e := range m.Entries {
		if !a.isCode(e.Name) || !a.holdsCode("data") {
			t.Fatalf("%s is not code", e.Name)
		}
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("%d links took %v", links, took)
	}
	if len(a.behind) != 2*links || !slices.IsSorted(a.behind) || a.isCode("other") || a.isCode("data/00001/y/z") ||
		!a.isCode("more/00001/z") || a.isCode("data") {
		t.Errorf("%d names behind %d links", len(a.behind), links)
	}
}
