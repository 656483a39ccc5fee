package storetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/store"
)

// wantKeys checks the keys under a prefix, and their order.
func wantKeys(t *testing.T, s store.Store, prefix string, want ...string) {
	t.Helper()
	got := []string{}
	for info, err := range s.List(t.Context(), prefix) {
		if err != nil {
			t.Fatalf("List %q: %v", prefix, err)
		}
		got = append(got, info.Key)
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("List %q: got %d keys %.300q, want %d keys %.300q", prefix, len(got), got, len(want), want)
	}
}

func (s suite) testList(t *testing.T) {
	st := s.open(t)
	wantKeys(t, st, "")
	// In key order a dash comes before a slash and a slash before letters.
	keys := []string{"a-b", "a/b", "a/c/d", "aa", "b", "B", "a.b", "a/b-c", "z/z/z/z"}
	for _, key := range keys {
		put(t, st, key, []byte(key))
	}
	wantKeys(t, st, "", keys...)
	for info, err := range st.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		if info.Size != int64(len(info.Key)) || info.Modified.IsZero() {
			t.Errorf("Info is %+v", info)
		}
	}
}

func (s suite) testListPrefix(t *testing.T) {
	st := s.open(t)
	for _, key := range []string{"deploy/app/1", "deploy/app/2", "deploy/app2/1", "deploy/b", "metadata/root.json",
		"dep"} {
		put(t, st, key, []byte("x"))
	}
	wantKeys(t, st, "deploy/", "deploy/app/1", "deploy/app/2", "deploy/app2/1", "deploy/b")
	wantKeys(t, st, "deploy/app/", "deploy/app/1", "deploy/app/2")
	wantKeys(t, st, "deploy/app", "deploy/app/1", "deploy/app/2", "deploy/app2/1")
	wantKeys(t, st, "deploy/app/1", "deploy/app/1")
	wantKeys(t, st, "deploy/app/1/", []string{}...)
	wantKeys(t, st, "dep", "dep", "deploy/app/1", "deploy/app/2", "deploy/app2/1", "deploy/b")
	wantKeys(t, st, "nothing/here")
}

// testListMany lists more than the 1,000 keys of one page of S3.
func (s suite) testListMany(t *testing.T) {
	st := s.open(t)
	const many = 1050
	keys := make([]string, many)
	var all sync.WaitGroup
	next := make(chan string)
	for range 16 {
		all.Go(func() {
			for key := range next {
				if _, err := putIf(t.Context(), st, key, "x", store.Condition{}); err != nil {
					t.Errorf("Put %q: %v", key, err)
				}
			}
		})
	}
	for i := range keys {
		keys[i] = fmt.Sprintf("many/%d/key %d", i%7, i)
		next <- keys[i]
	}
	close(next)
	all.Wait()
	wantKeys(t, st, "many/", keys...)
}

func (s suite) testListStops(t *testing.T) {
	st := s.open(t)
	for i := range 5 {
		put(t, st, fmt.Sprintf("key%d", i), []byte("x"))
	}
	seen := 0
	for _, err := range st.List(t.Context(), "key") {
		if err != nil {
			t.Fatal(err)
		}
		if seen++; seen == 2 {
			break
		}
	}
	if seen != 2 {
		t.Errorf("saw %d keys, wanted to stop after 2", seen)
	}
}

// testFolders goes beyond the 1,000 folders that S3 lists at once.
func (s suite) testFolders(t *testing.T) {
	st := s.open(t)
	const many = 1010
	want := []string{"f/a-b/", "f/a/", "f/aa/"}
	for _, key := range []string{"f/a-b/1", "f/a/1", "f/a/2", "f/a/b/c", "f/aa/1", "f/object", "g/h/i"} {
		put(t, st, key, []byte("x"))
	}
	for i := range many {
		put(t, st, fmt.Sprintf("f/z%04d/x", i), []byte("x"))
		want = append(want, fmt.Sprintf("f/z%04d/", i))
	}
	wantFolders(t, st, "f/", want...)
	wantFolders(t, st, "", "f/", "g/")
	wantFolders(t, st, "f/a/", "f/a/b/")
	wantFolders(t, st, "nothing/")
}

// wantFolders checks that these are the folders right below a prefix, in key order.
func wantFolders(t *testing.T, s store.Store, prefix string, want ...string) {
	t.Helper()
	var got []string
	for info, err := range store.ListFolders(t.Context(), s, prefix) {
		if err != nil {
			t.Fatalf("ListFolders %q: %v", prefix, err)
		}
		got = append(got, info.Key)
	}
	if !slices.Equal(got, want) {
		t.Errorf("ListFolders %q: got %d folders %.300q, want %d folders %.300q", prefix, len(got), got, len(want), want)
	}
}
