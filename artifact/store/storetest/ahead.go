package storetest

import (
	"bytes"
	"errors"
	"testing"

	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/wire"
)

// testPieces makes an object of pieces: its content is theirs, conditions apply, nothing is written if one of them is
// missing, and pieces with other bytes than the source are noticed.
func (s suite) testPieces(t *testing.T) {
	st := s.open(t)
	if _, pieces := store.Ahead(st); !pieces {
		t.Skip("the store does not make objects of pieces")
	}
	const size = 5 << 20 // the least that S3 allows
	all := random(6, 2*size+1000)
	put(t, st, "p/one", all[:size])
	put(t, st, "p/two", all[size:2*size])
	pieces := wire.Pieces{Size: size, Keys: []string{"p/one", "p/two", "p/rest"}}
	ctx := wire.WithPieces(t.Context(), pieces)
	write := func(cond store.Condition) error {
		_, err := st.Put(ctx, "whole", bytes.NewReader(all), int64(len(all)), cond)
		return err
	}
	wantErr(t, "Put without the last piece", write(store.Condition{}), store.ErrPieces)
	wantKeys(t, st, "whole")
	put(t, st, "p/rest", all[2*size:])
	if err := write(store.Condition{IfAbsent: true}); err != nil {
		t.Fatal(err)
	}
	got, _ := get(t, st, "whole", store.Range{})
	wantBytes(t, "the object", got, all)
	wantErr(t, "Put to a key that is taken", write(store.Condition{IfAbsent: true}), store.ErrPrecondition)
	all[size+5]++
	wantErr(t, "Put of other bytes than the pieces have", write(store.Condition{}), store.ErrPieces)
	if below := store.Uploads(st); below != nil {
		if left, err := below.Unfinished(t.Context(), "whole"); err != nil || len(left) > 0 {
			t.Errorf("unfinished uploads are left: %v, %v", left, err)
		}
	}
}

// testStaged makes an object of staged content, which nobody sees before.
func (s suite) testStaged(t *testing.T) {
	st := s.open(t)
	stager, _ := store.Ahead(st)
	if stager == nil {
		t.Skip("content cannot be staged in the store")
	}
	data := random(7, 3<<20)
	put(t, st, "other", nil)
	stage := func() store.Staged {
		staged, err := stager.Stage(t.Context(), "deep/folder")
		if err == nil {
			_, err = staged.Write(data)
		}
		if err != nil {
			t.Fatal(err)
		}
		return staged
	}
	staged := stage()
	wantKeys(t, st, "", "other")
	ctx := store.WithStaged(t.Context(), staged)
	if _, err := st.Put(ctx, "deep/folder/key", bytes.NewReader(data), 5, store.Condition{}); err == nil {
		t.Error("a wrong size was accepted")
	}
	info, err := st.Put(ctx, "deep/folder/key", bytes.NewReader(data), int64(len(data)), store.Condition{IfAbsent: true})
	if err = errors.Join(err, staged.Close()); err != nil {
		t.Fatal(err)
	}
	got, there := get(t, st, "deep/folder/key", store.Range{})
	wantBytes(t, "the object", got, data)
	if there.ETag != info.ETag {
		t.Errorf("Put returned the ETag %s, and Get %s", info.ETag, there.ETag)
	}
	staged = stage()
	_, err = st.Put(store.WithStaged(t.Context(), staged), "deep/folder/key", bytes.NewReader(data), int64(len(data)),
		store.Condition{IfAbsent: true})
	wantErr(t, "Put to a key that is taken", err, store.ErrPrecondition)
	if err := staged.Close(); err != nil {
		t.Fatal(err)
	}
	wantKeys(t, st, "", "deep/folder/key", "other")
}
