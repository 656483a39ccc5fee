package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/store"
)

func (s suite) testGet(t *testing.T) {
	st := s.open(t)
	before := time.Now()
	written := put(t, st, "deploy/myapp/1.0.tar.zst", []byte("hello"))
	got, info := get(t, st, "deploy/myapp/1.0.tar.zst", store.Range{})
	wantBytes(t, "content", got, []byte("hello"))
	if info.Key != "deploy/myapp/1.0.tar.zst" || info.Size != 5 {
		t.Errorf("Info is %+v", info)
	}
	if info.ETag == "" || info.ETag != written.ETag {
		t.Errorf("ETag is %q, but Put returned %q", info.ETag, written.ETag)
	}
	if off := info.Modified.Sub(before); off < -5*time.Second || off > time.Minute {
		t.Errorf("modified at %v, written at %v", info.Modified, before)
	}
}

func (s suite) testRange(t *testing.T) {
	st := s.open(t)
	put(t, st, "digits", []byte("0123456789"))
	for _, c := range []struct {
		from, length int64
		want         string
	}{
		{0, 0, "0123456789"},
		{3, 0, "3456789"},
		{9, 0, "9"},
		{10, 0, ""},
		{11, 0, ""},
		{1000, 5, ""},
		{0, 1, "0"},
		{0, 10, "0123456789"},
		{4, 3, "456"},
		{8, 100, "89"},
		{0, 100, "0123456789"},
	} {
		got, info := get(t, st, "digits", store.Range{From: c.from, Length: c.length})
		wantBytes(t, fmt.Sprintf("%d bytes from %d", c.length, c.from), got, []byte(c.want))
		if info.Size != 10 {
			t.Errorf("%d bytes from %d: the reported size of the object is %d", c.length, c.from, info.Size)
		}
	}
	body, _, err := st.Get(t.Context(), "digits", 7)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	got, err := io.ReadAll(body)
	if err != nil {
		t.Fatal(err)
	}
	wantBytes(t, "Get from 7", got, []byte("789"))
}

func (s suite) testAbsent(t *testing.T) {
	st := s.open(t)
	put(t, st, "here", []byte("x"))
	for _, key := range []string{"nothing", "some/deep/path", "her", "here2"} {
		for _, from := range []int64{0, 10} {
			_, _, err := st.Get(t.Context(), key, from)
			wantErr(t, key, err, store.ErrNotFound)
		}
	}
}

func (s suite) testEmpty(t *testing.T) {
	st := s.open(t)
	put(t, st, "empty", nil)
	for _, part := range []store.Range{{}, {From: 1}, {Length: 5}, {From: 3, Length: 5}} {
		got, info := get(t, st, "empty", part)
		if len(got) != 0 || info.Size != 0 {
			t.Errorf("%+v: %d bytes, size %d", part, len(got), info.Size)
		}
	}
}

func (s suite) testLarge(t *testing.T) {
	st := s.open(t)
	data := random(1, 20<<20)
	put(t, st, "large", data)
	got, info := get(t, st, "large", store.Range{})
	wantBytes(t, "all", got, data)
	got, _ = get(t, st, "large", store.Range{From: 13<<20 + 1, Length: 5 << 20, ETag: info.ETag})
	wantBytes(t, "a part", got, data[13<<20+1:][:5<<20])
	got, _ = get(t, st, "large", store.Range{From: 20<<20 - 3, ETag: info.ETag})
	wantBytes(t, "the end", got, data[20<<20-3:])
}

func (s suite) testVersion(t *testing.T) {
	st := s.open(t)
	old := put(t, st, "key", []byte("the old one"))
	now := put(t, st, "key", []byte("the new one"))
	got, _ := get(t, st, "key", store.Range{From: 4, ETag: now.ETag})
	wantBytes(t, "the version that is there", got, []byte("new one"))
	for _, part := range []store.Range{{ETag: old.ETag}, {From: 4, ETag: old.ETag}, {From: 100, ETag: old.ETag}} {
		_, _, err := store.GetRange(t.Context(), st, "key", part)
		wantErr(t, "the version that is gone", err, store.ErrPrecondition)
	}
}

func (s suite) testUnchanged(t *testing.T) {
	st := s.open(t)
	old := put(t, st, "key", []byte("the old one"))
	if _, _, err := store.GetRange(t.Context(), st, "key", store.Range{Unless: old.ETag}); !errors.Is(err,
		store.ErrUnchanged) {
		t.Errorf("the version that the reader has: %v, want %v", err, store.ErrUnchanged)
	}
	put(t, st, "key", []byte("the new one"))
	got, _ := get(t, st, "key", store.Range{Unless: old.ETag})
	wantBytes(t, "a version that the reader does not have", got, []byte("the new one"))
	_, _, err := store.GetRange(t.Context(), st, "absent", store.Range{Unless: old.ETag})
	wantErr(t, "no object", err, store.ErrNotFound)
}

func (s suite) testBadKeys(t *testing.T) {
	st := s.open(t)
	for _, key := range []string{"", "/abs", "../up", "a/../../up", "a//b", "a/", ".", "a/./b", "nul\x00", "line\nbreak",
		"\xff"} {
		if _, _, err := st.Get(t.Context(), key, 0); err == nil {
			t.Errorf("Get %q succeeded", key)
		}
		if _, err := putIf(t.Context(), st, key, "x", store.Condition{}); err == nil {
			t.Errorf("Put %q succeeded", key)
		}
		if err := st.Delete(t.Context(), key); err == nil {
			t.Errorf("Delete %q succeeded", key)
		}
	}
}

func (s suite) testOddKeys(t *testing.T) {
	st := s.open(t)
	keys := []string{
		"with space/and two  spaces", "plus+plus", "percent%20", "percent%", "1.0~rc1", "a&b=c", "semi;colon",
		"question?mark",
		"hash#tag", "quote'", "bracket[1]", "brace{}", "at@home", "dollar$", "comma,", "equals=", "star*", "excl!", "paren()",
		"umlaut/größe", "日本語", "emoji-🙂", ".hidden", "..dots", "...", "dash-", "colon:", "under_score", "caret^", "pipe|",
	}
	for _, key := range keys {
		put(t, st, key, []byte(key))
	}
	for _, key := range keys {
		got, _ := get(t, st, key, store.Range{})
		wantBytes(t, key, got, []byte(key))
	}
	wantKeys(t, st, "", keys...)
	for _, key := range keys {
		if err := st.Delete(t.Context(), key); err != nil {
			t.Errorf("Delete %q: %v", key, err)
		}
	}
	wantKeys(t, st, "")
}

func (s suite) testCloseEarly(t *testing.T) {
	st := s.open(t)
	data := random(2, 8<<20)
	put(t, st, "large", data)
	for range 20 {
		body, _, err := st.Get(t.Context(), "large", 0)
		if err != nil {
			t.Fatal(err)
		}
		head := make([]byte, 10)
		if _, err := io.ReadFull(body, head); err != nil {
			t.Fatal(err)
		}
		wantBytes(t, "head", head, data[:10])
		if err := body.Close(); err != nil {
			t.Fatal(err)
		}
	}
	got, _ := get(t, st, "large", store.Range{})
	wantBytes(t, "after that", got, data)
}

func (s suite) testCancelled(t *testing.T) {
	st := s.open(t)
	put(t, st, "key", []byte("old"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := st.Get(ctx, "key", 0)
	wantErr(t, "Get", err, context.Canceled)
	_, err = putIf(ctx, st, "key", "new", store.Condition{})
	wantErr(t, "Put", err, context.Canceled)
	wantErr(t, "Delete", st.Delete(ctx, "key"), context.Canceled)
	for _, err = range st.List(ctx, "") {
		break
	}
	wantErr(t, "List", err, context.Canceled)
	for _, kind := range []error{store.ErrUnreachable, store.ErrNotFound, store.ErrThrottled} {
		if errors.Is(err, kind) {
			t.Errorf("the error of a cancelled request is %v: %v", kind, err)
		}
	}
	got, _ := get(t, st, "key", store.Range{})
	wantBytes(t, "afterwards", got, []byte("old"))
}

func (s suite) testCancelBody(t *testing.T) {
	st := s.open(t)
	put(t, st, "large", random(3, 16<<20))
	ctx, cancel := context.WithCancel(t.Context())
	body, _, err := st.Get(ctx, "large", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if _, err := io.ReadFull(body, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	cancel()
	_, err = io.Copy(io.Discard, body)
	wantErr(t, "reading on", err, context.Canceled)
}

func (s suite) testConcurrent(t *testing.T) {
	st := s.open(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			key, data := fmt.Sprintf("dir%d/object", i%3), random(byte(i), 100<<10)
			own := fmt.Sprintf("%s-%d", key, i)
			for range 5 {
				if _, err := st.Put(t.Context(), own, bytes.NewReader(data), int64(len(data)), store.Condition{}); err != nil {
					t.Errorf("Put: %v", err)
					return
				}
				if got, _, err := read(t.Context(), st, own, store.Range{}); err != nil || !bytes.Equal(got, data) {
					t.Errorf("Get: %s, %v", brief(got), err)
					return
				}
			}
		})
	}
	all.Wait()
}
